"""Cases of tests/long/group_log.sh: the commands of the administrator, the
batches of one leader, and a refd-group that dies."""
import os
import signal
import subprocess
import time

from group import clock, new_row, wait_for
from group_console import (Paused, await_standbys, expect, make_role, report,
                           same)
from group_log_nodes import (LEASE, TOP, a, cancel_all, check, console,
                             locked_lsn, pg)


# ---- the administrator ----

def second_s1():
    """The standby s1 has two rows, as after a connection that was cut."""
    receiver = subprocess.Popen(pg.account(
        'pg_receivewal', '-D', TOP, '--synchronous', '-d',
        f'host={TOP} port=5601 user=postgres application_name=s1'),
        stderr=subprocess.DEVNULL)
    await_standbys(pg, 2)
    return receiver


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
    expect('create: again', 128, 'exists already',
           console.run('create', node='b'))
    expect('status: no leader', 1, 'the lease is over',
           console.run('status'))
    receiver = second_s1()
    expect('status: two standbys of one name count once', 1,
           'copies: 1 synchronous standbys, 1 needed',
           console.run('status'))
    receiver.terminate()
    receiver.wait()


def test_defaults():
    """A role with timeouts, and a node with a wrong name."""
    timeouts = pg.sql("""SELECT name FROM pg_settings WHERE name IN
        ('idle_session_timeout', 'transaction_timeout')""").split()
    for timeout in timeouts:
        pg.sql(f"ALTER ROLE refd SET {timeout} = '300ms'")
    a.end()
    a.start()
    assert a.await_role(True), a.message()
    time.sleep(1)
    same('idle_session_timeout of the role', 'COMMITTED',
         a.outcome(a.batch(new_row())))
    with locked_lsn():
        number = a.batch(new_row())
        time.sleep(1)
    same('timeouts of the role, and a long wait for a lock', 'COMMITTED',
         a.outcome(number))
    for timeout in timeouts:
        pg.sql(f'ALTER ROLE refd RESET {timeout}')
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


def test_copies():
    a.end()
    console.config('a', copies=2)
    receiver = second_s1()
    a.start()
    report('two rows of one standby are one copy', wait_for(
        20, lambda: '1 of 2 standbys have flushed' in a.message()),
        a.message()[-700:])
    a.end()
    receiver.terminate()
    receiver.wait()
    console.config('a')
    a.start()
    report('the node leads with one copy', a.await_role(True), a.message())


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
        pid = pg.batch_waits('transactionid')
        pg.sql(f'SELECT pg_terminate_backend({pid})')
        wait_for(10, lambda: a.outcomes[number])
    same('a connection cut before COMMIT', 'DOUBTFUL COMMITTED',
         a.outcome(number))
    check('absent')


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


CASES = (test_create, test_commit, test_copies, test_defaults,
         test_empty_setting, test_doubts, test_late_checkpointer, test_absent,
         test_restart, test_standby_away, test_lease_end, test_killed)
