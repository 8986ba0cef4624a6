"""The cases of tests/long/group_hold.sh.

    group_hold.py REFD-GROUP DIRECTORY BINARIES UID"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import new_row, wait_for  # noqa: E402
from group_console import report, run_cases, same  # noqa: E402
from group_hold_nodes import (PROGRAM, REFS, TOP, Repo, Shut, a,  # noqa: E402
                              b, begin, git, make_node, pg, restart,
                              write_config)


def packed(path):
    """The number of objects in packs."""
    return int(git('-C', path, 'count-objects', '-v').split('in-pack: ')[1]
               .split()[0])


# ---- held ----

def test_held():
    repo = Repo('team/new.git')
    with Shut(b):
        oid = repo.commit()
        number = repo.hold(a, oid)
        time.sleep(1)
        same('no answer before the objects', [], a.outcomes[number])
    same('a missing repository is made', 'HELD', a.outcome(number))
    report('it has all objects', repo.is_whole(b, oid))
    with open(f'{TOP}/b/{repo.path}/refd/id') as file:
        same('its uuid', repo.uuid.hex(), file.readline().split()[1])
    path = f'{TOP}/b/{repo.path}'
    report('pushes go to refd', os.path.islink(f'{path}/hooks/proc-receive'))
    same('all of them', ['refs', 'adm!:refs'], git(
        '-C', path, 'config', '--get-all', 'receive.procReceiveRefs').split())
    written = subprocess.run(['git', '-C', path, 'update-ref', 'refs/heads/x',
                              oid.hex()], capture_output=True, text=True)
    report('git may not write there', written.returncode != 0 and
           'push to the leader' in written.stderr, written)
    same('its format of refs', REFS == 'reftable',
         os.path.exists(f'{TOP}/b/{repo.path}/reftable'))
    old = oid
    for i in range(3):
        oid, nr = repo.commit(), packed(f'{TOP}/b/{repo.path}')
        repo.expect_held(f'commit {i}', oid, old)
        same(f'commit {i}: only new objects come', nr + 3,
             packed(f'{TOP}/b/{repo.path}'))
        old = oid
    repo.expect_held('the same again', oid, old)
    repo.expect_held('a base that nobody has', repo.commit(), os.urandom(20))
    began = time.monotonic()
    for _ in range(20):
        old, oid = oid, repo.commit()
        a.outcome(repo.hold(a, oid, old))
    print(f'# one HOLD after the other: '
          f'{(time.monotonic() - began) * 50:.0f} ms each, commit included',
          flush=True)


def test_claimed():
    """b has a repository at the path, which refd has never opened."""
    for name, has_refs in (('empty', False), ('used', True)):
        repo = Repo(f'{name}.git')
        git('init', '-q', '--bare', f'{TOP}/b/{name}.git')
        oid = repo.commit()
        if has_refs:
            other = Repo('elsewhere.git')
            git('-C', f'{TOP}/b/used.git', 'fetch', '-q', '--no-tags',
                f'{TOP}/a/elsewhere.git',
                f'{other.commit().hex()}:refs/heads/x')
        same(f'{name}: the objects come', 'HELD', a.outcome(
            repo.hold(a, oid)))
        same(f'{name}: the repository aside', has_refs,
             os.path.exists(repo.aside(b)))


def test_half_made():
    """git init was killed amid a new repository."""
    repo = Repo('half.git')
    aside = repo.aside(b)
    git('init', '-q', '--bare', aside)
    os.unlink(f'{aside}/config')
    open(f'{aside}/HEAD.lock', 'w').close()
    if REFS == 'reftable':
        os.unlink(f'{aside}/reftable/tables.list')
        open(f'{aside}/reftable/tables.list.lock', 'w').close()
    repo.expect_held('a half-made repository', repo.commit())


def test_guard():
    """Somebody has removed the hook that refuses git."""
    repo = Repo('guard.git')
    repo.expect_held('a repository', repo.commit())
    hook = f'{TOP}/b/{repo.path}/hooks/reference-transaction'

    def status():
        out = subprocess.run([PROGRAM, '--config', b.config, 'status'],
                             capture_output=True, text=True)
        return out.returncode, f'{repo.path}: git may write' in out.stderr

    same('a guarded one', (0, False), status())
    os.unlink(hook)
    same('status names it', (1, True), status())
    restart(b)
    report('a start brings the hook back', os.path.islink(hook))
    os.unlink(hook)
    repo.expect_held('a later commit', repo.commit())
    report('a fetch brings the hook back', os.path.islink(hook))


def test_many():
    """20 HOLDs at once, beside batches."""
    repos = [Repo(f'many/{i}.git') for i in range(5)]
    oids = [(repo, repo.commit()) for _ in range(4) for repo in repos]
    holds = []
    batches = []
    for repo, oid in oids:
        holds.append(repo.hold(a, oid))
        batches.append(a.batch(new_row()))
    same('all HOLDs', {'HELD'}, {a.outcome(n) for n in holds})
    same('all batches', {'COMMITTED'}, {a.outcome(n) for n in batches})
    report('the follower has all',
           all(repo.is_whole(b, oid) for repo, oid in oids))
    bad = repos[0].hold(a, os.urandom(20))
    good = repos[0].hold(a, repos[0].commit())
    same('a wrong HOLD beside a right one', ('NOT_HELD', 'HELD'),
         (a.outcome(bad), a.outcome(good)))


def test_own():
    """The daemon of a follower asks for objects."""
    repo = Repo('own.git')
    repo.expect_held('a HOLD of a follower', repo.commit(), node=b)
    number = repo.hold(b, os.urandom(20))
    same('a wrong HOLD of a follower', 'NOT_HELD', b.outcome(number))


def test_lost_by_leader():
    """The leader has lost objects with its disk. A third node has them."""
    repo = Repo('lost.git')
    oid = repo.commit()
    repo.expect_held('b has the objects', oid)
    subprocess.run(f'rm -r {TOP}/a/lost.git/objects/??', shell=True,
                   check=True)
    c = make_node('c', ['a', 'b'])
    c.start()
    try:
        assert c.await_role(False), c.message()
        number = repo.hold(c, oid)
        same('c gets them from b', 'HELD', c.outcome(number, 20) +
             c.reasons.get(number, ''))
        report('c has all', repo.is_whole(c, oid))
    finally:
        c.end()
    pg.sql("DELETE FROM refd.node WHERE node = 'c'")


# ---- repositories that move on the leader ----

def packs(path):
    return [name for name in os.listdir(f'{path}/objects/pack')
            if name.endswith('.pack')]


def test_replaced():
    """A different repository is at the path, until a row is applied."""
    former, repo = Repo('replaced.git'), Repo('other.git')
    former.expect_held('the former repository', former.commit())
    nr = len(packs(f'{TOP}/b/replaced.git'))
    former.rename('removed.git')
    repo.rename('replaced.git')
    same('a new repository at its path', 'HELD',
         a.outcome(repo.hold(a, repo.commit())))
    same('the former one is unchanged', nr,
         len(packs(f'{TOP}/b/replaced.git')))
    report('the new one is aside', packs(repo.aside(b)))
    os.rename(f'{TOP}/b/replaced.git', former.aside(b))
    repo.expect_held('in its place', repo.commit())
    same('the former one, aside', 'HELD',
         a.outcome(former.hold(a, former.commit())))
    same('gets its objects', nr + 1, len(packs(former.aside(b))))


def test_renamed():
    """This node has the repository at its former path."""
    repo = Repo('some/renamed.git')
    repo.expect_held('before it is renamed', repo.commit())
    nr = len(packs(f'{TOP}/b/some/renamed.git'))
    repo.rename('deep/down/renamed.git')
    oid = repo.commit()
    same('after it is renamed', 'HELD', a.outcome(repo.hold(a, oid)))
    same('its objects are at its former path', nr + 1,
         len(packs(f'{TOP}/b/some/renamed.git')))
    report('and nowhere else', not os.path.exists(f'{TOP}/b/deep'))
    row = new_row()
    row.update(repo=repo.uuid, path=repo.path.encode())
    same('a row with the new path', 'COMMITTED', a.outcome(a.batch(row)))
    repo.path = 'some/renamed.git'
    same('a HOLD of a follower for an earlier row', 'HELD',
         b.outcome(b.hold(repo.path, repo.uuid, [oid])))
    number = a.hold('old.git', bytes(16), [], is_new=True)
    same('a repository with older refs is not made', 'NOT_HELD',
         a.outcome(number))


# ---- not held ----

def test_refused():
    repo = Repo('refused.git')
    repo.expect_refused('an object that the leader lacks', os.urandom(20),
                        text="node 'b': cannot fetch objects for")
    report('the log of b has the reason',
           'refd: warning: cannot fetch objects for' in b.message(),
           b.message()[-300:])
    odd = Repo(os.fsdecode(b'odd/ \xff%2f?#\'.git'))
    odd.expect_held('a path with all bytes', odd.commit())
    odd.expect_refused('a path with all bytes', os.urandom(20),
                       text="node 'b': cannot fetch objects for 'odd/ ?%2f")
    b.end()
    write_config('b', [])
    b.start()
    assert b.await_role(False)
    repo.expect_refused('no source', repo.commit(), text='group.source')
    restart(b)


def test_away():
    """The only other node is away."""
    repo = Repo('away.git')
    b.end()
    repo.expect_refused('the follower is away', repo.commit(), seconds=40,
                        text="node 'b' was seen ")
    repo.expect_refused('the reason has the remedy', repo.commit(), seconds=40,
                        text='start refd and refd-group there')
    b.start()
    assert b.await_role(False)
    repo.expect_held('the follower is back', repo.commit())


# ---- faults ----

def test_follower_killed():
    repo = Repo('killed.git')
    oid = repo.commit()
    with Shut(b):
        number = repo.hold(a, oid)
        time.sleep(1)
        b.end()
        b.start()
        assert b.await_role(False)
        time.sleep(0.5)
        same('killed in a fetch', [], a.outcomes[number])
    same('killed in a fetch, and started again', 'HELD', a.outcome(number))
    report('killed: the follower has all', repo.is_whole(b, oid))


def test_leader_killed():
    repo = Repo('restarted.git')
    oid = repo.commit()
    with Shut(b):
        repo.hold(a, oid)
        time.sleep(0.5)
        a.end()
        a.start()
        assert a.await_role(True), a.message()
        number = repo.hold(a, oid)
        time.sleep(0.5)
        same('the leader is new', [], a.outcomes[number])
    same('the leader is new, and the source answers', 'HELD',
         a.outcome(number))
    report('the leader is new: the follower has all', repo.is_whole(b, oid))


def test_stop():
    """STOP ends the fetches."""
    repo = Repo('stop.git')
    with Shut(b):
        number = repo.hold(a, repo.commit())
        assert wait_for(10, lambda: os.path.exists(repo.aside(b)))
        time.sleep(0.5)
        began = time.monotonic()
        same('STOP in a fetch', 0, b.stop())
        report('STOP is quick', time.monotonic() - began < 5)
        processes = subprocess.run(['ps', '-eo', 'args'], text=True,
                                   capture_output=True).stdout
        report('STOP leaves no git', not [
            line for line in processes.splitlines()
            if f'ssh://a-b/{TOP}' in line])
    b.start()
    assert b.await_role(False)
    same('the new process fetches', 'HELD', a.outcome(number))


def test_restart():
    """PostgreSQL crashes amid HOLDs, and empties its unlogged tables."""
    repo = Repo('crash.git')
    oids = [repo.commit() for _ in range(3)]
    with Shut(b):
        numbers = [repo.hold(a, oid) for oid in oids]
        time.sleep(0.5)
        pg.stop('p', signal.SIGQUIT)
        pg.start('p')
        time.sleep(0.5)
        same('PostgreSQL crashes', [[], [], []],
             [a.outcomes[n] for n in numbers])
    same('after a crash of PostgreSQL', {'HELD'},
         {a.outcome(n, 30) for n in numbers})
    report('after a crash: the follower has all', repo.is_whole(b, oids[2]))


def test_old_primary():
    """libpq tries a former primary first."""
    repo = Repo('old.git')
    restart(b, database=f'host={TOP},{TOP} port=5603,5601 dbname=refd user=refd'
            ' application_name=b')
    pg.copy_old()
    restart(a)
    pg.start_old('')
    pg.sql("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'b'""")
    time.sleep(0.5)
    repo.expect_held('a former primary comes first', repo.commit(), seconds=50)
    pg.stop('old')
    restart(b)


def test_clean():
    assert wait_for(20, lambda: pg.sql('SELECT count(*) FROM refd.held') != '0')
    for table in ('want', 'held'):
        pg.sql(f"UPDATE refd.{table} SET at = at - interval '3 minutes'")
    for table in ('want', 'held'):
        report(f'old rows of {table} are deleted', wait_for(
            60, lambda: pg.sql(f'SELECT count(*) FROM refd.{table}') == '0'))


# ---- numbers of followers ----

def held_by_b():
    return set(pg.sql("SELECT id FROM refd.held WHERE node = 'b'"
                      ' AND why IS NULL').split())


def test_two():
    """group.held is 2, with a second follower."""
    repo = Repo('two.git')
    c = make_node('c', ['a'])
    restart(a, held=2)
    c.start()
    try:
        assert c.await_role(False), c.message()
        with Shut(c):
            before = held_by_b()
            number = repo.hold(a, repo.commit())
            # However slow the follower is, until the leader gives up. A look
            # at its repository would move it away from the fetch.
            report('one of two: it has the objects', wait_for(
                70, lambda: a.outcomes[number] or held_by_b() - before))
            time.sleep(1)
            same('one of two', [], a.outcomes[number])
        same('two of two', 'HELD', a.outcome(number, 70))
        report('two: both have all', all(
            repo.is_whole(node, bytes.fromhex(repo.tip)) for node in (b, c)))
        restart(a, held=1)
        with Shut(c):
            same('one of one', 'HELD', a.outcome(
                repo.hold(a, repo.commit()), 70))
        with Shut(c), Shut(b):
            restart(a, held=0)
            same('none is needed', 'HELD',
                 a.outcome(repo.hold(a, repo.commit())))
        report('none is needed, and both fetch', wait_for(70, lambda: all(
            repo.is_whole(node, bytes.fromhex(repo.tip)) for node in (b, c))))
    finally:
        c.end()
    restart(a)


def promote(node):
    subprocess.run([PROGRAM, '--config', node.config, 'promote'], check=True,
                   stdout=subprocess.DEVNULL)
    assert node.await_role(True), node.message()


def test_former_leader():
    """A fetch from a former leader never ends: its machine is lost."""
    repo, other = Repo('former.git'), Repo('former2.git')
    c = make_node('c', ['a', 'b'])
    c.start()
    try:
        assert c.await_role(False), c.message()
        with Shut(c):
            oid = repo.commit()
            numbers = [repo.hold(a, oid), other.hold(a, other.commit())]
            number = repo.hold(c, repo.commit())
            same('b has the objects', {'HELD'},
                 {a.outcome(n) for n in numbers})
            report('b has all', repo.is_whole(b, oid))
            time.sleep(1)
            same('a fetch does not end', [], c.outcomes[number])
            promote(b)
            a.end()
            began = time.monotonic()
            same('the next leader gets its answer', 'HELD',
                 b.outcome(repo.hold(b, oid)))
            took = time.monotonic() - began
            report('at once', took < 3, took)
            same('the fetch for a row has ended', 'NOT_HELD',
                 c.outcome(number))
    finally:
        c.end()
    pg.sql("DELETE FROM refd.node WHERE node = 'c'")
    a.start()
    assert a.await_role(False), a.message()
    promote(a)


def end_without_lead(c):
    """C ends, and a leads again."""
    for node in (b, c):
        del node.send_applied
    c.end()
    b.send_applied()
    assert b.await_role(True), b.message()
    pg.sql("DELETE FROM refd.node WHERE node = 'c'")
    write_config('a', ['b'])
    a.start()
    assert a.await_role(False), a.message()
    promote(a)


def test_lost_leader():
    """The machine of the leader is lost while c fetches from it for a row. Both
    other nodes lack a row, so nobody can lead."""
    repo = Repo('leader.git')
    restart(a, lease='2s')
    c = make_node('c', ['a', 'b'])
    c.start()
    try:
        assert c.await_role(False), c.message()
        with Shut(c):
            oid = repo.commit()
            same('b has the objects', 'HELD', a.outcome(repo.hold(a, oid)))
            report('b has all', repo.is_whole(b, oid))
            for node in (b, c):
                node.send_applied = lambda: None
            same('a row', 'COMMITTED', a.outcome(a.batch(new_row())))
            number = repo.hold(c, oid)
            time.sleep(1)
            same('the fetch does not end', [], c.outcomes[number])
            a.end()
            began = time.monotonic()
            same('c gets them from b', 'HELD', c.outcome(number, 20) +
                 c.reasons.get(number, ''))
            took = time.monotonic() - began
            report('soon after the lease', took < 8, took)
            report('nobody leads', not b.role[0] and not c.role[0])
    finally:
        end_without_lead(c)


def test_lost_daemon():
    """The daemon of the leader is lost, and its machine is well. Both other
    nodes lack a row, so nobody can lead."""
    repo, third = Repo('daemon.git'), Repo('third.git')
    oid = third.commit()
    third.expect_held('b has the objects', oid)
    subprocess.run(f'rm -r {TOP}/a/third.git/objects/??', shell=True,
                   check=True)
    restart(a, lease='2s')
    c = make_node('c', ['a', 'b'])
    c.start()
    try:
        assert c.await_role(False), c.message()
        for node in (b, c):
            node.send_applied = lambda: None
        same('a row', 'COMMITTED', a.outcome(a.batch(new_row())))
        with Shut(b), Shut(c, 'b'):
            only = repo.hold(b, repo.commit())
            other = third.hold(c, oid)
            time.sleep(1)
            a.end()
            time.sleep(6)
            same('a fetch from the only source goes on', [], b.outcomes[only])
            same('a fetch from a third node goes on', [], c.outcomes[other])
        same('the only source', 'HELD', b.outcome(only, 20) +
             b.reasons.get(only, ''))
        same('a third node', 'HELD', c.outcome(other, 20) +
             c.reasons.get(other, ''))
        for name, node in (('only', b), ('last', c)):
            number = repo.hold(node, repo.commit())
            same(f'the {name} source gives more', 'HELD',
                 node.outcome(number, 20) + node.reasons.get(number, ''))
        report('nobody leads', not b.role[0] and not c.role[0])
    finally:
        end_without_lead(c)


run_cases(pg, (a, b), begin, test_held, test_claimed, test_half_made,
          test_guard, test_many, test_own, test_replaced, test_renamed, test_refused,
          test_follower_killed, test_leader_killed, test_stop, test_restart,
          test_old_primary, test_clean, test_two, test_former_leader,
          test_lost_by_leader, test_lost_leader, test_lost_daemon, test_away)
