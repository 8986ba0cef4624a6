#!/bin/bash
# Prometheus' own tools have nothing to say of what it is given: the text that
# the daemon answers with, under load, and the rules for alerts. One of these
# fires where it should: promtool runs them over numbers that were made up.
# promtool is taken out of Debian's package, which is not installed: that would
# start a server.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

promtool=$(command -v promtool)
if [ -z "$promtool" ] && cd "$T" && apt-get -q download prometheus \
	>"$T/apt.log" 2>&1 && dpkg-deb -x prometheus_*.deb "$T/deb"; then
	promtool=$T/deb/usr/bin/promtool
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
    alert_rule_test:
      - eval_time: 2m
        alertname: RefdNotServing
      - eval_time: 6m
        alertname: RefdNotServing
        exp_alerts:
          - exp_labels: {instance: a, job: refd, severity: critical}
            exp_annotations:
              summary: refd on a does not serve
              description: It recovers, was drained or is paused; refd status says which.
      - eval_time: 5m
        alertname: RefdCheckpointFails
        exp_alerts:
          - exp_labels: {instance: a, job: refd, severity: warning}
            exp_annotations:
              summary: refd on a can't checkpoint
              description: A power cut would have to replay more and more. A file system does not sync, or the disk is full.
      - eval_time: 2m
        alertname: RefdLoopStalls
      - eval_time: 5m
        alertname: RefdLoopStalls
        exp_alerts:
          - exp_labels: {instance: a, job: refd, severity: warning}
            exp_annotations:
              summary: the loop of refd on a stood still for more than a second
YML
check 'the rules fire, and do not' "$promtool" test rules "$T/cases.yml"
check 'the daemon stops' stop_daemon
finish
