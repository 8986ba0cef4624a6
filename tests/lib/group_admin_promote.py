"""Cases of tests/long/group_admin.sh: refd group promote, with kills and pauses
of leader, successor and command."""
import re
import signal
import time

from group import Locked, new_row, wait_for
from group_admin_nodes import (LEASE, a, b, c, console, leader, leads, lease,
                               nodes, pg, rest, restart)
from group_console import Paused, expect, report, same


def test_promote():
    expect('promote: the leader', 0, 'already', console.run('promote', 'a'))
    expect('promote: this node by default', 0, 'already',
           console.run('promote'))
    expect('promote: a wrong name', 129, 'no name of a node',
           console.run('promote', 'a/b'))
    expect('status: takes no node', 129, 'takes no node',
           console.run('status', 'a'))
    pids = [n.process.pid for n in nodes]
    process = console.start('promote', node='b')
    numbers = []
    while process.poll() is None:
        numbers.append(a.batch(new_row()))
        time.sleep(0.01)
    numbers += [a.batch(new_row()) for _ in range(5)]
    status, said = console.end(process)
    expect('promote', 0, "the node 'b' leads the group 'main'", (status, said))
    still = int(re.search(r'at most (\d+) ms', said).group(1))
    report('promote: writes stood still for less than a second', still < 1000,
           still)
    print(f'# {still} ms', flush=True)
    leads('promote', b)
    outcomes = [a.outcome(number) for number in numbers]
    report('promote: batches of the old leader are committed, then refused',
           re.fullmatch('(COMMITTED )+(REFUSED )+', ' '.join(outcomes) + ' '),
           outcomes)
    rest('promote')
    same('promote: no process has ended', pids, [n.process.pid for n in nodes])


def lag():
    b.kill(signal.SIGSTOP)
    a.outcome(a.batch(*[new_row(10) for _ in range(1100)]))
    expect('promote: a node that lacks rows', 128, 'lacks 1100 rows',
           console.run('promote', 'b'))
    pg.sql("UPDATE refd.node SET seen = now() - interval '16 s'"
           " WHERE node = 'b'")
    expect('promote: a node that does not run', 128, 'wrote 16 seconds ago',
           console.run('promote', 'b'))
    rest('lag')
    send_applied, b.send_applied = b.send_applied, lambda: None
    a.outcome(a.batch(new_row()))
    expect('promote: a node that waits at a row', 128,
           f'has not applied the row {a.applied} of the log within 5 seconds',
           console.run('promote', 'b'))
    leads('promote: a node that waits at a row', a)
    b.send_applied = send_applied
    b.send_applied()
    rest('a node that waits at a row')
    b.is_silent = True
    time.sleep(9)
    expect('promote: a node whose daemon hangs', 128,
           'does its daemon answer', console.run('promote', 'b'))
    b.is_silent = False
    rest('a daemon that hangs')


def test_daemon_first():
    """The daemon of the old leader must close before another node leads."""
    a.answers_roles = False
    process = console.start('promote', 'b')
    report('a daemon that does not answer: is asked', wait_for(
        10, lambda: not a.role[0]), a.role)
    number = a.batch(new_row())
    time.sleep(LEASE + 1)
    same('a daemon that does not answer: the lease stays', 'a',
         lease('owner'))
    a.answers_roles = True
    a.send_follows(a.role[1])
    expect('a daemon that answers', 0, "'b' leads", console.end(process))
    leads('a daemon that answers', b)
    same('a daemon that does not answer: a batch', 'REFUSED',
         a.outcome(number))
    rest('a daemon that answers')


def test_lag():
    lag()
    seen = pg.sql('SELECT seen FROM refd.node ORDER BY node').split('\n')
    time.sleep(6)
    now = pg.sql('SELECT seen FROM refd.node ORDER BY node').split('\n')
    report('idle nodes are seen', all(x < y for x, y in zip(seen, now)),
           (seen, now))


def test_wishes():
    """A wish that is too old, and one of an earlier epoch."""
    pg.sql("UPDATE refd.lease SET successor = 'b',"
           " asked = clock_timestamp() - interval '31 s'")
    time.sleep(3)
    leads('an old wish', a)
    same('an old wish', 'b|a', lease("successor || '|' || owner"))
    restart(a)
    leads('a new epoch ends a wish', a)
    same('a new epoch ends a wish', 'a', lease('coalesce(successor, owner)'))
    pg.sql("UPDATE refd.lease SET successor = 'b', asked = clock_timestamp()")
    leads('a wish without a command', b)
    rest('a wish without a command')


def hand_waits(event, seconds=10):
    """The session of the leader, which gives the lease away and waits."""
    return wait_for(seconds, lambda: pg.sql(f"""SELECT pid FROM pg_stat_activity
        WHERE usename = 'refd' AND wait_event = '{event}'
        AND query LIKE '%owner = successor%'"""))


class Blocked(Locked):
    """The leader cannot give the lease away. Wishes and renewals go on."""

    def __init__(self):
        super().__init__(pg, 'SELECT FROM refd.lease FOR KEY SHARE')


class InCommit:
    """a gives the lease to b, in a COMMIT that waits for the standby. A renewal
    of the lease that waits first makes the attempt void."""

    def __enter__(self):
        for _ in range(5):
            with Blocked():
                self.process = console.start('promote', 'b')
                assert hand_waits('transactionid')
                self.paused = Paused(pg)
                self.paused.__enter__()
            self.pid = hand_waits('SyncRep', 1)
            if self.pid:
                return self
            self.paused.__exit__()
            console.end(self.process)
            rest('before COMMIT')
        raise AssertionError('no COMMIT')

    def __exit__(self, *_):
        self.paused.__exit__()


def test_two_promotes():
    with Blocked():
        first = console.start('promote', 'b')
        report('two promotes: the first waits', wait_for(
            10, lambda: lease('successor') == 'b'), lease('successor'))
        second = console.start('promote', 'b', node='c')
        expect('two promotes: another node', 1, "moved to the node 'b'",
               console.run('promote', 'c', node='c'))
        expect('status: a wish', 0, "the node 'b' shall lead",
               console.run('status'))
    for process in (first, second):
        expect('two promotes: the same node', 0, "'b' leads",
               console.end(process))
    leads('two promotes', b)
    processes = [console.start('promote', node.name, node=node.name)
                 for node in nodes]
    results = [console.end(process) for process in processes]
    report('three promotes at once: one node leads', wait_for(
        20, lambda: leader() and leader().name == lease('owner')), results)
    report('three promotes at once: the leader was chosen', any(
        rc == 0 and f"'{lease('owner')}' leads" in said
        for rc, said in results), results)
    rest('two promotes')


def test_patience():
    a.answers_roles = False
    first = console.start('promote', 'b')
    assert wait_for(10, lambda: lease('successor') == 'b')
    expect('the leader does not give the lead away', 1,
           'the wish is taken back', console.run('promote', 'b', node='c'))
    expect('an earlier command for the same node', 1,
           'a later refd group promote', console.end(first))
    same('the wish is taken back', 'a', lease('coalesce(successor, owner)'))
    a.answers_roles = True
    a.send_follows(a.role[1])
    leads('the wish is taken back', a)
    rest('the wish is taken back')


def test_killed_command():
    with Blocked():
        process = console.start('promote', 'b')
        assert wait_for(10, lambda: lease('successor') == 'b')
        process.kill()
        process.wait()
    leads('a killed command', b)
    rest('a killed command')


# ---- the leader dies ----

def test_leader_killed_asked():
    """The leader has told its daemon to follow, and has no answer yet."""
    for victim, end in ('refd-group', a.end), ('the daemon', a.hang_up):
        name = f'{victim} of the leader is killed before FOLLOWS'
        a.answers_roles = False
        process = console.start('promote', 'b')
        report(f'{name}: the daemon is asked', wait_for(
            10, lambda: not a.role[0]), a.role)
        row = new_row()
        a.batch(row)
        end()
        a.answers_roles = True
        node = wait_for(20, lambda: next(
            (n for n in (b, c) if n.role[0]), None))
        report(f'{name}: a follower leads', node, (b.role, c.role))
        result = console.end(process)
        report(f'{name}: the command', result[0] == (0 if node is b else 1),
               result)
        a.start()
        report(f'{name}: a follows', a.await_role(False), a.role)
        report(f'{name}: the batch is refused', row['id'] in a.refused)
        rest(name)


def test_leader_killed_before():
    """With a wish. The old leader comes back first, or another node leads."""
    with Blocked():
        process = console.start('promote', 'b')
        pid = hand_waits('transactionid')
        report('killed before: the leader tries', pid)
        a.end()
        pg.sql(f'SELECT pg_terminate_backend({pid})')
    a.start()
    leads('killed before', a)
    expect('killed before: the command says so', 1, "'a' has taken the lead",
           console.end(process))
    rest('killed before')
    with Blocked():
        process = console.start('promote', 'b')
        pid = hand_waits('transactionid')
        a.end()
        pg.sql(f'SELECT pg_terminate_backend({pid})')
        time.sleep(LEASE + 1)
    node = wait_for(20, lambda: next(
        (n for n in (b, c) if n.role[0]), None))
    report('killed before, for long: a follower leads', node, (b.role, c.role))
    report('killed before, for long: the command',
           console.end(process)[0] == (0 if node is b else 1))
    a.start()
    rest('killed before, for long')


def test_leader_killed_in_commit():
    """The lease is given away, and the standby does not have this yet."""
    with InCommit() as commit:
        row = new_row()
        a.batch(row)
        a.end()
        time.sleep(1)
        report('killed in COMMIT: nobody leads without the standby',
               not leader() or leader() is a, [n.role for n in nodes])
    leads('killed in COMMIT', b)
    expect('killed in COMMIT: the command', 0, "'b' leads",
           console.end(commit.process))
    a.start()
    report('killed in COMMIT: a follows', a.await_role(False), a.role)
    report('killed in COMMIT: the batch is refused', row['id'] in a.refused)
    rest('killed in COMMIT')


def test_primary_cut():
    """The session of the leader ends in the COMMIT of the hand-over."""
    with InCommit() as commit:
        pg.sql(f'SELECT pg_terminate_backend({commit.pid})')
        row = new_row()
        number = a.batch(row)
        time.sleep(1)
    leads('cut in COMMIT', b)
    console.end(commit.process)
    same('cut in COMMIT: the batch', 'REFUSED', a.outcome(number))
    rest('cut in COMMIT')


def test_two_followers():
    """Both followers see at the same moment that the lease is over."""
    for _ in range(5):
        for node in nodes:
            node.kill(signal.SIGSTOP)
        time.sleep(LEASE + 1)
        for node in (b, c):
            node.kill(signal.SIGCONT)
        node = wait_for(20, lambda: next(
            (n for n in (b, c) if n.role[0]), None))
        assert node, (b.role, c.role)
        other = c if node is b else b
        report('two followers: one leads, and the other follows', wait_for(
            20, lambda: other.role[0] is False
            and other.role[1] == node.role[1]), (b.role, c.role))
        a.kill(signal.SIGCONT)
        report('two followers: a follows', wait_for(
            20, lambda: not a.role[0]), a.role)
        rest('two followers')


# ---- the successor dies ----

def test_successor_killed():
    b.kill(signal.SIGSTOP)
    expect('a successor that hangs: the command', 1,
           'taken the lead', console.run('promote', 'b'))
    node = wait_for(20, lambda: next(
        (n for n in (a, c) if n.role[0] and n.role[1] > a.epoch), None))
    report('a successor that hangs: another node leads', node,
           (a.role, c.role))
    rest('a successor that hangs')
    b.kill(signal.SIGSTOP)
    process = console.start('promote', 'b')
    report('a killed successor: has the lease', wait_for(
        10, lambda: lease('owner') == 'b'))
    expect('status: a successor that has not begun', 0,
           'b, epoch ' + lease('epoch') + ', which has not begun yet',
           console.run('status'))
    report('a killed successor: nobody leads', wait_for(
        10, lambda: not a.role[0]), a.role)
    b.end()
    b.start()
    expect('a killed successor: its next process leads', 0, "'b' leads",
           console.end(process))
    leads('a killed successor', b)
    rest('a killed successor')


def test_successor_is_late():
    """The daemon of the successor has not applied the last row."""
    with Locked(pg, "SELECT FROM refd.node WHERE node = 'b' FOR UPDATE"):
        number = a.batch(new_row())
        assert a.outcome(number) == 'COMMITTED'
        pg.sql("UPDATE refd.lease SET successor = 'b',"
               " asked = clock_timestamp()")
        report('a late successor: has the lease', wait_for(
            10, lambda: lease('owner') == 'b'))
        time.sleep(0.5)
        same('a late successor: does not lead', False, b.role[0])
    wait_for(20, lambda: leader())
    rest('a late successor')


CASES = (test_promote, test_daemon_first, test_lag, test_wishes,
         test_two_promotes, test_patience, test_killed_command,
         test_leader_killed_asked, test_leader_killed_before,
         test_leader_killed_in_commit, test_primary_cut, test_two_followers,
         test_successor_killed, test_successor_is_late)
