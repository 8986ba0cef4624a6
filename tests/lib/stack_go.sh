# shellcheck shell=bash disable=SC2154 # of stack.sh and root.sh
# Servers in Go, for tests/stacks. Sourced by stack.sh outside of the root. A
# script sets stack_go before it sources stack.sh:
#
#	stack_go='NAME MODULE VERSION PACKAGE [TAGS]'
#
# NAME is in the PATH of the root, and /stack/source has the sources. The Go
# module proxy serves them. If it does not, put the sources of this version into
# $STACKS_CACHE/sources/NAME-VERSION.

# Builds the program, once for each cache. Skips and ends the script if the
# sources or a module cannot be had.
go_program() {
	local name module version package tags
	read -r name module version package tags <<<"$stack_go"
	STACK_SOURCE=$root_cache/sources/$name-$version
	STACK_PROGRAM=$root_cache/programs/$name-$version/$name
	export STACK_SOURCE STACK_PROGRAM
	export GOMODCACHE=$root_cache/go GOCACHE=$root_cache/go-build
	export GOFLAGS=-modcacherw CGO_ENABLED=0
	if ! command -v go >/dev/null; then
		skip "$name" 'no go to build the server'
		finish
	fi
	mkdir -p "$root_cache/sources"
	exec 9>"$STACK_SOURCE.lock" || exit
	flock 9
	[ -d "$STACK_SOURCE" ] || STACK_SOURCE=$(go mod download -json \
		"$module@$version" 2>"$T/go" |
		sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	if [ -z "$STACK_SOURCE" ]; then
		skip "$name" "no sources of $module $version: $(tail -n 1 "$T/go")"
		finish
	fi
	if [ ! -x "$STACK_PROGRAM" ] && ! (cd "$STACK_SOURCE" && go build \
		-trimpath -tags "$tags" -o "$STACK_PROGRAM" "$package") \
		>"$T/go" 2>&1; then
		skip "$name" "cannot be built: $(tail -n 1 "$T/go")"
		finish
	fi
	exec 9>&-
}

# In the namespaces of the root.
go_mount() { # ROOT
	install -m 755 "$STACK_PROGRAM" "$1/usr/local/bin"
	mkdir -p "$1/stack/source"
	mount --bind -o ro "$STACK_SOURCE" "$1/stack/source"
}
