#!/bin/bash
# Proves that the files of `make install` work: the programs, the libraries under
# their versioned names only and with their stored interfaces, the headers,
# pkg-config, the manual pages, and completion in bash and zsh. `make uninstall`
# removes all of them.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

to=$T/root
mk() { make_built DESTDIR="$to" PREFIX=/usr "$@"; }
mkdir "$to"
if ! mk install; then
	not_ok 'make install' "$(tail -n 3 "$T/make.log")"
	finish
fi
ok 'make install'
PATH=$to/usr/bin:$PATH

check 'a missing program: its package' \
	grep -q ': install the package refd-group, or run "make install-group"' <(refd group 2>&1)

is 'the hooks that repositories share' '/usr/bin/refd forward' \
	"$(readlink "$to"/usr/share/refd/hooks/{proc-receive,update} | xargs)"
check 'the forwarder' test -x "$to/usr/share/refd/hooks/update"
# install(1) removes a present file before it makes the new one.
printf '#!/bin/sh\necho "$*" >>%q\nexec install "$@"\n' "$T/installed" \
	>"$T/install"
chmod +x "$T/install"
check 'make install again' mk install INSTALL="$T/install"
check 'makes the program, too' grep -q bin/refd "$T/installed"
is 'and no hook is missing meanwhile' '' \
	"$(grep -E '(hooks/forward|bin/refd)$' "$T/installed")"
is 'and nothing stays aside' '' "$(find "$to" -name '.*new')"

# ---- the library ----

cat >"$T/use.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/refd.h"

int main(int argc, char **argv)
{
	struct refd_update update = { .action = REFD_CREATE,
		.name = "refs/heads/topic" };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = argv[2], .umask = 022,
		.updates = &update, .nr_updates = 1 };
	struct refd *r = refd_new(argv[1]);
	struct refd_answer ans;
	struct stat st;

	if (argc != 4 || r == NULL || stat(req.git_dir, &st) < 0 ||
	    refd_oid_parse(argv[3], REFD_FORMAT_SHA1, &update.new_oid) < 0)
		return 2;
	req.common_dev = st.st_dev;
	req.common_ino = st.st_ino;
	if (refd_connect(r, 1000) < 0 || refd_call(r, &req, 30000, &ans) < 0) {
		puts(refd_error(r));
		return 1;
	}
	puts(refd_status_name(ans.results[0].status));
	refd_answer_done(&ans);
	refd_free(r);
	return 0;
}
C
export PKG_CONFIG_PATH=$to/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$to
# shellcheck disable=SC2046
check 'a program is made with the installed library' \
	cc -std=c11 -D_GNU_SOURCE -o "$T/use" "$T/use.c" \
	$(pkg-config --cflags --libs librefd)
start_daemon || finish
new_repo repo.git bare
one=$(new_commit repo.git one)
is 'and makes a branch' ok "$(LD_LIBRARY_PATH=$to/usr/lib \
	"$T/use" "$SOCKET" "$T/repo.git" "$one")"
is 'which is there' "$one" "$(ref_of repo.git refs/heads/topic)"
is 'its soname' librefd.so.0 "$(objdump -p "$T/use" |
	awk '$1 == "NEEDED" && /refd/ { print $2 }')"
said=$(sed -nE 's/^.*[ *](refd_[a-z]+)\(.*/\1/p' \
	"$to/usr/include/refd/client/refd.h" | sort -u)
is 'all that refd.h declares is let out' '' \
	"$(comm -23 <(echo "$said") <(sed -n 's/^\t\(refd_[a-z_]*\);$/\1/p' \
		"$ROOT/client/librefd/librefd.map" | sort))"

# ---- the library for libgit2 ----

check 'make install-libgit2' mk install-libgit2
export LD_LIBRARY_PATH=$to/usr/lib
# The paths of libgit2 are the machine's.
# shellcheck disable=SC2046
check 'the example is made with the installed library' \
	cc -std=c11 -o "$T/move" "$ROOT/client/libgit2/example/move_branch.c" \
	$(pkg-config --cflags --libs librefd-git2) "-Wl,-rpath-link,$to/usr/lib"
# A program without a sanitizer loads the runtime of one too late: after libc,
# whose realpath it then takes for the oldest one, which allocates no memory.
runtime=$(ldd "$to/usr/lib/librefd-git2.so" |
	awk '/lib[at]san[.]so/ { print $3 }')
check 'and moves a branch' env LD_PRELOAD="$runtime" "$T/move" "$T/repo.git" \
	refs/heads/moved "$one"
is 'which is there' "$one" "$(ref_of repo.git refs/heads/moved)"
if [ -n "$runtime" ]; then
	skip 'the example of pygit2' 'python cannot load a sanitizer'
else
	check 'the example of pygit2' /usr/bin/python3 -B \
		"$ROOT/client/libgit2/example/move_branch.py" "$T/repo.git" \
		refs/heads/moved-by-python "$one"
	is 'its branch' "$one" "$(ref_of repo.git refs/heads/moved-by-python)"
fi
unset LD_LIBRARY_PATH
check 'both libraries have their stored interfaces' \
	"$ROOT/scripts/check-abi" "$to/usr"
check 'changes of an interface are noticed' \
	"$ROOT/scripts/check-abi" --self-test

# ---- the program for groups ----

check 'make install-group' mk install-group
is 'refd-group says how it is called' 'usage: refd group' \
	"$("$to/usr/libexec/refd/refd-group" -h | sed -n '1s/ \[.*//p')"

# ---- the program for web hooks ----

check 'make install-deliver' mk install-deliver
is 'refd-deliver says how it is called' 'usage: refd deliver' \
	"$("$to/usr/libexec/refd/refd-deliver" -h | sed -n '1s/ \[.*//p')"

# ---- the manual ----

is 'each command has a page, or stands in refd(1)' '' "$(refd help |
	sed -n 's/^    \([a-z-]*\) .*/\1/p' | while read -r command; do
	ls "$to"/usr/share/man/man[18]/refd-"$command".[18] >/dev/null 2>&1 ||
		grep -qE "^\.It Nm.* $command( |\$)" \
			"$to/usr/share/man/man1/refd.1" || echo "$command"
done)"
for page in man3/librefd.3 man5/refd-json.5 man5/refd.conf.5 \
	man7/refd-protocol.7; do
	check "$page" test -s "$to/usr/share/man/$page"
done

# ---- completion ----

# shellcheck source=client/completion/refd.bash
. "$to/usr/share/bash-completion/completions/refd"
complete_line() { # WORD...
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_refd 2>>"$T/completion.err"
	echo "${COMPREPLY[*]}"
}
is 'bash: a command' update "$(complete_line refd upd)"
is 'bash: an option' '--batch-updates' "$(complete_line refd update --batch)"
is 'bash: an option that may be negated' '--deref --no-deref' \
	"$(complete_line refd update --deref) $(complete_line refd update --no-d)"
# The command accepts every completion.
bad=
mkdir "$T/empty"
for command in $(complete_line refd ''); do
	for option in $(complete_line refd "$command" --); do
		said=$(cd "$T/empty" && timeout 2 refd "$command" "$option" -h \
			2>&1 </dev/null)
		case $said in
		*unknown\ option* | *unrecognized\ option* | *invalid\ option*)
			bad="$bad $command $option" ;;
		esac
	done
done
is 'what is offered is taken' '' "$bad"

# Values. A name that the shell would run stays a name. The installed refd does
# not find refd-daemon below DESTDIR.
PATH=$BUILD/bin:$PATH
cd "$T" || exit 1
new_repo 'a b.git' bare
evil="refs/heads/\$(touch\${IFS}ran)"
two=$(new_commit 'a b.git' two)
git -C "$T/a b.git" update-ref "$evil" "$two"
git -C "$T/a b.git" update-ref refs/heads/main "$two"
git init -q --bare "$T/\$(touch ran2).git"
refd enable 'a b.git' "\$(touch ran2).git" >/dev/null 2>&1
quoted_evil='refs/heads/\$\(touch\$\{IFS\}ran\)'
is 'bash: modes of durability' 'none periodic journal batch fsync' \
	"$(complete_line refd daemon --durability '')"
is 'bash: each is one' '' "$(for mode in $(complete_line refd check-config \
	--durability = =); do
	refd check-config --root / --durability "$mode" >/dev/null ||
		echo "$mode"
done)"
is 'bash: repositories' "$T/a\\ b.git $T/"'\$\(touch\ ran2\).git' \
	"$(complete_line refd verify '')"
for line in 'log --repo' doctor disown disable; do
	# shellcheck disable=SC2086
	is "bash: a repository of $line" "$T/a\\ b.git" \
		"$(complete_line refd $line "$T/a")"
done
is 'bash: refs of another repository' refs/heads/main \
	"$(complete_line refd log --repo "$T/a\\ b.git" --ref refs/heads/m)"
is 'bash: and behind =' "$quoted_evil" "$(complete_line refd log \
	--repo = "$T/a\\ b.git" --ref = 'refs/heads/$')"
is 'bash: refs to update' "$quoted_evil refs/heads/main" \
	"$(cd 'a b.git' && complete_line refd update -m x refs/)"
is 'bash: a user' root "$(complete_line refd log --user roo)"
is 'bash: a command to explain' verify "$(complete_line refd help veri)"
is 'bash: files for other values' '' \
	"$(complete_line refd daemon --config '')$(complete_line refd log -n 1)"
is 'bash: no errors' '' "$(cat "$T/completion.err")"

# shellcheck disable=SC2016 # the text is a program of zsh
on_zsh() { # LINE SIGN: what zsh makes of the line, up to the sign
	timeout 15 zsh -f -c '
		zmodload zsh/zpty
		zpty z zsh -f -i
		zpty -w z "PS1=; fpath=($1 \$fpath); autoload -U compinit"
		zpty -w z "unsetopt LIST_BEEP; compinit -u -D; echo rea\dy"
		zpty -r -m z said "*ready*"
		zpty -w -n z "$2"$'\''\t'\''
		zpty -r -m z said "*$3*"
		print -r -- "$said"' - "$to/usr/share/zsh/site-functions" \
		"$1" "$2" 2>/dev/null
}
if command -v zsh >/dev/null; then
	check 'zsh: syntax' zsh -n "$to/usr/share/zsh/site-functions/_refd"
	while read -r line sign; do
		check "zsh: ${line//_/ }" grep -qaF -e "$sign" \
			<(on_zsh "${line//_/ }" "$sign")
	done <<-'LINES'
		refd_upd update
		refd_daemon_--durability_per periodic
		refd_update_--batch --batch-updates
	LINES
	check 'zsh: a repository' grep -qaF 'b.git' \
		<(on_zsh "refd verify $T/a" 'b.git')
	check 'zsh: a ref' grep -qaF 'refs/heads/main' \
		<(on_zsh "refd log --repo '$T/a b.git' --ref refs/heads/m" main)
else
	skip 'zsh' 'there is none'
fi
is 'nothing was run' '' "$(find . -name 'ran*')"

# ---- and away ----

check 'make uninstall' mk uninstall
prints_nothing 'nothing is left' find "$to" ! -type d
is 'nor a directory of its own' '' "$(find "$to" -name '*refd*')"
finish
