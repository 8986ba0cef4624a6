"""For the cases of tests/long/group_admin.sh: PostgreSQL with a standby, three
nodes, and steps that more than one file of cases needs.

    CASES.py REFD-GROUP DIRECTORY BINARIES UID SECONDS"""
import os
import random
import signal
import sys

from group import Node, Postgres, new_row, wait_for
from group_console import Console, check_log, expect, report, same

PROGRAM, TOP, BINARIES, UID, SECONDS = sys.argv[1:]
LEASE = 3
random.seed(int(os.environ.get('GROUP_SEED', '1')))
pg = Postgres(TOP, BINARIES, int(UID))
console = Console(PROGRAM, TOP, lease=f'{LEASE}s')
a, b, c = nodes = [Node(name, PROGRAM, console.config(name), TOP)
                   for name in 'abc']


def check(name):
    check_log(name, pg, nodes)


def leader():
    return next((n for n in nodes if n.role and n.role[0]), None)


def leads(name, node, seconds=20):
    report(f'{name}: {node.name} leads', node.await_role(True, seconds),
           node.role)
    same(f'{name}: {node.name} commits', 'COMMITTED',
         node.outcome(node.batch(new_row())))


def lease(column):
    return pg.sql(f'SELECT {column} FROM refd.lease')


def rest(name):
    """All nodes run and have all rows, and a leads."""
    for node in nodes:
        node.kill(signal.SIGCONT)
    wait_for(20, lambda: leader())
    if not a.role or not a.role[0]:
        expect(f'{name}: the lead goes back to a', 0, "'a' leads",
               console.run('promote', 'a', node='b'))
    leads(name, a)
    report(f'{name}: all nodes have all rows', wait_for(20, lambda: {
        n.applied for n in nodes} == {a.applied}), [n.applied for n in nodes])
    for node in nodes:
        same(f'{name}: refd-group of {node.name} runs', None,
             node.process.poll() and node.message()[-400:])
    assert wait_for(20, lambda: pg.sql(
        f'SELECT count(*) FROM refd.node WHERE applied = {a.applied}') == '3')
    check(name)


def restart(node):
    node.end()
    node.start()
