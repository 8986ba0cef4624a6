"""The cases of tests/long/group_log.sh.

    group_log.py REFD-GROUP DIRECTORY BINARIES UID SECONDS"""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import Node, new_row, wait_for  # noqa: E402
from group_console import (Paused, check_rows, expect, report,  # noqa: E402
                           run_cases, same)
import group_log_leader  # noqa: E402
from group_log_nodes import (LEASE, PROGRAM, SECONDS, TOP, a, b,  # noqa: E402
                             cancel_all, check, console, leader, nodes, pg)
import group_log_takeover  # noqa: E402
import group_old  # noqa: E402


# ---- wrong ends ----

def refuses(name, text, **changes):
    b.end()
    b.start(**changes)
    b.process.wait(20)
    same(f'{name}: status', 128, b.process.returncode)
    report(f'{name}: reason', text in b.message(), b.message()[-300:])
    report(f'{name}: no handler of exit() beside the other thread',
           not b.runs_handlers())


def test_two():
    """A copy of the machine of the leader starts, with the same group.node."""
    first = leader()
    assert first, (a.role, b.role)
    role = first.role
    os.makedirs(f'{TOP}/copy')
    copy = Node(first.name, PROGRAM, first.config, f'{TOP}/copy')
    copy.group, copy.applied = first.group, first.applied
    copy.start()
    same('a second machine ends', 128, copy.process.wait(20))
    text = f"another machine is the node '{first.name}' now"
    report('with a sentence', text in copy.message(), copy.message()[-300:])
    same('the first one leads in its epoch', (role, None),
         (first.role, first.process.poll()))
    first.kill(signal.SIGSTOP)
    time.sleep(5)
    copy.start()
    wait_for(20, lambda: copy.role)
    first.kill(signal.SIGCONT)
    same('a machine that comes back second ends', 128, first.process.wait(20))
    report('with a sentence, too', text in first.message(),
           first.message()[-300:])
    copy.end()
    time.sleep(5)
    first.start()
    report('when it is alone, it goes on', wait_for(20, lambda: first.role),
           first.message()[-300:])
    check('two machines')


def test_wrong():
    refuses('another group', 'another uuid', group=b'\1' * 16)
    refuses('another node', "group.node must be the same", node='c')
    refuses('a log that ends too early', 'PostgreSQL is at an earlier time',
            applied=b.applied + 1000)
    refuses('another version of frames', 'wrong frame', version=2)
    pg.sql('UPDATE refd.version SET version = 2')
    refuses('newer tables', 'install a newer refd-group')
    console.config('x', name='other')
    expect('newer tables: create', 128, 'install a newer refd-group',
           console.run('create', node='x'))
    pg.sql('UPDATE refd.version SET version = 1')
    b.end()
    b.start()
    report('right again', wait_for(20, lambda: b.role), b.message()[-300:])


def test_old_primary():
    group_old.Cases(pg, console).run()


# ---- faults at random ----

def restart_node():
    node = random.choice((a, b))
    node.end()
    node.start()


def pause_node():
    node = random.choice((a, b))
    node.kill(signal.SIGSTOP)
    time.sleep(random.choice((0.2, LEASE + 1)))
    node.kill(signal.SIGCONT)


def end_sessions():
    pg.sql("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE usename = 'refd' AND random() < 0.6""")


def cancel_waits():
    with Paused(pg):
        cancel_all(random.random() * 2)


def empty_setting():
    with Paused(pg):
        pg.names('')
        time.sleep(random.random())
        pg.names()


def restart_primary():
    pg.stop('p', signal.SIGQUIT)
    pg.start('p')


def random_faults(seconds):
    faults = [restart_node, pause_node, end_sessions, cancel_waits,
              empty_setting, restart_primary]
    counts = {fault.__name__: 0 for fault in faults}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            node = leader()
            if node and len(node.open_rows()) < 50:
                try:
                    node.batch(*[new_row(random.randrange(3000))
                                 for _ in range(random.randrange(1, 4))])
                except OSError:
                    pass
            time.sleep(random.random() / 20)
        fault = random.choice(faults)
        fault()
        counts[fault.__name__] += 1
    return counts


def settle_all():
    """Every batch gets its outcome."""
    for node in (a, b):
        if node.process.poll() is not None:
            node.end()
            node.start()
    return wait_for(120, lambda: leader() and not a.open_rows()
                    and not b.open_rows())


def test_random():
    counts = random_faults(float(SECONDS))
    report('random faults: every batch gets an outcome', settle_all(),
           f'{len(a.open_rows())} {len(b.open_rows())}')
    check('random faults')
    end = max(pg.log().values())
    report('random faults: both nodes have the whole log', wait_for(
        20, lambda: a.applied == b.applied == end),
        f'{a.applied} {b.applied} {end}')
    same('random faults: the same rows', [], [
        lsn for lsn in range(1, end + 1) if lsn in a.rows and lsn in b.rows
        and a.rows[lsn] != b.rows[lsn]])
    print('#', counts, len(a.committed) + len(b.committed), 'committed,',
          len(a.refused) + len(b.refused), 'refused', flush=True)


# ---- the loss of the primary ----

def test_failover():
    """The primary dies amid batches, and the standby takes its place."""
    # A node that was paused may not know yet that it leads no longer.
    node = wait_for(20, lambda: leader() if leader() and leader().outcome(
        leader().batch(new_row())) == 'COMMITTED' else None)
    receiver = pg.receiver()
    for i in range(100):
        node.batch(new_row())
        time.sleep(0.005)
        if i == 60:
            os.kill(receiver, signal.SIGSTOP)
    time.sleep(0.2)
    pg.stop('p', signal.SIGQUIT)
    os.kill(receiver, signal.SIGCONT)
    pg.promote()
    log = pg.log(5602)
    check_rows('failover', log, nodes)
    report('failover: rows are in doubt', node.open_rows())
    time.sleep(5)
    check_rows('failover, later', pg.log(5602), nodes)
    print('#', len(a.committed) + len(b.committed), 'committed,',
          len(log), 'in the log', flush=True)


run_cases(pg, nodes, *group_log_leader.CASES, *group_log_takeover.CASES,
          test_two, test_wrong, test_old_primary, test_random, test_failover, nr_first=2)
