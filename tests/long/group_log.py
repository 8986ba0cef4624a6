"""The cases of tests/long/group_log.sh.

    group_log.py REFD-GROUP DIRECTORY BINARIES UID SECONDS"""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import (Locked, Node, Postgres, clock,  # noqa: E402
                   new_row, wait_for)
from group_console import (Console, Paused, await_standbys,  # noqa: E402
                           check_log, check_rows, expect, make_role, report,
                           run_cases, same)
import group_old  # noqa: E402

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


# ---- the administrator ----

def test_create():
    make_role(pg)
    # A session must not depend on the defaults of its role.
    for setting in ('synchronous_commit = off', "statement_timeout = '1s'",
                    "default_transaction_isolation = 'serializable'",
                    'default_transaction_read_only = on',
                    'client_min_messages = error', 'search_path = refd',
                    'idle_in_transaction_session_timeout = 0'):
        pg.sql(f'ALTER ROLE refd SET {setting}', database='postgres')
    expect('create: a role without rights', 128, 'pg_read_all_stats',
           console.run('create'))
    pg.sql('GRANT pg_read_all_stats TO refd')
    expect('create: without a standby', 128, 'synchronous_standby_names',
           console.run('create'))
    expect('status: without a group', 128, 'refd group create',
           console.run('status'))
    pg.names('ANY 2 (s1, s2)')
    await_standbys(pg)
    expect('create: fewer copies than the setting', 128,
           'set group.copies to 2', console.run('create'))
    pg.names()
    expect('create', 0, "created the group 'main'",
           console.run('create'))
    expect('create: again', 128, 'exists already', console.run('create', node='b'))
    expect('status: no leader', 1, 'the lease is over',
           console.run('status'))
    receiver = subprocess.Popen(pg.account(
        'pg_receivewal', '-D', TOP, '--synchronous', '-d',
        f'host={TOP} port=5601 user=postgres application_name=s1'),
        stderr=subprocess.DEVNULL)
    await_standbys(pg, 2)
    expect('status: two standbys of one name count once', 1,
           'copies: 1 synchronous standbys, 1 needed',
           console.run('status'))
    receiver.terminate()
    receiver.wait()


def test_defaults():
    """A role with a timeout, and a node with a wrong name."""
    pg.sql("ALTER ROLE refd SET idle_session_timeout = '300ms'")
    a.end()
    a.start()
    assert a.await_role(True), a.message()
    time.sleep(1)
    same('idle_session_timeout of the role', 'COMMITTED',
         a.outcome(a.batch(new_row())))
    pg.sql('ALTER ROLE refd RESET idle_session_timeout')
    pg.sql("INSERT INTO refd.node VALUES ('main', E'\\x1b[31m', 0, now())")
    report('status: a node with control characters',
           '\x1b' not in console.run('status')[1])
    pg.sql("DELETE FROM refd.node WHERE node LIKE E'\\x1b%'")
    pg.names('ANY 2 (s1, s2)')
    expect('status: fewer copies than the setting', 1,
           'group.copies is lower than the 2 standbys',
           console.run('status'))
    pg.names()


# ---- one leader ----

def test_commit():
    a.start()
    report('the creator leads', a.await_role(True), a.role)
    assert a.role, a.message()
    same('a batch', 'COMMITTED', a.outcome(a.batch(new_row(), new_row())))
    numbers = [a.batch(*[new_row() for _ in range(i)]) for i in range(1, 30)]
    same('joined batches', {'COMMITTED'}, {a.outcome(n) for n in numbers})
    same('LSNs are dense', list(range(1, 438)), sorted(a.rows))
    same('a large batch', 'COMMITTED',
         a.outcome(a.batch(new_row(6000000), new_row(3000000))))
    same('large objects', {'COMMITTED'}, {
        a.outcome(a.batch(new_row(objects=12000000))) for _ in range(10)})
    expect('status', 0, 'leader: a, epoch 2', console.run('status'))
    check('commit')


def test_empty_setting():
    pg.names('')
    same('the setting is empty', 'REFUSED', a.outcome(a.batch(new_row())))
    expect('status: the setting is empty', 1, 'new batches are refused',
           console.run('status'))
    pg.names()
    same('the setting is set again', 'COMMITTED',
         a.outcome(a.batch(new_row())))
    check('empty setting')


def doubt(name, fault):
    """A batch waits in COMMIT; the fault ends the wait; the standby returns."""
    with Paused(pg):
        number = a.batch(new_row(), new_row())
        report(f'{name}: COMMIT waits', pg.await_batch())
        fault()
        wait_for(10, lambda: a.outcomes[number])
        same(f'{name}: nothing is acknowledged', ['DOUBTFUL'],
             a.outcomes[number])
        time.sleep(2)
        same(f'{name}: still nothing', ['DOUBTFUL'], a.outcomes[number])
    pg.names()
    same(name, 'DOUBTFUL COMMITTED', a.outcome(number))
    check(name)


def test_doubts():
    doubt('emptied during COMMIT', lambda: pg.names(''))
    doubt('a cancelled wait', lambda: pg.sql(
        f'SELECT pg_cancel_backend({pg.batch_waits()})'))
    doubt('a connection cut at COMMIT', lambda: pg.sql(
        f'SELECT pg_terminate_backend({pg.batch_waits()})'))


def test_late_checkpointer():
    """COMMIT does not wait, although the session sees the setting."""
    pid = pg.children('p', 'checkpointer')[0]
    with Paused(pg):
        pg.names('')
        wait_for(10, lambda: not pg.batch_waits())
        time.sleep(1)
        os.kill(pid, signal.SIGSTOP)
        pg.names()
        number = a.batch(new_row())
        wait_for(10, lambda: a.outcomes[number])
        same('a late checkpointer: nothing is acknowledged', ['DOUBTFUL'],
             a.outcomes[number])
        os.kill(pid, signal.SIGCONT)
    same('a late checkpointer', 'DOUBTFUL COMMITTED', a.outcome(number))
    check('a late checkpointer')


def test_absent():
    """The session ends before the rows are there: they are sent again."""
    with locked_lsn():
        number = a.batch(new_row())
        report('the insert waits', pg.await_batch('transactionid'))
        pg.sql(f"SELECT pg_terminate_backend({pg.batch_waits('transactionid')})")
        wait_for(10, lambda: a.outcomes[number])
    same('a connection cut before COMMIT', 'DOUBTFUL COMMITTED',
         a.outcome(number))
    check('absent')


def locked_lsn():
    """Another session holds the next LSN: a batch waits behind its fence."""
    return Locked(pg, """INSERT INTO refd.log SELECT grp, lsn + 1, epoch,
        '\\x00', repo, txid, uid, time_ms, final, path, body, objects
        FROM refd.log ORDER BY lsn DESC LIMIT 1""")


def test_restart():
    with Paused(pg):
        number = a.batch(new_row())
        report('restart: COMMIT waits', pg.await_batch())
        pg.stop('p', signal.SIGQUIT)
        pg.start('p')
        wait_for(10, lambda: a.outcomes[number])
        time.sleep(1)
        same('restart: nothing is acknowledged', ['DOUBTFUL'],
             a.outcomes[number])
    same('a new start of the primary', 'DOUBTFUL COMMITTED',
         a.outcome(number, 60))
    check('restart')


def test_standby_away():
    pg.stop('s', signal.SIGQUIT)
    number = a.batch(new_row())
    report('the standby is away: COMMIT waits', pg.await_batch())
    time.sleep(1)
    same('the standby is away: no answer', [], a.outcomes[number])
    expect('status: the standby is away', 1, 'standbys are missing',
           console.run('status'))
    wait_for(LEASE + 3, lambda: a.outcomes[number])
    same('the standby is away: the wait has an end', ['DOUBTFUL'],
         a.outcomes[number])
    time.sleep(LEASE * 2)
    report('and leaves no session behind', pg.waiting() <= 2, pg.waiting())
    pg.start('s')
    same('the standby is back', 'DOUBTFUL COMMITTED', a.outcome(number))
    pg.stop('s', signal.SIGQUIT)
    time.sleep(LEASE * 2)
    number = a.batch(new_row())
    same('away for longer than the lease', 'REFUSED', a.outcome(number))
    pg.start('s')
    report('the lease is renewed', wait_for(10, lambda: a.outcome(
        a.batch(new_row())) == 'COMMITTED'))
    check('standby away')


def test_lease_end():
    """The daemon knows the end of the lease, which no lost standby moves."""
    report('the lease lasts', wait_for(5, lambda: a.current > clock()))
    with Paused(pg):
        time.sleep(0.2)
        paused = clock()
        time.sleep(LEASE + 1)
        report('without the standby, the lease ends',
               a.current <= paused + LEASE, a.current - paused)
    report('with the standby, the lease lasts',
           wait_for(10, lambda: a.current > clock()))


# ---- a process that dies ----

def test_killed():
    with Paused(pg):
        rows = new_row(), new_row()
        a.batch(*rows)
        report('killed: COMMIT waits', pg.await_batch())
        a.end()
        applied = a.applied
        a.start()
        cancel_all(3)
        same('killed: no row and no role without the standby',
             (applied, None), (a.applied, a.role))
    report('killed: the node leads again', a.await_role(True), a.role)
    report('killed: the rows have come before the role',
           all(row['id'] in a.committed for row in rows), a.applied)
    with locked_lsn():
        row = new_row()
        a.batch(row)
        report('killed: the insert waits', pg.await_batch('transactionid'))
        a.end()
        a.start()
        report('killed: leads although the old session waits',
               a.await_role(True), a.role)
        report('killed before COMMIT: the row will never be there',
               row['id'] in a.refused)
    same('killed: a batch', 'COMMITTED', a.outcome(a.batch(new_row())))
    with Paused(pg):
        row = new_row()
        a.batch(row)
        report('hung up: COMMIT waits', pg.await_batch())
        same('hung up: the program ends', 75, a.hang_up())
        a.end()
    a.start()
    report('hung up: the node leads again', a.await_role(True), a.role)
    report('hung up: and has the row', row['id'] in a.committed)
    check('killed')


# ---- two nodes ----

def test_follower():
    b.start()
    report('a second node follows', b.await_role(False), b.message())
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
        20, lambda: commits(leader())), (a.role, b.role, a.message()[-700:], b.message()[-700:]))
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


# ---- wrong ends ----

def refuses(name, text, **changes):
    b.end()
    b.start(**changes)
    b.process.wait(20)
    same(f'{name}: status', 128, b.process.returncode)
    report(f'{name}: reason', text in b.message(), b.message()[-300:])
    report(f'{name}: no handler of exit() beside the other thread',
           not b.runs_handlers())


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

def leader():
    return a if a.role and a.role[0] else b if b.role and b.role[0] else None


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


run_cases(pg, nodes, test_create, test_commit, test_defaults,
          test_empty_setting, test_doubts, test_late_checkpointer, test_absent,
          test_restart, test_standby_away, test_lease_end, test_killed,
          test_follower, test_lag, test_flood, test_paused_leader,
          test_takeover_in_commit, test_takeover_in_fence, test_blocked,
          test_stop_in_commit, test_stop, test_hung_up, test_follower_start,
          test_unproven_epoch, test_silent_daemon, test_clock, test_wrong,
          test_old_primary, test_random, test_failover, nr_first=2)
