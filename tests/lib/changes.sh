# shellcheck shell=bash
# The changes that history tells, beside the refs on disk. Sourced after
# scenario.sh.

# The changes in history of a repository, without object ids that are not known:
# "REF OLD NEW", where - is no ref and ? is not known.
changes() { # NAME [OPTION...]
	"$REFD" log --repo "$T/$1" --reverse --json "${@:2}" |
		python3 -c '
import json, sys
for line in sys.stdin:
    c = json.loads(line)
    if c.get("status") == "ok" and c.get("ref"):
        o, n = (c.get(k, "?") for k in ("old", "new"))
        print(c["ref"], *("-" if set(v) == {"0"} else v for v in (o, n)))'
}

# New lines of `changes NAME OPTION...` since the last call.
news_of() { # NAME [OPTION...]
	touch "$T/told.$1"
	changes "$@" >"$T/changes"
	tail -n +$(($(wc -l <"$T/told.$1") + 1)) "$T/changes" | sort
	cp "$T/changes" "$T/told.$1"
}

# Refs that differ between the replayed feed and the disk.
differs() { # NAME
	changes "$1" | awk '{ at[$1] = $3 }
		END { for (r in at) if (at[r] != "-" && r != "HEAD")
			print at[r], r }' | sort >"$T/replayed"
	git -C "$T/$1" for-each-ref --format='%(objectname) %(refname)' |
		sort >"$T/there"
	diff "$T/replayed" "$T/there"
}
