#!/bin/bash
# Proves that the client library for Go follows the protocol, with the cases of
# tests/scenario/clients.sh; that it needs no cgo and no other module; that gofmt
# and go vet accept it; and that the Python package builds as a wheel. The
# compiler is Debian's.

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
is 'the example runs' 2 "$("$T/example" "$T/repo.git" refs/heads/go/example \
	"$one" | grep -c -- "-> $one\$")"

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
