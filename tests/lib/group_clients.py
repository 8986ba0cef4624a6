"""For tests/long/group_whole.py: clients that change refs at whichever node
leads, record what was acknowledged, and find lost updates."""
import collections
import os
import random
import re
import subprocess
import threading
import time

ZERO = '0' * 40
PUT_OFF = ('No space left on device', 'deadline',
           'not a git repository')      # the disk is changed


class World:
    """What all clients know."""

    def __init__(self, nodes, problem):
        self.nodes, self.problem = nodes, problem
        self.node = nodes[0]    # the probable leader
        self.ends = threading.Event()
        self.acks = []          # times
        self.found = []         # of the stranger alone
        self.answers = collections.Counter()

    def ack(self):
        self.acks.append(time.monotonic())

    def learn(self, node, text):
        """NODE has refused."""
        named = re.search("the node '(.)' leads", text)
        if named and named[1] != node.name:
            self.node = next(n for n in self.nodes if n.name == named[1])
        elif self.node is node:
            self.node = random.choice(self.nodes)
            time.sleep(0.05)


def refused(why):
    """A refusal can have nothing to do with the value."""
    return 'busy' if re.search('^ng .* busy', why, re.M) or any(
        text in why for text in PUT_OFF) else 'rejected'


def new_id():
    return f'{int(time.time() * 1000):012x}' + os.urandom(10).hex()


class Client(threading.Thread):
    def __init__(self, world, repo):
        super().__init__(daemon=True)
        self.world, self.repo = world, repo

    def run(self):
        while not self.world.ends.is_set():
            try:
                self.turn()
            except Exception as error:  # pylint: disable=broad-except
                self.world.problem(f'{self}: {error!r}')
                return

    def update(self, node, txid, changes):
        """CHANGES: ref, new and old value. ok, busy (nothing was changed),
        unknown or rejected; and why."""
        more = {}
        if len(changes) == 1:
            args = changes[0]
        else:
            args = ['--stdin']
            more['input'] = ''.join(f'update {ref} {new} {old}\n'
                                    for ref, new, old in changes)
        try:
            result = node.update(self.repo, '--txid', txid, '--timeout', '4000',
                                 *args, **more)
        except subprocess.TimeoutExpired:
            return 'unknown', 'no end'
        why = result.stderr
        if result.returncode == 0:
            answer = 'ok'
        elif result.returncode == 75 or why.startswith('nsenter:'):
            answer = 'busy'     # or the machine of the node is off
        elif result.returncode < 0:
            answer = 'unknown'  # the client was on this machine
        else:
            answer = 'unknown' if 'refd query' in why else refused(why)
        self.world.answers[answer] += 1
        if answer != 'ok':
            self.world.learn(node, why)
        return answer, why

    def settle(self, txid, changes, make, seconds=120):
        """Repeats an update until its outcome is known. MAKE(node) brings its
        objects."""
        end = time.monotonic() + seconds
        heard = collections.Counter()
        while time.monotonic() < end:
            node = self.world.node
            if random.random() < 0.4:
                result = node.run('query', txid)
                if f'txn {txid} committed' in result.stdout:
                    return 'ok', ''
                if f'txn {txid} rejected' in result.stdout:
                    return refused(result.stdout), result.stdout
                heard[node.name, result.stdout + result.stderr] += 1
                self.world.learn(node, result.stderr)
                continue
            if not make(node):
                heard[node.name, 'no objects'] += 1
                self.world.learn(node, '')
                continue
            answer, why = self.update(node, txid, changes)
            if answer in ('ok', 'rejected'):
                return answer, why
            heard[node.name, why] += 1
        return 'unknown', heard.most_common(12)


class Pusher(Client):
    """git push of commits with files."""

    def __init__(self, world, repo, work):
        super().__init__(world, repo)
        self.work, self.ref = work, 'refs/heads/pushed'
        self.value, self.open, self.number = ZERO, set(), 0
        self.acked = set()
        self.git('init', '-q', '-b', 'pushed')

    def __str__(self):
        return f'{self.repo} {self.ref}'

    def git(self, *args):
        os.makedirs(self.work, exist_ok=True)
        return subprocess.run(['git', '-C', self.work, *args], text=True,
                              check=True, capture_output=True).stdout.strip()

    def turn(self):
        node = self.world.node
        if not node.leads():
            time.sleep(0.1)
            return
        if self.open:
            self.look(node)
        for _ in range(random.randrange(1, 4)):
            self.number += 1
            with open(f'{self.work}/f{self.number % 20}', 'w') as file:
                file.write(f'{self.number}\n' * 50)
            self.git('add', '.')
            self.git('commit', '-q', '-m', str(self.number))
        new = self.git('rev-parse', 'HEAD')
        self.open.add(new)
        try:
            result = node.push(self.work, self.repo, f'HEAD:{self.ref}',
                               seconds=20)
        except subprocess.TimeoutExpired:
            return
        if result.returncode == 0:
            self.value, self.open = new, set()
            self.acked.add(new)
            self.world.ack()
            self.world.answers['pushed'] += 1

    def look(self, node):
        """The value of the ref, which can be one without an answer."""
        result = node.git_here('ls-remote', f'{node.seen_root}/{self.repo}',
                               self.ref)
        got = result.stdout.split('\t')[0] or ZERO
        if not self.is_right(got):
            # Perhaps the node leads no longer.
            time.sleep(0.2)
            return
        if got != ZERO:
            self.git('reset', '-q', '--hard', got)

    def is_right(self, got):
        return got == self.value or got in self.open

    def check(self, refs, history):
        """HISTORY(value): all commits that the value reaches."""
        got = refs.get(self.ref, ZERO)
        if not self.is_right(got):
            return [f'{self}: {got}, acknowledged was {self.value}']
        lost = self.acked - history(got) if self.acked else ()
        return [f'{self}: {value} is not in the history' for value in lost]


class Maker(Client):
    """Makes repositories, and a ref in each."""

    def __init__(self, world):
        super().__init__(world, None)
        self.made, self.number = {}, 0

    def __str__(self):
        return 'new repositories'

    def turn(self):
        node = self.world.node
        self.number += 1
        self.repo = f'made/{self.number}.git'
        node.git_here('init', '-q', '--bare', f'{node.seen_root}/{self.repo}')
        new = node.commit(self.repo, None, self.repo)
        answer, _ = self.update(node, new_id(),
                                [('refs/heads/main', new, ZERO)])
        if answer == 'ok':
            self.made[self.repo] = new
            self.world.ack()
        self.world.ends.wait(2)


class Forker(Client):
    """Forks a repository on the leader, with an alternate, and imports the
    refs of the fork."""

    def __init__(self, world, source):
        super().__init__(world, None)
        self.source, self.made, self.number = source, {}, 0

    def __str__(self):
        return 'forks'

    def turn(self):
        node = self.world.node
        self.number += 1
        repo = f'forks/{self.number}.git'
        if node.leads():
            self.fork(node, repo)
        self.world.ends.wait(3)

    def fork(self, node, repo):
        root = node.seen_root
        node.git_here('clone', '-q', '--bare', '--shared',
                      f'{root}/{self.source}', f'{root}/{repo}')
        refs = node.refs(repo)
        if not refs or not node.imports(repo):
            return
        self.made[repo] = refs
        self.world.ack()
        self.world.answers['forked'] += 1


class Stranger(Client):
    """Does not know the leader: asks one node after the other for an update,
    until it is done. Are writes possible?"""

    def __init__(self, world, repo):
        super().__init__(world, repo)
        self.ref, self.number = 'refs/heads/stranger', 0
        self.at = world.nodes[0]

    def __str__(self):
        return f'{self.repo} {self.ref}'

    def turn(self):
        self.number += 1
        new = self.at.commit(self.repo, None, f'{self} {self.number % 100}')
        result = self.at.update(self.repo, '--timeout', '2000', self.ref, new)
        if new and result.returncode == 0:
            self.world.ack()
            self.world.found.append(self.world.acks[-1])
            self.world.ends.wait(0.1)
        else:
            nodes = self.world.nodes
            self.at = nodes[(nodes.index(self.at) + 1) % len(nodes)]
