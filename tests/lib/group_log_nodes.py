"""For the cases of tests/long/group_log.sh: PostgreSQL with a standby, two
nodes, and steps that more than one file of cases needs.

    CASES.py REFD-GROUP DIRECTORY BINARIES UID SECONDS"""
import os
import random
import sys
import time

from group import Locked, Node, Postgres
from group_console import Console, check_log

PROGRAM, TOP, BINARIES, UID, SECONDS = sys.argv[1:]
LEASE = 2
random.seed(int(os.environ.get('GROUP_SEED', '1')))
pg = Postgres(TOP, BINARIES, int(UID))
console = Console(PROGRAM, TOP, lease=f'{LEASE}s')
a, b = nodes = [Node(name, PROGRAM, console.config(name), TOP)
                for name in 'ab']


def cancel_all(seconds):
    """No COMMIT of the role waits, and none is replicated."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pg.sql("""SELECT pg_cancel_backend(pid) FROM pg_stat_activity
            WHERE usename = 'refd' AND wait_event = 'SyncRep'""")


def check(name):
    check_log(name, pg, nodes)


def locked_lsn():
    """Another session holds the next LSN: a batch waits behind its fence."""
    return Locked(pg, """INSERT INTO refd.log SELECT grp, lsn + 1, epoch,
        '\\x00', repo, txid, uid, time_ms, final, path, body, objects
        FROM refd.log ORDER BY lsn DESC LIMIT 1""")


def leader():
    return a if a.role and a.role[0] else b if b.role and b.role[0] else None
