"""The cases of tests/long/group_patroni.sh.

    group_patroni.py REFD-GROUP DIRECTORY BINARIES UID ROUNDS"""
import os
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import Node, new_row, wait_for  # noqa: E402
from group_console import (Console, check_log, expect, report,  # noqa: E402
                           same)
from group_patroni import Cluster  # noqa: E402

PROGRAM, TOP, BINARIES, UID, ROUNDS = sys.argv[1:]
subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)


class Writer(threading.Thread):
    """Appends rows through the leader, one batch after the other."""

    def __init__(self):
        super().__init__(daemon=True)
        self.has_ended = threading.Event()
        self.committed = []     # times
        self.stood_still = 0    # the longest time between two of them

    def run(self):
        while not self.has_ended.wait(0.02):
            node = next((n for n in nodes if n.role and n.role[0]), None)
            if not node:
                continue
            try:
                outcome = node.outcome(node.batch(new_row()), 60)
            except OSError:     # the node has a new process
                continue
            if outcome.endswith('COMMITTED'):
                now = time.monotonic()
                if self.committed:
                    self.stood_still = max(self.stood_still,
                                           now - self.committed[-1])
                self.committed.append(now)

    def goes_on(self, seconds=90):
        nr = len(self.committed)
        return wait_for(seconds, lambda: len(self.committed) > nr + 5)

    def end(self):
        self.has_ended.set()
        self.join(90)


def rest(name):
    """Every node has every row, and nothing that was committed is lost."""
    writer.end()
    report(f'{name}: all nodes have all rows', wait_for(
        60, lambda: len({n.applied for n in nodes}) == 1
        and not any(n.open_rows() for n in nodes)),
        [(n.applied, len(n.open_rows())) for n in nodes])
    check_log(name, cluster, nodes)
    for node in nodes:
        same(f'{name}: refd-group of {node.name} runs', None,
             node.process.poll() and node.message()[-400:])


def begin():
    global writer
    writer = Writer()
    writer.start()


def test_start():
    for text in ('CREATE ROLE refd LOGIN', 'CREATE DATABASE refd OWNER refd',
                 'GRANT pg_read_all_stats TO refd'):
        cluster.sql(text, 'postgres')
    expect('create', 0, "created the group 'main'", console.run('create'))
    # One after the other: all make the same directory for git.
    for node in nodes:
        node.start()
        report(f'{node.name} starts', wait_for(30, lambda node=node: node.role),
               node.message())
    begin()
    report('rows are committed', writer.goes_on())
    expect('status', 0, 'copies: 1 synchronous standbys, 1 needed',
           console.run('status'))
    rest('start')


def change(name, function):
    begin()
    assert writer.goes_on(), name
    function()
    report(f'{name}: rows are committed', writer.goes_on(), cluster.roles())
    print(f'# {name}: no row was committed for {writer.stood_still:.1f} s, '
          f'{len(writer.committed)} were', flush=True)
    rest(name)
    assert wait_for(90, cluster.is_whole), cluster.roles()


def test_switchover():
    change('switchover', cluster.switch)


def fail_over():
    old = cluster.fail_over()
    assert writer.goes_on(), cluster.roles()
    old.start()


def test_failover():
    change('failover', fail_over)


def test_no_standby():
    """synchronous_mode_strict: nothing is committed without a standby."""
    begin()
    assert writer.goes_on()
    primary = cluster.primary()
    standbys = [m for m in cluster.members if m is not primary]
    for member in standbys:
        member.kill()
    time.sleep(1)
    nr = len(writer.committed)
    time.sleep(15)
    same('no standby: nothing is committed', nr, len(writer.committed))
    result = console.run('status')
    report('no standby: status says so', result[0] in (1, 75)
           and ('standbys are missing' in result[1]
                or 'has not answered' in result[1]), result)
    for member in standbys:
        member.start()
    report('the standbys come back: rows are committed', writer.goes_on(),
           cluster.roles())
    rest('no standby')
    assert wait_for(90, cluster.is_whole), cluster.roles()


def main():
    try:
        for test in [test_start, test_switchover, test_no_standby,
                     *[test_failover, test_switchover] * int(ROUNDS)]:
            began = time.monotonic()
            test()
            print(f'# {test.__name__}: {time.monotonic() - began:.1f} s',
                  flush=True)
        open(f'{TOP}/ended', 'w').close()
    except Exception:  # the processes must end in any case
        report('the cases', False, traceback.format_exc().replace('\n', '|'))
    finally:
        for node in nodes:
            if node.process and node.process.poll() is None:
                node.kill()
        cluster.end()


cluster = Cluster(TOP, BINARIES, int(UID))
console = Console(PROGRAM, TOP, lease='3s', database=cluster.database())
nodes = [Node(name, PROGRAM, console.config(name), TOP) for name in 'abc']
main()
