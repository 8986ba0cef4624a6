"""The cases of tests/long/group_whole.sh.

    group_whole.py PROGRAMS DIRECTORY POSTGRES-DIRECTORY BINARIES UID"""
import os
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import Postgres, wait_for  # noqa: E402
from group_clients import Maker, Pusher, Rival, World, Writer  # noqa: E402
from group_faults import Faults  # noqa: E402
import group_real  # noqa: E402

PROGRAMS, TOP, PG, BINARIES, UID, SECONDS = sys.argv[1:]
SEED = int(os.environ.get('GROUP_SEED', '1'))
ONE, TWO, THREE = 'team/one.git', 'two.git', 'three.git'
WORK = f'{TOP}/work/one'


def report(name, is_right, why=''):
    why = str(why).replace('\n', ' | ')[-1500:]
    print(f'ok {name}' if is_right else f'not ok {name}: {why}', flush=True)


def same(name, wanted, got):
    report(name, wanted == got,
           f'wanted {str(wanted)[:500]!r}, got {str(got)[:500]!r}')


def git(*args, **more):
    return subprocess.run(['git', *args], check=True, capture_output=True,
                          text=True, **more).stdout.strip()


group_real.prepare(TOP)
pg = Postgres(PG, BINARIES, int(UID))
a, b, c = nodes = [group_real.RealNode(
    name, 'abc', TOP, PROGRAMS,
    f'host={PG},{PG} port=5601,5602 dbname=refd user=refd') for name in 'abc']


# ---- the state of all nodes ----

def primary(text):
    """The answer of the server that is the primary."""
    return pg.sql(text, 5601 if 'p' in pg.servers else 5602)


def end_of_log():
    return primary('SELECT max(lsn) FROM refd.log')


def await_all(name, seconds=30):
    """All nodes have applied the whole log."""
    end = end_of_log()
    report(f'{name}: all nodes have applied the log', wait_for(
        seconds, lambda: primary(
            f'SELECT count(*) FROM refd.node WHERE applied = {end}') == '3'),
        primary('SELECT node, applied FROM refd.node') + f' {end} '
        + ' '.join(node.said()[-300:] for node in nodes))


def same_everywhere(name, *repos):
    await_all(name)
    for repo in repos:
        for node in (b, c):
            same(f'{name}: {repo}: {node.name} has the refs of a',
                 a.refs(repo), node.refs(repo))
        for node in nodes:
            same(f'{name}: {repo}: fsck at {node.name}', [], node.fsck(repo))


def done(name, result):
    report(name, result.returncode == 0, result)
    return result


def commit_files(nr):
    """NR commits with a file each."""
    stream = []
    for i in range(nr):
        text = f'{time.monotonic()} {i}\n' * 20
        stream.append(
            f'commit refs/heads/main\ncommitter a <a@x> {1700000000 + i} +0000'
            f'\ndata 1\nx\n' + ('' if i or not os.path.exists(
                f'{WORK}/.git/refs/heads/main') else
                'from refs/heads/main^0\n')
            + f'M 100644 inline f{i % 50}\ndata {len(text)}\n{text}\n')
    git('-C', WORK, 'fast-import', '--quiet', input=''.join(stream))


# ---- one leader ----

def test_begin():
    pg.sql('CREATE ROLE refd LOGIN', database='postgres')
    pg.sql('CREATE DATABASE refd OWNER refd', database='postgres')
    pg.sql('GRANT pg_read_all_stats TO refd')
    pg.names()
    assert wait_for(20, lambda: pg.sql("SELECT count(*) FROM"
            " pg_stat_replication WHERE sync_state = 'quorum'") == '1')
    done('refd group create', a.command('create'))
    a.up()
    report('a leads', wait_for(20, a.leads), a.said() + a.group.said())
    b.up()
    c.up()
    for node in (b, c):
        report(f'{node.name} follows', node.await_said('group-follows'),
               node.said() + node.group.said())
    assert wait_for(20, lambda: pg.sql('SELECT count(*) FROM refd.node')
                    == '3'), pg.sql('SELECT * FROM refd.node')


def test_push():
    git('init', '-q', '-b', 'main', WORK)
    git('init', '-q', '--bare', '-b', 'main', f'{a.root}/{ONE}')
    done('refd enable', a.enable(ONE))
    commit_files(1)
    done('the first push', a.push(WORK, ONE, 'main'))
    same('a has the commit', git('-C', WORK, 'rev-parse', 'main'),
         a.git(ONE, 'rev-parse', 'main'))
    same_everywhere('first push', ONE)
    commit_files(500)
    began = time.monotonic()
    done('500 commits', a.push(WORK, ONE, 'main'))
    print(f'# a push of 500 commits: {time.monotonic() - began:.2f} s',
          flush=True)
    same_everywhere('500 commits', ONE)


def test_kinds():
    git('-C', WORK, 'tag', '-a', '-m', 'x', 'v1')
    done('tags and branches', a.push(
        WORK, ONE, 'v1', 'main:side',
        'main~5:refs/tags/light', 'main~9:refs/heads/old'))
    done('a deletion', a.push(WORK, ONE, ':side'))
    git('-C', WORK, 'reset', '-q', '--soft', 'HEAD~20')
    git('-C', WORK, 'commit', '-q', '-m', 'forced')
    report('no fast-forward: refused',
           a.push(WORK, ONE, 'main').returncode != 0)
    done('a forced push', a.push(WORK, ONE, '+main'))
    done('several refs at once', a.push(
        WORK, ONE, '--atomic', 'main:x/1',
        'main~1:refs/heads/x/2', ':old'))
    refs = a.refs(ONE).split('\n')
    same('the refs', ['refs/heads/main', 'refs/heads/x/1', 'refs/heads/x/2',
                      'refs/tags/light', 'refs/tags/v1'],
         [line.split()[0] for line in refs])
    same_everywhere('kinds', ONE)


def test_second():
    git('init', '-q', '--bare', '-b', 'main', f'{a.root}/{TWO}')
    done('enable the second repository', a.enable(TWO))
    done('a push to the second repository', a.push(WORK, TWO, 'main', 'v1'))
    same_everywhere('second repository', ONE, TWO)
    for node in (b, c):
        for repo in (ONE, TWO):
            done(f'{node.name}: refd enable {repo}', node.enable(repo))
        result = node.update(TWO, '--timeout', '500', 'refs/heads/refused',
                             git('-C', WORK, 'rev-parse', 'main'))
        report(f'{node.name} takes no update', result.returncode == 75 and
               "the node 'a' leads" in result.stderr, result)


def test_away():
    """A node that was away for so long that nobody asks it for objects."""
    c.down()
    commit_files(20)
    git('init', '-q', '--bare', '-b', 'main', f'{a.root}/{THREE}')
    done('enable the third repository', a.enable(THREE))
    for repo in (ONE, THREE):
        done(f'c is away: a push to {repo}', a.push(WORK, repo, '+main'))
    pg.sql('DELETE FROM refd.want')
    c.up()
    same_everywhere('c is back', ONE, TWO, THREE)


# ---- another leader ----

def test_takeover():
    txid = f'{int(time.time() * 1000):012x}' + '7' * 20
    main = a.git(ONE, 'rev-parse', 'main')
    done('an update with an id', a.update(
        ONE, '--txid', txid, 'refs/heads/known', main))
    asked = a.run('query', txid)
    began = time.monotonic()
    # refd-group comes first, so nobody gives the lease up.
    a.group.down()
    a.daemon.down()
    leader = group_real.await_leader((b, c))
    took = time.monotonic() - began
    assert leader, b.group.said() + c.group.said()
    print(f'# takeover after kill -9 of both programs: {took:.2f} s',
          flush=True)
    report('another node leads within 10 s', took < 10, took)
    same('the outcome at the new leader', asked.stdout,
         leader.run('query', txid).stdout)
    report('the outcome is known', 'committed' in asked.stdout, asked)
    commit_files(3)
    done('a push to the new leader', leader.push(WORK, ONE, '+main'))
    took = time.monotonic() - began
    print(f'# a push to the new leader is done after {took:.2f} s', flush=True)
    refs = leader.refs(ONE)
    a.up()
    report('a follows', a.await_said('group-follows', len(a.said())), a.said())
    same_everywhere('a is back', ONE, TWO)
    same('a has the refs of the new leader', refs, a.refs(ONE))


def test_status():
    status = a.command('status')
    report('refd group status', status.returncode == 0 and
           all(f'node {name}: has applied LSN {end_of_log()}' in status.stdout
               for name in 'abc'), status)


# ---- faults at random ----

problems = []
world = World(nodes, problems.append)
faults = Faults(pg, nodes, TOP, SEED)
clients = []


def begin_clients():
    clients.extend(Writer(world, repo, i) for repo in (ONE, TWO)
                   for i in range(4))
    clients.extend(Rival(world, repo, 0, name) for repo in (ONE, TWO)
                   for name in 'xyz')
    clients.append(Pusher(world, ONE, f'{TOP}/work/pushed'))
    clients.append(Maker(world))
    for client in clients:
        client.start()


def end_clients(name):
    world.ends.set()
    for client in clients:
        client.join(180)
    report(f'{name}: every client ends', not any(
        client.is_alive() for client in clients))


def print_numbers(began):
    acks = sorted(world.acks)
    gaps = sorted(y - x for x, y in zip([began] + acks, acks))
    print(f'# {len(acks)} acknowledged updates; answers:',
          dict(world.answers))
    print('# faults:', dict(faults.counts))
    print(f'# {faults.epochs()} epochs; from a kill of programs to the next'
          ' leader:', ' '.join(f'{t:.1f}' for t in sorted(faults.takeovers)))
    print('# longest times without an acknowledgement:',
          ' '.join(f'{gap:.1f}' for gap in gaps[-5:]), flush=True)


def check_clients(name):
    for repo in (ONE, TWO):
        refs = dict(line.split()[:2] for line in a.refs(repo).split('\n'))
        problems.extend(Rival.check(repo, 'refs/heads/r0', refs))
        for client in clients:
            if client.repo == repo and isinstance(client, (Writer, Pusher)):
                problems.extend(client.check(refs))
    for client in clients:
        if isinstance(client, Maker):
            problems.extend(
                f'{node.name}: {repo}: not {new}'
                for repo, new in client.made.items() for node in nodes
                if node.git(repo, 'rev-parse', 'refs/heads/main') != new)
    same(f'{name}: no acknowledged update is lost', [], problems[:5])


def check_logs(name, port=5601):
    """Every node has the rows of the group, in their order."""
    rows = {int(lsn): txid for lsn, txid in (line.split('|') for line in pg.sql(
        "SELECT lsn, upper(encode(txid, 'hex')) FROM refd.log WHERE lsn > 0",
        port).splitlines())}
    for node in nodes:
        same(f'{name}: {node.name} has all rows', rows, node.journal())


def made():
    return [repo for client in clients if isinstance(client, Maker)
            for repo in client.made]


def test_random():
    begin_clients()
    began = time.monotonic()
    while time.monotonic() - began < float(SECONDS):
        time.sleep(faults.random.random() * 2)
        faults.one()
        acks = len(world.acks)
        if faults.random.random() < 0.7:
            report('updates go on', wait_for(
                60, lambda: len(world.acks) > acks), [
                    node.said()[-300:] + node.group.said()[-300:]
                    for node in nodes])
    acks = len(world.acks)
    report('after the faults: updates go on', wait_for(
        60, lambda: len(world.acks) > acks + 20), len(world.acks))
    end_clients('random')
    print_numbers(began)
    same_everywhere('random', ONE, TWO, *made())
    check_clients('random')
    check_logs('random')


def test_failover():
    """The primary is lost amid updates, and its standby takes its place."""
    world.ends.clear()
    world.acks.clear()
    old = [client for client in clients if isinstance(client, Writer)]
    clients[:] = [Writer(world, TWO, 10 + i) for i in range(4)]
    for client in clients:
        client.start()
    assert wait_for(20, lambda: len(world.acks) > 50)
    pg.stop('p', signal.SIGQUIT)
    pg.promote()
    faults.copy_standby()
    acks = len(world.acks)
    report('failover: updates go on', wait_for(
        60, lambda: len(world.acks) > acks + 20),
        [node.group.said()[-500:] for node in nodes])
    clients.extend(old)
    end_clients('failover')
    same_everywhere('failover', ONE, TWO)
    check_clients('failover')
    check_logs('failover', 5602)


def test_ended():
    """Every program has ended only as it had to."""
    for node in nodes:
        for service in node.services():
            print(f'# ends of {service.name}: {dict(service.statuses)}')
            same(f'ends of {service.name}', set(),
                 set(service.statuses) - {-9, 0, 74, 75})
        report(f'{node.name} does not differ', 'differs from' not in
               node.said() and 'report this' not in node.said(),
               node.said()[-500:])


def main():
    tests = [test_begin, test_push, test_kinds, test_second, test_away,
             test_takeover, test_status, test_random, test_failover, test_ended]
    try:
        for test in tests:
            began = time.monotonic()
            test()
            print(f'# {test.__name__}: {time.monotonic() - began:.1f} s',
                  flush=True)
        open(f'{TOP}/ended', 'w').close()
    except Exception:  # the processes must end in any case
        report('the cases', False, traceback.format_exc())
    finally:
        for node in nodes:
            node.end()
        for which in list(pg.servers):
            pg.stop(which)


main()
