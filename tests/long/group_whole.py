"""The cases of tests/long/group_whole.sh.

    group_whole.py PROGRAMS DIRECTORY POSTGRES-DIRECTORY BINARIES UID SECONDS"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import wait_for  # noqa: E402
from group_clients import Forker, Maker, Pusher, Stranger, World  # noqa: E402
from group_disks import disks  # noqa: E402
from group_faults import Faults, clock  # noqa: E402
from group_faults_repos import overwrite  # noqa: E402
from group_faults_times import summary  # noqa: E402
import group_net  # noqa: E402
import group_real  # noqa: E402
from group_servers import Servers  # noqa: E402
from group_writers import Brancher, Rival, Twins, Writer  # noqa: E402

PROGRAMS, TOP, PG, BINARIES, UID, SECONDS = sys.argv[1:]
SEED = int(os.environ.get('GROUP_SEED', '1'))
ONE, TWO, THREE = 'team/one.git', 'two.git', 'three.git'
WORK = f'{TOP}/work/one'
wrong = []      # names of failed checks


def report(name, is_right, why=''):
    why = str(why).replace('\n', ' | ')[-1500:]
    if not is_right:
        wrong.append(name)
    print(f'ok {name}' if is_right else f'not ok {name}: {why}', flush=True)


def same(name, wanted, got):
    report(name, wanted == got,
           f'wanted {str(wanted)[:500]!r}, got {str(got)[:500]!r}')


def git(*args, **more):
    return subprocess.run(['git', *args], check=True, capture_output=True,
                          text=True, **more).stdout.strip()


group_real.prepare(TOP)
servers = Servers(PG, BINARIES, int(UID))
cellar = disks.Cellar(TOP)
a, b, c = nodes = [group_real.RealNode(
    name, 'abc', TOP, PROGRAMS, servers.database(), cellar) for name in 'abc']


# ---- the state of all nodes ----

def await_all(name, seconds=30):
    """All nodes have applied the whole log."""
    end = servers.lsn()
    report(f'{name}: all nodes have applied the log', wait_for(
        seconds, lambda: servers.sql(
            f'SELECT count(*) FROM refd.node WHERE applied = {end}') == '3'),
        servers.sql('SELECT node, applied FROM refd.node') + f' {end} '
        + ' '.join(node.said()[-300:] for node in nodes))


def same_everywhere(name, *repos):
    await_all(name)
    for node in nodes:
        same(f'{name}: {node.name} has the refs of a',
             [a.refs(repo) for repo in repos],
             [node.refs(repo) for repo in repos])
        same(f'{name}: fsck at {node.name}', [], sum(
            (node.fsck(repo) for repo in repos), []))


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
    servers.primary.sql('CREATE ROLE refd LOGIN')
    servers.primary.sql('CREATE DATABASE refd OWNER refd')
    servers.primary.sql('GRANT pg_read_all_stats TO refd')
    done('refd group create', a.command('create'))
    a.up()
    report('a leads', wait_for(20, a.leads), a.said() + a.group.said())
    b.up()
    c.up()
    for node in (b, c):
        report(f'{node.name} follows', node.await_said('group-follows'),
               node.said() + node.group.said())
    assert wait_for(20, lambda: servers.sql('SELECT count(*) FROM refd.node')
                    == '3'), servers.sql('SELECT * FROM refd.node')


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


# ---- refd group verify ----

def verify(node, *args, repos=(ONE, TWO)):
    return node.command('verify', *args,
                        *(f'{node.seen_root}/{repo}' for repo in repos))


def clean_everywhere(name):
    for node in nodes:
        result = verify(node)
        report(f'{name}: refd group verify at {node.name}',
               result.returncode == 0 and '2 repositories verified, 0 with'
               in result.stdout, result)


def finds(name, node, *lines):
    result = verify(node)
    report(name, result.returncode == 1 and
           '2 repositories verified, 1 with' in result.stdout and
           all(line in result.stdout for line in lines), result)


def repairs(name, node):
    result = verify(node, '--repair')
    report(f'{name}: it is repaired', result.returncode == 0 and
           'repaired with the objects of the node' in result.stdout, result)
    same(f'{name}: all objects are there', [], node.fsck(ONE))
    report(f'{name}: the damaged files are kept',
           os.listdir(f'{node.root}/{ONE}/refd/damaged'))
    same_everywhere(name, ONE)
    clean_everywhere(name)


def packs(node):
    folder = f'{node.root}/{ONE}/objects/pack'
    return [f'{folder}/{name}' for name in os.listdir(folder)
            if name.endswith('.pack')]


def test_verify_writes():
    """Refs that change back and forth are no difference."""
    ends = threading.Event()
    values = git('-C', WORK, 'rev-parse', 'main', 'main~1').split()

    def write(i):
        nr = 0
        while not ends.is_set():
            a.update(TWO, f'refs/heads/v{i}', values[nr % 2])
            nr += 1

    writers = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for writer in writers:
        writer.start()
    clean_everywhere('writes')
    ends.set()
    for writer in writers:
        writer.join()
    same_everywhere('after the writes', TWO)


def test_verify_late():
    """A node that applies no rows holds up a run once, not at each repository.
    """
    c.daemon.send(signal.SIGSTOP)
    began = time.monotonic()
    try:
        commit_files(1)
        done('a push without c', a.push(WORK, ONE, 'main'))
        result = a.command('verify', f'{a.seen_root}/{ONE}',
                           f'{a.seen_root}/{TWO}', seconds=100)
    finally:
        c.daemon.send(signal.SIGCONT)
    took = time.monotonic() - began
    report('both are not compared', result.returncode == 1 and all(
        f"{repo}: not compared: the node 'c'" in result.stdout
        for repo in (ONE, TWO)), result)
    report('one wait', took < 50, took)
    same_everywhere('c goes on', ONE, TWO)


def test_verify_refs():
    """Another program writes refs of one node."""
    main, old = (a.git(ONE, 'rev-parse', f'refs/heads/main{end}')
                 for end in ('', '~1'))

    def write(*args):
        c.git(ONE, '-c', 'core.hooksPath=/dev/null', 'update-ref', *args)

    write('refs/heads/main', old)
    write('refs/heads/own', old)
    write('-d', 'refs/tags/light')
    light = a.git(ONE, 'rev-parse', 'refs/tags/light')
    finds('refs of c differ', c, *(
        f"{ONE}: {ref} on '{node}'" for node in 'ab' for ref in (
            f"refs/heads/main is {old} on 'c', and {main}",
            f"refs/heads/own is {old} on 'c', and missing",
            f"refs/tags/light is missing on 'c', and {light}")))
    finds('refs of c differ, seen from a', a,
          f"{ONE}: refs/heads/main is {main} on 'a', and {old} on 'c'")
    write('refs/heads/main', main)
    write('-d', 'refs/heads/own')
    write('refs/tags/light', light)
    clean_everywhere('refs are back')
    os.rename(f'{c.root}/{TWO}', f'{c.root}/away')
    result = verify(b)
    os.rename(f'{c.root}/away', f'{c.root}/{TWO}')
    report('a node does not have a repository', result.returncode == 1 and
           f"{TWO}: not compared with the node 'c'" in result.stdout and
           'missing' not in result.stdout, result)


def test_verify_objects():
    b.git(ONE, 'repack', '-adq')
    pack, = packs(b)
    overwrite(pack)
    finds('a pack is overwritten', b, f'{ONE}: the pack objects/pack/'
          f'{os.path.basename(pack)} is damaged')
    repairs('a pack is overwritten', b)
    c.git(ONE, 'repack', '-adq')
    pack, = packs(c)
    kept = f'{c.root}/{ONE}/kept'
    os.rename(pack, kept)
    os.unlink(f'{pack[:-4]}idx')
    with open(kept, 'rb') as file:
        c.git_here('-C', f'{c.seen_root}/{ONE}', 'unpack-objects', '-q',
                   stdin=file)
    os.unlink(kept)
    main = c.git(ONE, 'rev-parse', 'refs/heads/main')
    overwrite(f'{c.root}/{ONE}/objects/{main[:2]}/{main[2:]}')
    finds('a loose object is overwritten', c, f'{ONE}: objects are damaged')
    repairs('a loose object is overwritten', c)


def test_fork():
    """A fork with the objects of an alternate, as a forge makes it."""
    done('a fork', a.git_here(
        'clone', '-q', '--bare', '--shared', f'{a.seen_root}/{ONE}',
        f'{a.seen_root}/fork.git'))
    done('refd enable of a fork', a.enable('fork.git'))
    done('a push to the fork', a.push(WORK, 'fork.git', 'main:late'))
    same_everywhere('fork', 'fork.git')


def test_away():
    """A node that was away for so long that nobody asks it for objects."""
    c.down()
    commit_files(20)
    git('init', '-q', '--bare', '-b', 'main', f'{a.root}/{THREE}')
    done('enable the third repository', a.enable(THREE))
    for repo in (ONE, THREE):
        done(f'c is away: a push to {repo}', a.push(WORK, repo, '+main'))
    servers.sql('DELETE FROM refd.want')
    c.up()
    same_everywhere('c is back', ONE, TWO, THREE)


def begin_repo(repo):
    git('init', '-q', '--bare', '-b', 'main', f'{a.root}/{repo}')
    done(f'enable {repo}', a.enable(repo))
    done(f'a push to {repo}', a.push(WORK, repo, '+main'))


def test_moves():
    """Repositories are renamed and replaced on the leader while a node is
    away."""
    begin_repo('four.git')
    begin_repo('five.git')
    same_everywhere('before the moves', 'four.git', 'five.git')
    c.down()
    commit_files(20)
    done('a push before the moves', a.push(WORK, 'four.git', 'main'))
    os.makedirs(f'{a.root}/moved')
    os.rename(f'{a.root}/four.git', f'{a.root}/moved/four.git')
    os.rename(f'{a.root}/five.git', f'{a.root}/four.git')
    commit_files(20)
    begin_repo('five.git')
    for repo in ('moved/four.git', 'four.git'):
        done(f'a push to {repo}', a.push(WORK, repo, 'main'))
    shutil.rmtree(f'{a.root}/five.git')
    begin_repo('five.git')
    c.up()
    same_everywhere('moves', 'moved/four.git', 'four.git', 'five.git')


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


def test_hang():
    """A daemon that hangs does not keep the lead."""
    old, = (node for node in nodes if node.leads())
    old.daemon.send(signal.SIGSTOP)
    began = time.monotonic()
    leader = group_real.await_leader([node for node in nodes
                                      if node is not old])
    took = time.monotonic() - began
    old.daemon.send(signal.SIGCONT)
    report('a daemon hangs: another node leads within 10 s',
           leader and took < 10, took)
    done('a push to the new leader', leader.push(WORK, ONE, '+main:hang'))
    same_everywhere('the daemon goes on', ONE)


def test_lost():
    """The machine of the leader is lost, amid fetches from there."""
    old, = (node for node in nodes if node.leads())
    others = [node for node in nodes if node is not old]
    commit_files(500)
    pushing = threading.Thread(target=old.push, args=(WORK, ONE, '+main'))
    with group_net.Cut([old.host], [node.host for node in others]):
        pushing.start()
        report('the other nodes are asked for objects', wait_for(
            20, lambda: servers.sql('SELECT count(*) FROM refd.want AS w WHERE'
                                    ' NOT EXISTS (SELECT FROM refd.held WHERE'
                                    ' id = w.id)') != '0'))
        time.sleep(1)
        with group_net.Cut([old.host], servers.hosts()):
            await_other(others)
    pushing.join()
    same_everywhere('the machine is back', ONE)


def await_other(others):
    """Another node leads, and takes writes."""
    began = time.monotonic()
    leader = group_real.await_leader(others)
    print('# takeover after the loss of a machine: '
          f'{time.monotonic() - began:.2f} s', flush=True)
    done('a push to the new leader', leader.push(WORK, ONE, '+main'))
    took = time.monotonic() - began
    print(f'# the push is done after {took:.2f} s', flush=True)
    report('writes are back 4 s after the lease',
           took < group_real.LEASE + 4, took)


def test_lost_server():
    """The machine of the primary is lost: no host says so."""
    old = servers.primary
    main = a.git(ONE, 'rev-parse', 'main')
    hosts = [node.host for node in nodes] + servers.hosts()
    with group_net.Cut([old.host], hosts):
        began = time.monotonic()
        servers.fail_over()
        moved = time.monotonic() - began
        is_done = wait_for(60, lambda: any(node.update(
            ONE, '--timeout', '1000', 'refs/heads/server', main
        ).returncode == 0 for node in nodes))
        took = time.monotonic() - began
        print(f'# failover after {moved:.2f} s, an update after {took:.2f} s',
              flush=True)
        report('writes are back 5 s after the time of the lease',
               is_done and took < group_real.LEASE + 5, took)
    servers.rejoin(old)
    same_everywhere('the server is back', ONE)


def test_status():
    status = a.command('status')
    report('refd group status', status.returncode == 0 and
           all(f'node {name}: has applied LSN {servers.lsn()}' in status.stdout
               for name in 'abc'), status)


# ---- faults at random ----

problems, lost = [], []


def add_problem(text):
    print(f'# {clock(time.time())} {text}', flush=True)
    problems.append(text)


world = World(nodes, add_problem)
faults = Faults(servers, nodes, world, SEED, f'{TOP}/faults.log')
clients = []


def begin_clients():
    for repo in (ONE, TWO):
        clients.extend(Writer(world, repo, i) for i in range(3))
        clients.extend([Twins(world, repo, 0), Brancher(world, repo, 0)])
    clients.extend(Rival(world, repo, 0, name) for repo in (ONE, TWO)
                   for name in 'xyz')
    clients.append(Pusher(world, ONE, f'{TOP}/work/pushed'))
    clients.extend([Maker(world), Forker(world, TWO), Stranger(world, ONE)])
    for client in clients:
        client.start()


def end_clients(name):
    world.ends.set()
    for client in clients:
        client.join(180)
    report(f'{name}: every client ends', not any(
        client.is_alive() for client in clients))


def print_summary():
    print('summary', json.dumps({
        'seed': SEED, 'seconds': int(SECONDS), 'lease': group_real.LEASE,
        'acknowledged': len(world.acks), 'answers': dict(world.answers),
        'failovers': servers.failovers,
        'epochs': int(servers.sql('SELECT epoch FROM refd.lease')),
        'lost': len(lost), 'problems': len(problems), 'wrong': wrong,
        **summary(faults.events)}), flush=True)


def check_node(node):
    """All that clients know is right at this node."""
    found = []
    for repo in (ONE, TWO):
        refs = dict(line.split()[:2] for line in node.refs(repo).split('\n'))
        found.extend(Rival.check(repo, 'refs/heads/r0', refs))
        for client in clients:
            if client.repo == repo and hasattr(client, 'acked'):
                found.extend(client.check(refs, lambda value: set(node.git(
                    repo, 'rev-list', value).split())))
    for client in clients:
        if isinstance(client, Maker):
            found.extend(
                f'{repo}: not {new}' for repo, new in client.made.items()
                if node.git(repo, 'rev-parse', 'refs/heads/main') != new)
        if isinstance(client, Forker):
            found.extend(f'{repo}: not {refs}' for repo, refs in
                         client.made.items() if node.refs(repo) != refs)
    return found


def check_clients(name):
    same(f'{name}: no client has found a fault', [], problems[:5])
    for node in nodes:
        missing = check_node(node)
        lost.extend(missing)
        same(f'{name}: {node.name} has all acknowledged updates', [],
             missing[:5])
        for repo in (ONE, TWO):
            done(f'{name}: {node.name}: refd verify {repo}', node.verify(repo))


def check_logs(name):
    """Every node has the rows of the group, in their order."""
    rows = {int(lsn): txid for lsn, txid in (line.split('|') for line in servers.sql(
        "SELECT lsn, upper(encode(txid, 'hex')) FROM refd.log WHERE lsn > 0"
        ).splitlines())}
    for node in nodes:
        same(f'{name}: {node.name} has all rows', rows, node.journal())


def made():
    return [repo for client in clients
            if isinstance(client, (Maker, Forker)) for repo in client.made]


def test_random():
    begin_clients()
    began = time.monotonic()
    assert wait_for(30, lambda: world.found), [node.said() for node in nodes]
    while time.monotonic() - began < float(SECONDS):
        if not faults.one():
            report('updates go on', False, [
                node.said()[-300:] + node.group.said()[-300:]
                for node in nodes])
            break
    acks = len(world.acks)
    report('after the faults: updates go on', wait_for(
        60, lambda: len(world.acks) > acks + 20), len(world.acks))
    end_clients('random')
    same_everywhere('random', ONE, TWO, *made())
    clean_everywhere('random')
    check_clients('random')
    check_logs('random')


def no_room(node):
    """The exit statuses of a daemon that starts without room on the disk."""
    return {69} if re.search('event=start-failed.*[Nn]o space',
                             node.said()) else set()


def name_taken(node):
    """The exit status of refd-group whose clone took the name of the node: in a
    storm the machine itself can be away at that moment."""
    return {128} if 'another machine is the node' in node.group.said() else set()


def test_ended():
    """Every program has ended only as it had to."""
    for node in nodes:
        for service in node.services():
            print(f'# ends of {service.name}: {dict(service.statuses)}')
            same(f'ends of {service.name}', set(),
                 set(service.statuses) - {
                     -15, -9, 0, 74, 75, *no_room(node), *name_taken(node)})
        report(f'{node.name} does not differ', 'differs from' not in
               node.said() and 'report this' not in node.said(),
               node.said()[-500:])
    print_summary()


def keep_logs(where):
    os.makedirs(where, exist_ok=True)
    for kept in ((f'{TOP}/faults.log', 'faults.log'),
                 *((f'{node.top}/{name}', f'{node.name}-{name}')
                   for node in nodes for name in ('log', 'group.log')),
                 *((f'{server.top}/log', f'{server.name}-log')
                   for server in servers.all)):
        shutil.copy(kept[0], f'{where}/{kept[1]}')


def main():
    tests = [test_begin, test_push, test_kinds, test_second,
             test_verify_writes, test_verify_late, test_verify_refs, test_verify_objects,
             test_fork, test_away, test_moves, test_takeover, test_hang, test_lost,
             test_lost_server,
             test_status, test_random, test_ended]
    try:
        for test in tests:
            began = time.monotonic()
            test()
            print(f'# {test.__name__}: {time.monotonic() - began:.1f} s',
                  flush=True)
        open(f'{TOP}/ended', 'w').close()
    except Exception:  # the processes must end in any case
        report('the cases', False, traceback.format_exc())
        print_summary()
    finally:
        for node in nodes:
            node.end()
        servers.end()
        if os.environ.get('GROUP_LOGS'):
            keep_logs(os.environ['GROUP_LOGS'])


main()
