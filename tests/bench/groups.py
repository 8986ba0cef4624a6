#!/usr/bin/env python3
"""Compares a group of nodes with one machine, and with git: updates by a client
with an open connection, and pushes of one commit. Then a follower that was away
comes back. All hosts are on this machine, each in its own network namespace
(tests/lib/group_real.py).

    tests/bench/groups.sh [ROUNDS]"""
import json
import os
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import wait_for  # noqa: E402
from group_disks import disks  # noqa: E402
import group_real  # noqa: E402
from group_servers import Servers  # noqa: E402

PROGRAMS, TOP, PG, BINARIES, UID, ROUNDS = sys.argv[1:]
CLIENTS = 1, 16, 64
PUSHES = {1: 20, 16: 6, 64: 2}  # of each client


def run(*argv, **more):
    result = subprocess.run(argv, capture_output=True, text=True, **more)
    assert result.returncode == 0, result
    return result.stdout.strip()


def begin():
    """The group: a leads, b and c follow."""
    servers.primary.sql('CREATE ROLE refd LOGIN')
    servers.primary.sql('CREATE DATABASE refd OWNER refd')
    servers.primary.sql('GRANT pg_read_all_stats TO refd')
    assert a.command('create').returncode == 0
    for node in nodes:
        node.up()
        assert wait_for(20, a.leads), a.said() + a.group.said()
    assert wait_for(20, lambda: servers.sql('SELECT count(*) FROM refd.node')
                    == '3')


def step_back(node):
    """The programs of NODE get the processor time that nobody else wants. Their
    threads and children do as they do."""
    for service in node.all_services():
        for task in os.listdir(f'/proc/{service.process.pid}/task'):
            os.sched_setscheduler(int(task), os.SCHED_IDLE,
                                  os.sched_param(0))


# ---- updates ----

# The servers take no more.
SESSIONS = 40


def commit_times(clients, pace=None):
    """Of a row of 500 bytes in PostgreSQL, with a standby: rate, median. PACE:
    commits a second, with pauses."""
    script = f'{TOP}/insert.sql'
    with open(script, 'w') as out:
        out.write("INSERT INTO bench VALUES (repeat('x', 500));\n")
    log = f'{TOP}/pgbench'
    # Its disk is small.
    servers.primary.sql('TRUNCATE bench')
    run(*a.host.enter(
        f'{BINARIES}/pgbench', '-h', servers.primary.host.address, '-U',
        'postgres', '-n', '-f', script, '-c',
        str(min(clients, SESSIONS)), '-T', '3', '-l',
        *(['-R', str(pace)] if pace else []), f'--log-prefix={log}',
        'postgres'))
    times = []
    for name in os.listdir(TOP):
        if name.startswith('pgbench.'):
            for line in open(f'{TOP}/{name}'):
                words = line.split()
                # With a pace, a late begin counts as a part of the time.
                late = int(words[6]) if pace else 0
                times.append((int(words[2]) - late) / 1000)
            os.unlink(f'{TOP}/{name}')
    return len(times) / 3, statistics.median(times)


class Updates:
    """A repository with two commits, through which refs move. Every measurement
    has new refs."""

    def __init__(self, root, seen_root, socket, name='updates'):
        repo = f'{root}/{name}.git'
        run('git', 'init', '-q', '--bare', repo)
        tree = run('git', '-C', repo, 'mktree', stdin=subprocess.DEVNULL)
        oids = [run('git', '-C', repo, 'commit-tree', '-m', name, tree)
                for name in ('one', 'two')]
        self.load = [f'{PROGRAMS}/../tests/bench/load', '--on', 'refd',
                     '--path', socket, '--action', 'move', '--repo',
                     f'{seen_root}/{name}.git']
        for oid in oids:
            self.load += ['--oid', oid]
        self.number = 0
        # The objects are young, so the first updates wait for them.
        self.measure(1, '--txns', '10')

    def measure(self, clients, *limit):
        """Updates a second, median in ms."""
        self.number += 1
        said = json.loads(run(*a.host.enter(
            *self.load, '--prefix', f'refs/heads/updates{self.number}',
            '--clients', str(clients), *limit)))
        assert said['done'] and not said['failed'], said
        return said['done'] / said['seconds'], said['p50_us'] / 1000


def catch_up(place):
    """c was away while 16 clients wrote. Rates: written, applied."""
    c.down()
    before = a.group_lsn()
    rate, _ = place.measure(16, '--seconds', '5')
    last = a.group_lsn()
    c.up()
    first = wait_for(60, c.group_lsn)
    began = time.monotonic()
    assert wait_for(600, lambda: c.group_lsn() >= last), c.said()
    assert first < (before + last) / 2, (before, first, last)
    return rate, (last - first) / (time.monotonic() - began)


# ---- pushes ----

class Place:
    """A repository, and a work clone for each client. SOCKET: of a daemon that
    takes the pushes."""

    def __init__(self, name, root, seen_root, socket=None):
        self.name = name
        self.url = f'{seen_root}/push.git'
        os.makedirs(root, exist_ok=True)
        run('git', 'init', '-q', '--bare', '-b', 'main', f'{root}/push.git')
        if socket:
            run(*a.host.enter(f'{PROGRAMS}/refd', 'enable', '--socket', socket,
                              self.url),
                env={**os.environ, 'REFD_STATE': f'{TOP}/enabled'})
        self.works = [f'{TOP}/work/{name}-{i}' for i in range(max(CLIENTS))]
        for work in self.works:
            run('git', 'init', '-q', '-b', 'main', work)

    def push(self, i):
        """The seconds of a push of a new commit to a branch of client I."""
        run('git', '-C', self.works[i], 'commit', '-q', '--allow-empty', '-m',
            str(time.time()))
        began = time.monotonic()
        run(*a.host.enter('git', '-C', self.works[i], 'push', '-q', self.url,
                          f'main:client{i}'))
        return time.monotonic() - began

    def measure(self, clients):
        """Pushes a second, median in ms. Commits are not counted."""
        times = [[] for _ in range(clients)]

        def client(i):
            times[i] += [self.push(i) for _ in range(PUSHES[clients])]

        threads = [threading.Thread(target=client, args=(i,))
                   for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rate = sum(len(each) / sum(each) for each in times)
        return rate, 1000 * statistics.median(sum(times, []))


class Alone:
    """refd on one machine: on the disk of a, beside a."""

    def __init__(self):
        self.top = f'{os.path.dirname(a.root)}/alone'
        self.root, self.socket = f'{self.top}/root', f'{self.top}/socket'
        os.makedirs(self.root)
        config = f'{self.top}/config'
        with open(config, 'w') as out:
            out.write(f'[daemon]\n\tsocket = {self.socket}\n\troot = '
                      f'{self.root}\n\tstate = {self.top}/state\n')
        self.process = subprocess.Popen(
            a.host.enter(f'{PROGRAMS}/refd', 'daemon', '--config', config),
            stdout=subprocess.DEVNULL, stderr=open(f'{self.top}/log', 'w'))
        run(f'{PROGRAMS}/refd', 'ping', '--wait', '20', '--socket', self.socket)


# ---- the tables ----

def median(rounds):
    return tuple(statistics.median(column) for column in zip(*rounds))


def row(name, *cells):
    print('| ' + ' | '.join([name, *cells]) + ' |', flush=True)


def title(*names):
    row(*names)
    row(*['---'] * len(names))


def cells(rounds):
    return [f'{rate:,.0f} ({ms:.1f} ms)' for rate, ms in map(median, rounds)]


def print_table(what, rounds):
    """ROUNDS: name to one list of results for each number of clients."""
    title(f'{what} a second (median)', *(f'{n} clients' for n in CLIENTS))
    for name, results in rounds.items():
        row(name, *cells(results))
    print(flush=True)


def measure_updates(rounds):
    places = {'refd, one machine': Updates(alone.root, alone.root,
                                           alone.socket),
              'refd, a group': Updates(a.root, a.seen_root, a.socket_path)}
    for _ in range(int(ROUNDS)):
        for name, place in places.items():
            for to, n in zip(rounds[name], CLIENTS):
                to.append(place.measure(n, '--seconds', '1'))
        for to, n in zip(rounds['a commit of PostgreSQL'], CLIENTS):
            to.append(commit_times(n))


def new_table(*names):
    return {name: [[] for _ in CLIENTS] for name in names}


def measure_catch_up():
    place = Updates(a.root, a.seen_root, a.socket_path, 'catch-up')
    written, applied = median([catch_up(place) for _ in range(int(ROUNDS))])
    print(f'16 clients write {written:,.0f} updates a second, and a node that '
          f'was away applies {applied:,.0f}: {applied / written:.2f}\n',
          flush=True)


def main():
    measure_catch_up()
    updates = new_table('refd, one machine', 'a commit of PostgreSQL',
                        'refd, a group')
    measure_updates(updates)
    print_table('updates', updates)
    places = [Place('git', f'{alone.top}/git', f'{alone.top}/git'),
              Place('refd, one machine', alone.root, alone.root, alone.socket),
              Place('refd, a group', a.root, a.seen_root, a.socket_path)]
    pushes = new_table(*(place.name for place in places))
    for place in places:
        for i in range(max(CLIENTS)):
            place.push(i)
    for _ in range(int(ROUNDS)):
        for nth, n in enumerate(CLIENTS):
            for place in places:
                pushes[place.name][nth].append(place.measure(n))
    print_table('pushes', pushes)
    print('a commit of PostgreSQL at the pace of pushes: '
          f'{commit_times(1, 45)[1]:.1f} ms', flush=True)


group_real.prepare(TOP)
servers = Servers(PG, BINARIES, int(UID))
# The journals must not fill them.
disks.SIZES['ext4'] = 1 << 30
cellar = disks.Cellar(TOP)
a, b, c = nodes = [group_real.RealNode(
    name, 'abc', TOP, PROGRAMS, servers.database(), cellar) for name in 'abc']
alone = None
try:
    begin()
    for node in (b, c) if os.environ.get('GROUP_IDLE') else ():
        step_back(node)
    servers.primary.sql('CREATE TABLE bench (t text)')
    alone = Alone()
    main()
finally:
    if alone:
        alone.process.kill()
        alone.process.wait()
    for node in nodes:
        node.end()
    servers.end()
