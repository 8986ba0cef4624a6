#!/bin/bash
# Proves that a browser shows the page of refd status --html as meant, behind a
# web server: on a narrow and on a wide screen nothing is cut off, all text has
# enough contrast in light and dark colours, and the browser runs no script and
# loads no other file, whatever the names of repositories, refs and users. The
# commands of operations.md replace the page as a whole.

# shellcheck disable=SC2317 # the functions that check and await call
# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

"$ROOT/scripts/deps" --browser >"$T/deps" 2>&1
browser=$(command -v chromium) || {
	skip browser "no chromium: $(tail -n 1 "$T/deps")"
	finish
}

# ---- a daemon with hostile names, and slow work ----

printf '[daemon]\n\tslowLog = 100ms\n' >"$T/config"
check 'the daemon starts' start_daemon --config "$T/config"
evil='<img src=x onerror=alert(1)>"&'"'"'.git'
new_repo "$evil" bare
one=$(new_commit "$evil" one)
ref='refs/heads/<script>alert(1)</script>'
update() {
	GL_USER='<svg onload=alert(1)>' "$REFD" update -C "$T/$evil" "$ref" "$1"
}
git -C "$T/$evil" config core.filesRefLockTimeout 300000
mkdir -p "$T/$evil/${ref%/*}"
: >"$T/$evil/$ref.lock"
update "$one" &
waiter=$!
own $waiter
somebody_waits() { "$REFD" locks | grep -q script; }
check 'an update waits' await 10 somebody_waits
sleep 0.2
rm "$T/$evil/$ref.lock"
check 'and ends' wait $waiter
reap $waiter

# ---- the pages, behind a web server ----

mkdir "$T/www"
# As in operations.md.
write_page() { # NAME [OPTION...]
	local page=$T/www/$1 status
	"$REFD" status --html "${@:2}" >"$page.new" 2>"$T/err"
	status=$?
	case $status in 0 | 75) mv "$page.new" "$page" ;; esac
	return $status
}
check 'a page is written' write_page serves.html
# Measures the page NAME in a frame of WIDTH pixels. encodeURIComponent() leaves
# a line without markup.
cat >"$T/www/frame.html" <<'HTML'
<!DOCTYPE html>
<iframe id="frame" style="height: 900px; border: 0"></iframe>
<pre id="result"></pre>
<script>
const [name, width] = location.search.slice(1).split(",");
function light(colour) {
  const [r, g, b] = colour.match(/[\d.]+/g).map(c => c / 255).map(
    c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
}
frame.style.width = width + "px";
frame.onload = () => {
  const d = frame.contentDocument, w = frame.contentWindow;
  const all = [...d.body.querySelectorAll("*")];
  const back = light(w.getComputedStyle(d.body).backgroundColor);
  const contrast = e => {
    const fore = light(w.getComputedStyle(e).color);
    return Math.max(fore, back) / Math.min(fore, back);
  };
  result.textContent = encodeURIComponent(JSON.stringify({
    width: w.innerWidth,
    over: d.documentElement.scrollWidth - d.documentElement.clientWidth,
    hidden: all.filter(e => e.matches("p, h1, h2") &&
      e.scrollWidth > e.clientWidth).length,
    active: d.querySelectorAll("script, img, iframe, object, embed").length +
      all.filter(e => [...e.attributes].some(
        a => a.name.startsWith("on"))).length,
    loads: w.performance.getEntriesByType("resource").length,
    dark: w.matchMedia("(prefers-color-scheme: dark)").matches,
    contrast: Math.min(...all.filter(
      e => !e.children.length && e.textContent.trim()).map(contrast)),
    bars: all.filter(e => e.matches("rect") &&
      e.getBoundingClientRect().width > 0).length,
    font: Math.min(...[...d.querySelectorAll("svg text")].map(
      e => e.getBoundingClientRect().height)),
    heads: [...d.querySelectorAll("h2")].map(e => e.textContent),
    text: d.body.innerText
  }));
};
frame.src = name;
</script>
HTML
python3 - "$T/www" "$T/port" 2>"$T/www.log" <<'PY' &
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler,
                            directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
open(sys.argv[2], "w").write(str(server.server_port))
server.serve_forever()
PY
own $!
check 'a web server' await 10 test -s "$T/port"

browse() { # OPTION... URL
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu \
		--disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync \
		--user-data-dir="$T/profile" --virtual-time-budget=10000 \
		"$@" 2>"$T/browser.log"
}

# The object D that frame.html has measured.
see() { # NAME WIDTH SCHEME
	browse --blink-settings=preferredColorScheme="$3" --dump-dom \
		"http://127.0.0.1:$(cat "$T/port")/frame.html?$1,$2" |
		sed -n 's/.*<pre id="result">\(.*\)<\/pre>.*/\1/p' >"$T/seen"
	[ -s "$T/seen" ]
}
seen() { # EXPRESSION
	python3 -c "import json, sys, urllib.parse
D = json.loads(urllib.parse.unquote(sys.stdin.read()))
print($1)" <"$T/seen"
}

for width in 400 1200; do
	for scheme in 0 1; do # dark, light
		name="$width pixels, $([ $scheme = 0 ] && echo dark || echo light)"
		if ! see serves.html $width $scheme; then
			not_ok "$name" "$(tail -n 3 "$T/browser.log")"
			continue
		fi
		is "$name: the browser has this screen" \
			"$width $([ $scheme = 0 ] && echo True || echo False)" \
			"$(seen 'D["width"], D["dark"]' | tr -d '(),')"
		is "$name: nothing is cut off" '0 0' \
			"$(seen 'D["over"], D["hidden"]' | tr -d '(),')"
		is "$name: nothing runs or is loaded" '0 0' \
			"$(seen 'D["active"], D["loads"]' | tr -d '(),')"
		is "$name: the contrast is enough" True \
			"$(seen 'D["contrast"] >= 4.5')"
		is "$name: bars, and labels that can be read" True \
			"$(seen 'D["bars"] >= 4 and D["font"] >= 8')"
	done
done
is 'the sections' "Flushes and times
Who changes refs
Slow transactions" "$(seen '"\n".join(D["heads"])')"
seen 'D["text"]' >"$T/text"
check 'the state is there' grep -q '^refd serves /' "$T/text"
for text in "$evil" "$ref" '<svg onload=alert(1)>'; do
	check "as text: $text" grep -qF -- "$text" "$T/text"
done

# ---- a daemon that is away ----

check 'the daemon stops' stop_daemon
write_page away.html
is 'a page without a daemon' 75 $?
check 'the browser shows it' see away.html 400 1
is 'and nothing is cut off' '0 0' "$(seen 'D["over"], D["hidden"]' | tr -d '(),')"
seen 'D["text"]' >"$T/text"
check 'with the state' grep -qx 'refd gives no state\.' "$T/text"
check 'and the remedy' grep -q 'start the daemon: refd daemon --socket' "$T/text"
cp "$T/www/away.html" "$T/www/before.html"
write_page before.html --all
is 'a wrong command line' 129 $?
check 'and the former page stays' cmp "$T/www/away.html" "$T/www/before.html"
finish
