# shellcheck shell=bash disable=SC2034
# Sourced by the scripts beside it. WORKDIR: an existing scratch directory
# (default: a new one, which stays).

WORKDIR=${WORKDIR:-$(mktemp -d)}
cd "$WORKDIR" || exit 1
export HOME=$WORKDIR GIT_CONFIG_NOSYSTEM=1 LC_ALL=C
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@x
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@x
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'

git=$1
Z=0000000000000000000000000000000000000000
X=1111111111111111111111111111111111111111

# A repository with three tagged commits, two symrefs and two packed refs.
# The working directory is in it afterwards.
fixture() { # DIR
	local i
	rm -rf "$1"
	"$git" init -q -b main "$1" && cd "$1" || exit 1
	for i in 1 2 3; do
		"$git" commit -q --allow-empty -m c$i
		"$git" tag c$i
	done
	C1=$("$git" rev-parse c1)
	C2=$("$git" rev-parse c2)
	T=$("$git" rev-parse 'c1^{tree}')
	"$git" symbolic-ref refs/heads/sym refs/heads/main
	"$git" symbolic-ref refs/heads/dang refs/heads/nowhere
	"$git" update-ref refs/heads/d/f c1
	"$git" update-ref refs/heads/pk/x c1
	"$git" pack-refs --all
}

# What was said, with the paths in it as if WORKDIR were the root.
said() {
	sed "s/^/  out: /" o
	sed "s|$WORKDIR/||g; s/^/  err: /" e
}

# INPUT, with backslashes for the unusual (\0 is a NUL, whatever follows it), by
# --stdin.
try() { # INPUT [OPTION...]
	local input=${1//\\0/\\0000} rc=0
	shift
	printf '%b' "$input" | "$git" update-ref "$@" --stdin >o 2>e || rc=$?
	echo "--- in: $(printf '%b' "$input" | tr '\n\0' '|^')  rc=$rc"
	said
}
