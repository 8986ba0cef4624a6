"""Cases of tests/long/group_log.sh: a follower, and takeovers."""
import signal
import subprocess
import time

from group import Locked, clock, new_row, wait_for
from group_console import Paused, report, same
from group_log_nodes import (LEASE, a, b, cancel_all, check, leader,
                             locked_lsn, pg)


# ---- two nodes ----

def test_follower():
    b.start()
    report('a second node follows', b.await_role(False, 120), b.message())
    same('ROLE of a follower has the last LSN', a.applied, b.role[2])
    same('a follower refuses', 'REFUSED', b.outcome(b.batch(new_row())))
    number = a.batch(new_row(), new_row(3000000))
    same('a batch beside a follower', 'COMMITTED', a.outcome(number))
    report('the follower gets all rows',
           wait_for(20, lambda: b.applied == a.applied),
           f'{b.applied} {a.applied}')
    report('and the same content', all(
        b.rows[lsn] == row for lsn, row in a.rows.items()))
    report('without all large objects in memory', b.most_memory() < 96 << 20,
           b.most_memory())
    with Paused(pg):
        number = a.batch(new_row())
        pid = pg.await_batch()
        pg.sql(f'SELECT pg_cancel_backend({pid})')
        report('a row that is not replicated is visible', wait_for(
            10, lambda: len(pg.log()) == a.applied + 1), len(pg.log()))
        cancel_all(2)
        same('no follower gets this row', a.applied, b.applied)
    same('the row is proven', 'DOUBTFUL COMMITTED', a.outcome(number))
    report('the follower gets this row',
           wait_for(20, lambda: b.applied == a.applied))


def test_lag():
    """A follower hears of the moments at which it had all rows."""
    report('the follower has all rows', wait_for(
        5, lambda: 0 < clock() - b.current < 2), b.current)
    with Paused(pg):
        paused = clock()
        time.sleep(LEASE * 0.75)
        report('no moment is proven without the standby',
               b.current <= paused, b.current - paused)
    send_applied, b.send_applied = b.send_applied, lambda: None
    begun = clock()
    same('a row', 'COMMITTED', a.outcome(a.batch(new_row())))
    committed = clock()
    report('the row comes', wait_for(20, lambda: b.applied == a.applied))
    time.sleep(2.5)
    report('a row that is not applied ends the moments',
           b.current <= committed, b.current - begun)
    b.send_applied = send_applied
    b.send_applied()
    report('then the moments go on', wait_for(
        5, lambda: b.current > committed + 2.5), b.current - committed)


def test_no_row():
    """A repository of the follower lacks refs of some row."""
    b.told = 0
    report('a node that counts no row is noted as one', wait_for(
        5, lambda: noted(b) == 0), noted(b))
    b.send_applied()
    report('and later as one with all rows', wait_for(
        5, lambda: noted(b) == b.applied), noted(b))


def noted(node):
    return int(pg.sql('SELECT applied FROM refd.node'
                      f" WHERE node = '{node.name}'"))


def test_flood():
    """A daemon that sends, and does not read."""
    b.end()
    b.applied = 0
    b.epoch = 0
    b.start(reads=False)
    b.socket.settimeout(1)
    frames, sent = b'\x11\0\0\0\x04' + bytes(16), 0
    try:
        while sent < 100 << 20:
            b.socket.sendall(frames * 10000)
            sent += 210000
    except TimeoutError:
        pass
    report('a flood of frames is not kept in memory', sent < 64 << 20, sent)
    b.socket.settimeout(None)
    b.kill()
    b.process.wait()
    b.socket.close()
    b.start()
    report('after the flood: the node follows', b.await_role(False), b.role)


def is_switched(name, old, new):
    report(f'{name}: {new.name} leads', new.await_role(True), new.role)
    old.kill(signal.SIGCONT)
    report(f'{name}: {old.name} follows', wait_for(
        20, lambda: old.role == (False,) + new.role[1:2] + old.role[2:3]
        + (new.name,)), f'{old.role} {new.role}')


def test_paused_leader():
    """A leader that pauses longer than its lease, with nothing in work."""
    a.kill(signal.SIGSTOP)
    number = a.batch(new_row())
    is_switched('a paused leader', a, b)
    same('a late leader', 'REFUSED', a.outcome(number))
    same('the new leader', 'COMMITTED', b.outcome(b.batch(new_row())))
    check('a paused leader')


def test_takeover_in_commit():
    """The leader pauses, while its batch waits in COMMIT."""
    with Paused(pg):
        number = b.batch(new_row(), new_row())
        report('takeover: COMMIT waits', pg.await_batch())
        b.kill(signal.SIGSTOP)
        time.sleep(LEASE + 2)
        report('takeover: not without the standby', not a.role[0], a.role)
    is_switched('takeover in COMMIT', b, a)
    report('takeover in COMMIT: the rows are in the log',
           b.outcome(number).endswith('COMMITTED'), b.outcomes[number])
    report('takeover in COMMIT: the new leader has them',
           wait_for(10, lambda: a.applied >= b.applied))
    same('takeover in COMMIT: a batch', 'COMMITTED',
         a.outcome(a.batch(new_row())))
    check('takeover in COMMIT')


def test_takeover_in_fence():
    """The leader pauses in the transaction, behind its fence."""
    with locked_lsn():
        number = a.batch(new_row())
        report('fence: the insert waits', pg.await_batch('transactionid'))
        a.kill(signal.SIGSTOP)
        is_switched('takeover in the fence', a, b)
    same('takeover in the fence', 'DOUBTFUL REFUSED', a.outcome(number))
    same('takeover in the fence: a batch', 'COMMITTED',
         b.outcome(b.batch(new_row())))
    check('takeover in the fence')


def test_stop():
    epoch = b.role[1]
    began = time.monotonic()
    same('STOP ends the program', 0, b.stop())
    report('the other node leads before the lease ends',
           a.await_role(True) and time.monotonic() - began < LEASE,
           time.monotonic() - began)
    same('in the next epoch', epoch + 1, a.role[1])
    b.start()
    report('and gets the role of a follower', b.await_role(False), b.role)


def test_hung_up():
    """The daemon of the leader dies."""
    for old, new in ((a, b), (b, a)):
        began = time.monotonic()
        same('a dead daemon: the program ends', 75, old.hang_up())
        report('the other node leads before the lease ends',
               new.await_role(True) and time.monotonic() - began < LEASE * 0.6,
               time.monotonic() - began)
        old.end()
        old.start()
        report('a dead daemon: the next one follows', old.await_role(False),
               old.role)


def stops(name, node):
    """Although the standby is away, and STOP is answered late."""
    try:
        same(name, 0, node.stop())
    except subprocess.TimeoutExpired:
        report(name, False, 'no end')
        node.end()


def test_blocked():
    """A session of a superuser blocks the takeover."""
    with Locked(pg, 'SELECT FROM refd.lease FOR KEY SHARE'):
        b.kill(signal.SIGSTOP)
        text = 'cannot be ended'
        report('a takeover that is blocked: the reason is named', wait_for(
            LEASE * 2 + 5, lambda: text in a.message()), a.message()[-300:])
        report('a takeover that is blocked: no leader', not a.role[0], a.role)
    is_switched('a takeover that was blocked', b, a)


def test_stop_in_commit():
    """STOP while the standby is away, and a batch waits."""
    row = new_row()
    with Paused(pg):
        a.batch(row)
        report('STOP in COMMIT: COMMIT waits', pg.await_batch())
        stops('STOP in COMMIT', a)
    report('STOP in COMMIT: the other node leads', b.await_role(True), b.role)
    a.start()
    report('STOP in COMMIT: the next process', a.await_role(False), a.role)
    report('STOP in COMMIT: has the row', row['id'] in a.committed)
    check('STOP in COMMIT')


def test_follower_start():
    """A process that starts while its node does not lead, and lacks rows."""
    b.end()
    end = b.applied
    b.applied -= 2
    b.epoch = 0
    with Paused(pg):
        b.start()
        cancel_all(3)
        same('a follower: no row and no role without the standby',
             (end - 2, None), (b.applied, b.role))
        stops('STOP of a follower that waits for rows', b)
        b.start()
    report('a follower: follows', b.await_role(False), b.role)
    same('a follower: the rows have come before the role', end, b.role[2])


def test_unproven_epoch():
    """Both nodes see an epoch which no standby has, and a failover takes the
    epoch away."""
    epoch = int(pg.sql('SELECT epoch FROM refd.lease'))
    with Paused(pg):
        change_lease(f"epoch = {epoch + 1}, owner = 'c',"
                     " until = now() + interval '1 hour'")
        time.sleep(LEASE * 3)
        change_lease(f"epoch = {epoch}, owner = '{leader().name}',"
                     " until = now()")
        time.sleep(LEASE * 2)
    report('an epoch that was never proven: a node leads', wait_for(
        20, lambda: commits(leader())),
        (a.role, b.role, a.message()[-700:], b.message()[-700:]))
    for node in (a, b):
        report(f'an epoch that was never proven: {node.name} has all rows',
               wait_for(20, lambda: node.applied == max(pg.log().values())))
    check('an epoch that was never proven')


def change_lease(values):
    """Waits for no standby."""
    pg.sql(f'SET synchronous_commit = local; UPDATE refd.lease SET {values}')


def commits(node):
    return node and node.outcome(node.batch(new_row()), 5) == 'COMMITTED'


def test_silent_daemon():
    """The daemon of the follower hangs when the lease ends."""
    old = wait_for(20, leader)
    other = b if old is a else a
    assert wait_for(20, lambda: other.applied == old.applied)
    other.is_silent = True
    time.sleep(4)
    old.kill(signal.SIGSTOP)
    time.sleep(LEASE * 3)
    same('a daemon that hangs does not lead', (False, old.name),
         (other.role[0], pg.sql('SELECT owner FROM refd.lease')))
    other.is_silent = False
    report('a daemon that goes on leads', other.await_role(True), other.role)
    old.kill(signal.SIGCONT)
    report('the old leader follows', wait_for(20, lambda: not old.role[0]))
    check('a daemon that hangs')


def test_clock():
    """Leases end while the machine is suspended."""
    old = wait_for(20, leader)
    other = b if old is a else a
    other.end()
    other.start(prefix=('unshare', '--time', '--boottime', '1000'))
    report('CURRENT is of the clock that goes on', wait_for(
        20, lambda: 0 <= clock() + 1000 - other.current < 5),
        other.current - clock())
    other.end()
    other.start()
    report('the node follows again', other.await_role(False), other.role)


CASES = (test_follower, test_lag, test_no_row, test_flood, test_paused_leader,
         test_takeover_in_commit, test_takeover_in_fence, test_blocked,
         test_stop_in_commit, test_stop, test_hung_up, test_follower_start,
         test_unproven_epoch, test_silent_daemon, test_clock)
