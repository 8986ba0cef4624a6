#!/bin/bash
# Proves that `refd update` prints the same as git's update-ref. For the inputs
# of tests/golden/, standard output, standard error and exit status must be
# those of git 2.55, or with --compat=2.39 those of git 2.39, line by line.
# Every intended difference is listed here in full, with its reason. Any other
# difference fails the test, and so does a listed difference that no longer
# exists.
# Slow: it runs hundreds of commands, one after the other.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

golden=$ROOT/tests/golden

# Takes git's place: update-ref goes to refd.
mkdir "$T/shim"
cat >"$T/shim/git" <<END
#!/bin/sh
[ "\$1" = update-ref ] || exec git "\$@"
shift
exec '$REFD' update \$SHIM_OPTION "\$@"
END
chmod +x "$T/shim/git"

# ---- expected output ----

# Begins with git's output. In its usage, refd names itself.
expect_as() { # FILE
	sed 's/git update-ref \[<options>\]/refd update [<options>]/' \
		"$golden/$1" | without_options >"$T/expected"
}

# Keeps only the first lines of the answer to -h: refd has its own options.
without_options() {
	awk '/^--- / { help = /^--- cli: -h/; blank = 0 }
		help && /^  out: $/ { blank = 1 }
		!blank { print }'
}

# Replaces the expected answer to the input that begins with INPUT by standard
# input.
instead() { # INPUT REASON
	local found
	cat >"$T/block"
	found=$(awk -v head="--- $1" -v out="$T/expected.new" -v by="$T/block" '
		/^--- / {
			inside = index($0, head) == 1
			if (inside) {
				n++
				while ((getline line <by) > 0)
					print line >out
			}
		}
		!inside { print >out }
		END { print n + 0 }' "$T/expected")
	is "$suite: $2" 1 "$found"
	mv "$T/expected.new" "$T/expected"
}

# ---- comparison ----

compare() { # SCRIPT [OPTION]
	export SHIM_OPTION=${2:-}
	mkdir -p "$T/$suite"
	WORKDIR=$T/$suite bash "$golden/$1" "$T/shim/git" 2>&1 |
		without_options >"$T/got"
	if diff -u "$T/expected" "$T/got" >"$T/diff"; then
		ok "$suite"
	else
		not_ok "$suite" "differs from what is expected"
		cat "$T/diff"
	fi
}

check 'the daemon starts' start_daemon

first=b7ba29b6aefdb440735575987ff7dfea8bdf384c

suite=2.55
expect_as nb55.txt
instead "in: delete refs/heads/d/f|create refs/heads/d $first|" \
	'the lock of a deletion is not in the way of another ref' <<END
--- in: delete refs/heads/d/f|create refs/heads/d $first|  rc=128
  err: fatal: 'refs/heads/d/f' exists; cannot create 'refs/heads/d'
END
compare nb.sh

suite=2.55-batch
expect_as batch55.txt
instead "in: update HEAD $first|update refs/heads/main $first|" \
	'a conflict like any other, not a race' <<END
--- in: update HEAD $first|update refs/heads/main $first|  rc=0
  out: rejected HEAD $first (null) refname conflict
  out: rejected refs/heads/main $first (null) refname conflict
  err: error: multiple updates for 'refs/heads/main' (including one via \
symref 'HEAD') are not allowed
  err: error: multiple updates for 'HEAD' (including one via its referent \
'refs/heads/main') are not allowed
END
compare batch.sh

# git's message about an existing file with this name.
not_config() {
	local why="refusing to update 'config', which git keeps something else"
	instead "in: update config $first|" 'some names are never refs' <<-END
		--- in: update config $first|  rc=128
		  err: fatal: $why under
	END
}

suite=2.55-more
expect_as more55.txt
not_config
compare more.sh

suite=2.55-symref
expect_as symref55.txt
compare symref.sh

suite=2.39-more
expect_as more39.txt
not_config
compare more.sh --compat=2.39

suite=2.39
expect_as nb39.txt
for name in FETCH_HEAD MERGE_HEAD; do
	instead "in: update $name " 'words are old, rules are not' <<-END
		--- in: update $name $first|  rc=128
		  err: fatal: refusing to update pseudoref '$name'
	END
done
# To ask for help is no error.
sed -i '/^--- cli: -h/{n;s/rc=129/rc=0/;}' "$T/expected"
compare nb.sh --compat=2.39

suite=2.39-environment
REFD_COMPAT=2.39 compare nb.sh

check 'the daemon stops' stop_daemon
finish
