# shellcheck shell=bash
# For scenarios of refd-deliver, after scenario.sh: a receiver of web hooks
# (hook.py), and the service, with the state $T/deliver and the configuration
# $T/deliver.conf. The service's messages go to $T/deliver.log.

unset http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
HOOK_SECRET='It is a Secret to Everybody'
SERVICE=

# Sets HOOK_PORT. The receiver logs to LOG, if given.
start_hook() { # [LOG]
	: >"$T/rules"
	python3 "$ROOT/tests/lib/hook.py" "$T/port" "$T/rules" "$HOOK_SECRET" \
		"$@" 2>"$T/hook.err" &
	own $!
	await 10 test -s "$T/port" || return 1
	HOOK_PORT=$(cat "$T/port")
	printf '%s\n' "$HOOK_SECRET" >"$T/secret"
	chmod 640 "$T/secret"
}

hook_count() { # KEY
	curl -sS "http://127.0.0.1:$HOOK_PORT/counts" |
		sed -E "s/.*\"$1\": ([0-9]+).*/\1/"
}

deliver() { # OPTION...
	"$REFD" deliver --config "$T/deliver.conf" --state "$T/deliver" "$@"
}

start_service() {
	"$REFD" deliver --config "$T/deliver.conf" --state "$T/deliver" \
		2>>"$T/deliver.log" &
	SERVICE=$!
	own $SERVICE
}

kill_service() {
	kill -KILL "$SERVICE"
	reap "$SERVICE"
	SERVICE=
}

stop_service() {
	local pid=$SERVICE
	SERVICE=
	kill -TERM "$pid"
	reap "$pid"
}

# A value of the service's metrics.
metric() { # NAME ENDPOINT
	deliver --prometheus | sed -n "s/^refd_deliver_$1{endpoint=\"$2\"} //p"
}

# Has the endpoint a position in the feed? From then on no change is left out.
has_begun() { # ENDPOINT
	python3 - "$T/deliver/deliver.db" "$1" <<-'PYTHON'
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		row = db.execute("SELECT journal FROM endpoint WHERE name=?",
		    sys.argv[2:]).fetchone()
		sys.exit(not (row and row[0]))
	PYTHON
}
