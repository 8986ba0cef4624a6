#!/bin/bash
# Proves that the client libraries for Go and Rust follow the protocol, with the
# cases of tests/scenario/clients.sh; that they need no cgo, no other module and
# no other crate; that gofmt, go vet and rustfmt accept them; and that the Python
# package builds as a wheel. The compilers are Debian's.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/clients.sh
. "$ROOT/tests/lib/clients.sh"

if ! "$ROOT/scripts/deps" --clients >"$T/deps" 2>&1; then
	skip clients "$(tail -n 1 "$T/deps")"
	finish
fi
# Debian's programs, not other installations.
PATH=/usr/bin:$PATH
export PATH
clients_begin || finish

# ---- Go ----

export GO111MODULE=on GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0
export GOFLAGS=-buildvcs=false GOCACHE=$T/go GOPATH=$T/gopath
cp -r "$ROOT/client/go" "$T/src-go"
cd "$T/src-go" || exit 1
prints_nothing 'gofmt' gofmt -l .
check 'go vet' go vet ./...
check 'go test' go test ./...
check 'no other module' test "$(go list -m all)" = refd
check 'the runner of Go' go test -c -o "$T/runner" .
check 'the example of Go' go build -o "$T/example" ./example
clients_run "go=REFD_RUNNER=1 $T/runner"
is 'the example of Go runs' 2 "$("$T/example" "$T/repo.git" refs/heads/go/example \
	"$one" | grep -c -- "-> $one\$")"

# ---- Rust ----

# The crate compares its messages with ../../proto/vectors.json.
mkdir -p "$T/rust/client" "$T/rust/proto"
cp -r "$ROOT/client/rust" "$T/rust/client"
cp "$ROOT/proto/vectors.json" "$T/rust/proto"
cd "$T/rust/client/rust" || exit 1
export CARGO_HOME=$T/cargo RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
export RUSTFLAGS='-D warnings' RUSTDOCFLAGS='-D warnings'
if [ -x /usr/bin/rustfmt ]; then
	check 'rustfmt' rustfmt --check --edition 2021 src/*.rs examples/*.rs \
		tests/*.rs
fi
check 'cargo build' cargo build -q --offline --locked --examples
check 'cargo test' cargo test -q --offline --locked
check 'cargo doc' cargo doc -q --offline --locked --no-deps
check 'no other crate' test "$(cargo tree --offline --locked -e all |
	wc -l)" -eq 1
clients_run "rust=target/debug/examples/runner"
is 'the example of Rust runs' 2 "$(target/debug/examples/move_branch \
	"$T/repo.git" refs/heads/rust/example "$two" |
	grep -c -- "-> $two\$")"

# ---- Python ----

cp -r "$ROOT/client/python" "$T/src-python"
check 'a wheel' python3 -m pip wheel -q --no-build-isolation --no-deps \
	--no-index -w "$T/wheel" "$T/src-python"
python3 -m pip install -q --no-index --no-deps --target "$T/installed" \
	"$T"/wheel/*.whl
check 'the wheel is complete' env -C / PYTHONPATH="$T/installed" python3 -c \
	'import refd.aio'
no_locks 'no lock is left' repo.git
finish
