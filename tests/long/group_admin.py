"""The cases of tests/long/group_admin.sh.

    group_admin.py REFD-GROUP DIRECTORY BINARIES UID SECONDS"""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import new_row, wait_for  # noqa: E402
from group_admin_nodes import (LEASE, PROGRAM, SECONDS, TOP, a,  # noqa: E402
                               b, c, console, leader, leads, lease, nodes, pg,
                               rest, restart)
import group_admin_promote  # noqa: E402
from group_console import (Paused, await_standbys, expect,  # noqa: E402
                           make_role, report, run_cases, same)
from group_origin import check_origin  # noqa: E402
from group_room import check_room  # noqa: E402


# ---- the beginning ----

def test_create():
    make_role(pg)
    pg.sql('GRANT pg_read_all_stats TO refd')
    pg.names()
    await_standbys(pg)
    expect('create', 0, "created the group 'main'", console.run('create'))
    expect('promote: an unknown node', 128, "no node 'x'",
           console.run('promote', 'x'))
    pg.sql("INSERT INTO refd.node VALUES ('main', 'c', 0, now())")
    expect('promote: no node leads', 1, 'no node leads',
           console.run('promote', 'c'))
    a.start()
    leads('the start', a)
    for node in (b, c):
        node.start()
        report(f'{node.name} follows', node.await_role(False), node.message())
    rest('the start')


# ---- leave ----

def names():
    return pg.sql('SELECT node FROM refd.node ORDER BY node').split()


def test_leave():
    expect('leave: the leader', 128, 'leads the group',
           console.run('leave', 'a', node='b'))
    expect('leave: a node that runs', 128, 'stop refd-group there',
           console.run('leave', 'b'))
    expect('leave: an unknown node', 128, "no node 'x'",
           console.run('leave', 'x'))
    same('leave: nothing is removed', ['a', 'b', 'c'], names())
    c.end()
    expect('leave: a node that was seen lately', 128, 'stop refd-group there',
           console.run('leave', 'c'))
    time.sleep(16)
    pg.sql("INSERT INTO refd.held (grp, id, node) VALUES ('main',"
           " gen_random_uuid(), 'c')")
    with Paused(pg):
        expect('leave: the standby is away', 75, 'has not answered',
               console.run('leave', 'c'))
    if 'c' in names():
        expect('leave', 0, "'c' has left", console.run('leave', 'c'))
    same('leave: the node is removed', ['a', 'b'], names())
    same('leave: and its messages', '0', pg.sql(
        "SELECT count(*) FROM refd.held WHERE node = 'c'"))
    # Behind the pause of the standby, another node can take the lease.
    report('leave: the others commit', wait_for(20, lambda: leader()
           and leader().outcome(leader().batch(new_row())) == 'COMMITTED'))
    c.start()
    report('leave: the node comes back', c.await_role(False), c.message())
    rest('leave')
    for node in nodes:
        node.end()
    time.sleep(16)
    expect('leave: the last leader, which does not run', 0, "'a' has left",
           console.run('leave', 'a', node='b'))
    for node in nodes:
        node.start()
        report(f'leave: {node.name} comes back', wait_for(
            20, lambda: node.role), node.message()[-300:])
    rest('leave: all come back')


# ---- old rows ----

def first_row():
    return int(pg.sql('SELECT min(lsn) FROM refd.log'))


def make_old(lsn):
    """All rows up to LSN are older than a day."""
    pg.sql('UPDATE refd.log SET time_ms = time_ms - 90000000 WHERE lsn <='
           f' {lsn} AND time_ms > 1e12')


def test_old_rows():
    a.outcome(a.batch(*[new_row(10) for _ in range(1200)]))
    rest('old rows')
    end = a.applied
    same('old rows: row 0 is deleted, no young row', 1, wait_for(
        40, lambda: first_row()))
    c.end()
    applied = c.applied
    a.outcome(a.batch(*[new_row(10) for _ in range(20)]))
    assert wait_for(10, lambda: pg.sql(
        'SELECT count(*) FROM refd.node WHERE applied ='
        f' {a.applied}') == '2')
    make_old(a.applied)
    pg.sql('UPDATE refd.log SET time_ms = time_ms + 90000000 WHERE lsn ='
           f' {end - 100}')
    report('old rows: a young row keeps all rows behind it', wait_for(
        50, lambda: first_row() == end - 100), first_row())
    make_old(a.applied)
    report('old rows: rows that a node lacks stay', wait_for(
        50, lambda: first_row() == applied + 1), (first_row(), applied))
    expect('status: the first row', 0,
           f'the log has the rows {applied + 1} to {a.applied}',
           console.run('status'))
    expect('status: the lag', 0,
           f'node c: has applied LSN {applied}, lacks 20 rows',
           console.run('status'))
    number = a.batch(new_row())
    same('old rows: a batch behind deleted rows', 'COMMITTED',
         a.outcome(number))
    c.start()
    report('old rows: a node that needs no deleted row',
           c.await_role(False), c.message())
    make_old(a.applied)
    report('old rows: the newest row stays', wait_for(
        50, lambda: first_row() == a.applied), (first_row(), a.applied))
    restart(a)
    leads('old rows: a new process', a)
    rest_rows('old rows')
    c.end()
    end, c.applied = c.applied, applied
    c.start()
    same('a node that needs deleted rows: status', 128, c.process.wait(20))
    report('a node that needs deleted rows: reason',
           'refd group join' in c.message()[-300:], c.message()[-300:])
    c.end()
    c.applied = end
    c.start()
    report('old rows: c follows', c.await_role(False), c.message()[-300:])


def rest_rows(name):
    """As rest(), with a log that lacks old rows."""
    report(f'{name}: all nodes have all rows', wait_for(20, lambda: {
        n.applied for n in nodes} == {a.applied}), [n.applied for n in nodes])
    log = pg.log()
    same(f'{name}: the rows that are left', [],
         [lsn for i, lsn in log.items() if a.rows[lsn]['id'].hex() != i])


# ---- faults at random ----

def promote_one():
    console.start('promote', random.choice('abc'),
                  node=random.choice('abc'))


def restart_one():
    restart(random.choice(nodes))


def pause_one():
    node = random.choice(nodes)
    node.kill(signal.SIGSTOP)
    time.sleep(random.choice((0.1, 0.5, LEASE + 1)))
    node.kill(signal.SIGCONT)


def cut_sessions():
    pg.sql("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE usename = 'refd' AND random() < 0.5""")


def pause_standby():
    with Paused(pg):
        time.sleep(random.random() * 2)


def test_random():
    faults = [promote_one] * 6 + [restart_one, pause_one, cut_sessions,
                                  pause_standby]
    epoch = int(lease('epoch'))
    end = time.monotonic() + float(SECONDS)
    while time.monotonic() < end:
        for _ in range(20):
            node = leader()
            if node and len(node.open_rows()) < 50:
                try:
                    node.batch(*[new_row(random.randrange(500))
                                 for _ in range(random.randrange(1, 4))])
                except OSError:
                    pass
            time.sleep(random.random() / 30)
        random.choice(faults)()
    for node in nodes:
        if node.process.poll() is not None:
            restart(node)
    report('faults at random: every batch has an outcome', wait_for(
        60, lambda: leader() and not any(n.open_rows() for n in nodes)),
        [len(n.open_rows()) for n in nodes])
    print('#', int(lease('epoch')) - epoch, 'epochs,',
          sum(len(n.committed) for n in nodes), 'committed,',
          sum(len(n.refused) for n in nodes), 'refused', flush=True)
    wait_for(40, lambda: lease(
        "coalesce(asked > clock_timestamp() - interval '30 s', false)") == 'f')
    rest('faults at random')


def test_origin():
    check_origin(pg, PROGRAM, console, TOP)


def test_room():
    check_room(pg, nodes, console, TOP)


run_cases(pg, nodes, test_create, *group_admin_promote.CASES, test_random,
          test_leave, test_old_rows, test_origin, test_room)
