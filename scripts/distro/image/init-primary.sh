#!/bin/sh
# The image of PostgreSQL runs this script once, in a new primary. From the next
# start on, a commit waits for the standby s1.

set -eu
psql -v ON_ERROR_STOP=1 -U postgres <<'SQL'
CREATE ROLE refd LOGIN;
GRANT pg_read_all_stats TO refd;
CREATE DATABASE refd OWNER refd;
ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s1)';
SQL
echo 'host replication postgres samenet trust' >>"$PGDATA/pg_hba.conf"
