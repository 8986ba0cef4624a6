#!/bin/bash
# Proves that the metrics fit Prometheus and Grafana. Prometheus' own tools
# accept the text of a daemon under load, and the rules for alerts. promtool
# runs the rules over invented numbers, and the right alert fires. Grafana's own
# types accept the dashboard, and a Prometheus that scraped a busy daemon
# answers each of its queries. Both programs are unpacked from Debian's packages
# without installation, because an installation would start a server.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/server.sh
. "$ROOT/tests/lib/server.sh"

promtool=$(command -v promtool)
prometheus=$(command -v prometheus)
if [ -z "$promtool" ] && cd "$T" && apt-get -q download prometheus \
	>"$T/apt.log" 2>&1 && dpkg-deb -x prometheus_*.deb "$T/deb"; then
	promtool=$T/deb/usr/bin/promtool
	prometheus=$T/deb/usr/bin/prometheus
fi
if [ -z "$promtool" ]; then
	skip promtool "the package prometheus can't be had: $(tail -1 "$T/apt.log")"
	finish
fi

printf '[metrics]\n\tsocket = %s\n' "$T/metrics.sock" >"$T/config"
check 'the daemon starts' start_daemon --config "$T/config"
new_repo a.git bare
one=$(new_commit a.git one)
two=$(new_commit a.git two)
"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/a.git" --oid "$one" \
	--oid "$two" --clients 4 --txns 500 >"$T/storm" &
storm=$!
own $storm
for i in {1..5}; do
	sleep 0.3
	curl -sf --unix-socket "$T/metrics.sock" http://refd/metrics >"$T/text"
	check "scraped under load, $i" "$promtool" check metrics <"$T/text"
done
reap "$storm"

rules=$ROOT/daemon/metrics/refd.rules.yml
check 'the rules' "$promtool" check rules --lint=all --lint-fatal "$rules"
cat >"$T/cases.yml" <<YML
rule_files: ["$rules"]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'refd_serving{instance="a", job="refd"}'
        values: '1 1 1 0 0 0 0 0'
      - series: 'refd_paused{instance="a", job="refd"}'
        values: '0x10'
      - series: 'refd_checkpoint_age_seconds{instance="a", job="refd"}'
        values: '1 1 200 300 400 500'
      - series: 'refd_loop_turn_seconds_count{instance="a", job="refd"}'
        values: '10 20 30 41 51 61'
      - series: 'refd_loop_turn_seconds_bucket{instance="a", job="refd", le="1.000000"}'
        values: '10 20 30 40 50 60'
      - series: 'refd_group_member{instance="a", job="refd"}'
        values: '1x10'
      - series: 'refd_group_member{instance="b", job="refd"}'
        values: '1x10'
      - series: 'refd_group_member{instance="c", job="alone"}'
        values: '0x10'
      - series: 'refd_group_epoch{instance="a", job="refd"}'
        values: '4 4 0 0 0 0 0'
      - series: 'refd_group_epoch{instance="b", job="refd"}'
        values: '0 0 5 0 0 0 0'
      - series: 'refd_group_epoch{instance="c", job="alone"}'
        values: '0x10'
      - series: 'refd_group_lag_seconds{instance="b", job="refd"}'
        values: '0 0 0 11 71 131'
      - series: 'refd_group_lag_seconds{instance="c", job="alone"}'
        values: '0x10'
      - series: 'refd_group_connected{instance="a", job="refd"}'
        values: '1x10'
      - series: 'refd_group_connected{instance="b", job="refd"}'
        values: '1 1 1 0 0 0 0'
      - series: 'refd_group_connected{instance="c", job="alone"}'
        values: '0x10'
      - series: 'refd_group_epoch{instance="d", job="other"}'
        values: '3x10'
      - series: 'refd_busy_total{cause="group", instance="d", job="other"}'
        values: '7 8 9 9 9 9 9 9 9 9'
      - series: 'refd_busy_total{cause="group", instance="b", job="refd"}'
        values: '7 8 9 9 9 9 9 9 9 9'
      - series: 'refd_group_row_seconds{instance="b", job="refd"}'
        values: '0 0 0 5 65 0'
      - series: 'refd_stage_stuck_threads{instance="a", job="refd", stage="admission"}'
        values: '0 1 1 1 0 0'
    alert_rule_test:
      - eval_time: 1m
        alertname: RefdStalled
      - eval_time: 3m
        alertname: RefdStalled
        exp_alerts:
          - exp_labels: {instance: a, job: refd, severity: warning, stage: admission}
            exp_annotations:
              summary: 1 threads of refd on a are stuck in admission
              description: A repository or its disk does not answer. refd status names both. Updates there wait; all others are served while threads are free.
      - eval_time: 2m
        alertname: RefdGroupNoLeader
      - eval_time: 4m
        alertname: RefdGroupNoLeader
        exp_alerts:
          - exp_labels: {job: refd, severity: critical}
            exp_annotations:
              summary: no node of the group refd leads
              description: All updates are refused. refd group status has the lease and the standbys. PostgreSQL, its standbys, or refd-group on the nodes are away, or every node has a row that waits.
      - eval_time: 3m
        alertname: RefdGroupLags
      - eval_time: 4m
        alertname: RefdGroupLags
        exp_alerts:
          - exp_labels: {instance: b, job: refd, severity: warning}
            exp_annotations:
              summary: refd on b lacks rows of its group
              description: The node has not had every row for 1m 11s, so it serves no reads and may not lead. refd group status shows PostgreSQL and its standbys; refd role -v shows the row.
      - eval_time: 3m
        alertname: RefdGroupRowWaits
      - eval_time: 4m
        alertname: RefdGroupRowWaits
        exp_alerts:
          - exp_labels: {instance: b, job: refd, severity: warning}
            exp_annotations:
              summary: refd on b cannot apply a row of its group
              description: Its repository gets no later row, and the node cannot lead. The log of refd has the reason (group-row-waits) - a lock of another program, a missing object, or a full disk.
      - eval_time: 2m
        alertname: RefdGroupRefuses
        exp_alerts:
          - exp_labels: {cause: group, instance: d, job: other, severity: critical}
            exp_annotations:
              summary: the leader d of a group refuses updates
              description: Too few other nodes get the objects of updates, or PostgreSQL or its standbys do not answer. The messages of git push name the reason; refd group status shows nodes and standbys.
      - eval_time: 9m
        alertname: RefdGroupRefuses
      - eval_time: 3m
        alertname: RefdGroupDisconnected
      - eval_time: 4m
        alertname: RefdGroupDisconnected
        exp_alerts:
          - exp_labels: {instance: b, job: refd, severity: warning}
            exp_annotations:
              summary: refd-group on b is not connected to refd
              description: The node neither leads nor follows. systemctl status refd-group and journalctl -u refd-group have the reason.
      - eval_time: 2m
        alertname: RefdNotServing
      - eval_time: 6m
        alertname: RefdNotServing
        exp_alerts:
          - exp_labels: {instance: a, job: refd, severity: critical}
            exp_annotations:
              summary: refd on a does not serve
              description: The daemon recovers, is drained or is paused; refd status shows the state. refd resume ends drained and paused.
      - eval_time: 5m
        alertname: RefdCheckpointFails
        exp_alerts:
          - exp_labels: {instance: a, job: refd, severity: warning}
            exp_annotations:
              summary: refd on a cannot checkpoint
              description: The start after a power cut would replay more and more records. A file system does not sync, or the disk is full.
      - eval_time: 2m
        alertname: RefdLoopStalls
      - eval_time: 5m
        alertname: RefdLoopStalls
        exp_alerts:
          - exp_labels: {instance: a, job: refd, severity: warning}
            exp_annotations:
              summary: the loop of refd on a stood still for more than a second
              description: The daemon read no request meanwhile. The machine lacks processor time or memory, or refd has a bug. turn_max_us in refd stats has the duration.
YML
check 'the rules fire, and do not' "$promtool" test rules "$T/cases.yml"

# ---- the dashboard ----

# The dashboard's queries, with Grafana's variables filled in, one on a line.
python3 - "$ROOT/daemon/metrics/dashboard.json" >"$T/queries" <<'PY'
import json, sys
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel["targets"]:
        print(target["expr"].replace("$instance", ".*")
              .replace("$__rate_interval", "5s"))
PY
# Prometheus scrapes over TCP.
python3 - "$T/metrics.sock" "$T/port" 2>"$T/pass.log" <<'PY' &
import http.server, socket, sys
class Pass(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        while data := s.recv(65536):
            self.wfile.write(data)
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Pass)
open(sys.argv[2], "w").write(str(server.server_port))
server.serve_forever()
PY
own $!
await 10 [ -s "$T/port" ]
cat >"$T/prometheus.yml" <<YML
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: refd
    static_configs: [{targets: ["127.0.0.1:$(cat "$T/port")"]}]
YML
"$prometheus" --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/tsdb" \
	--web.listen-address="127.0.0.1:$(($(cat "$T/port") % 1000 + 42000))" \
	>"$T/prometheus.log" 2>&1 &
own $!
url=http://127.0.0.1:$(($(cat "$T/port") % 1000 + 42000))
"$REFD" update -C "$T/a.git" refs/heads/stale "$two" "$two" 2>"$T/err"
for _ in {1..6}; do
	"$BUILD/tests/helper/storm" --socket "$SOCKET" --repo "$T/a.git" \
		--oid "$one" --oid "$two" --clients 4 --txns 100 >"$T/storm"
	"$REFD" update -C "$T/a.git" refs/heads/stale "$two" "$two" 2>"$T/err"
	sleep 1
done
check 'Prometheus is up' await 20 curl -sf -o "$T/out" "$url/-/ready"
unanswered=
while IFS= read -r query; do
	"$promtool" query instant "$url" "$query" >"$T/out" 2>&1 &&
		[ -s "$T/out" ] || unanswered+="$query"$'\n'
done <"$T/queries"
is "each of the dashboard's $(wc -l <"$T/queries") queries is answered" '' \
	"$unanswered"

if command -v npm >/dev/null && mkdir "$T/npm" && cd "$T/npm" &&
	npm install --no-audit --no-fund @grafana/schema@11.2.0 \
		typescript@5.4 >"$T/npm.log" 2>&1; then
	{
		echo "import { Dashboard, Panel } from '@grafana/schema';"
		printf 'const dashboard: Dashboard = '
		cat "$ROOT/daemon/metrics/dashboard.json"
		printf ';\nconst panels: Panel[] = '
		python3 -c 'import json, sys
print(json.dumps(json.load(open(sys.argv[1]))["panels"]))' \
			"$ROOT/daemon/metrics/dashboard.json"
		echo ';'
	} >dashboard.ts
	types() {
		npx tsc --noEmit --strict --skipLibCheck \
			--moduleResolution node "$1" >"$T/out" 2>&1
	}
	check "Grafana's types take it" types dashboard.ts
	sed 's/"gridPos"/"gridPose"/' dashboard.ts >wrong.ts
	types wrong.ts
	is 'and not what is misspelt' 2 $?
	cd "$T" || exit 1
else
	skip grafana "npm can't have @grafana/schema"
fi
check 'the daemon stops' stop_daemon
finish
