#!/bin/bash
# Proves what a node of a group tells about itself, with the log in memory of
# group_nodes.sh: its role, for scripts and for load balancers; whether it has an update; how long it has
# lacked rows; and that it neither leads nor answers for an id when its lease has
# ended.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=tests/lib/group_run.sh
. "$(dirname "$0")/../lib/group_run.sh"

run_cases group_cases_role.py
finish
