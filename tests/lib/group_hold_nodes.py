"""For the cases of tests/long/group_hold.sh: PostgreSQL with a standby, nodes
whose repositories get objects from each other, and repositories.

    CASES.py REFD-GROUP DIRECTORY BINARIES UID"""
import os
import subprocess
import sys

from group import Node, Postgres, wait_for
from group_console import Console, await_standbys, make_role, report, same

PROGRAM, TOP, BINARIES, UID = sys.argv[1:]
# The other end of a fetch, which waits as long as there is a file with the name
# of the host.
SSH = f"""#!/bin/sh
for word; do
	[ -e "{TOP}/shut/$word" ] && shut="{TOP}/shut/$word"
done
while [ -n "$shut" ] && [ -e "$shut" ]; do
	sleep 0.05
done
eval "$word"
"""


def write_config(node, sources, **changes):
    console = Console(PROGRAM, TOP, lease='60s')
    console.head = f'[daemon]\n\troot = {TOP}/{node}\n'
    path = console.config(node, **changes)
    with open(path, 'a') as config:
        for source in sources:
            config.write(f'\tsource = {source} ssh://{source}-{node}/{TOP}/'
                         f'{source}\n')
    return path


def make_node(name, sources, **changes):
    os.makedirs(f'{TOP}/{name}', exist_ok=True)
    config = write_config(name, sources, **changes)
    os.makedirs(f'{TOP}/state-{name}', exist_ok=True)
    return Node(name, PROGRAM, config, f'{TOP}/state-{name}')


def git(*args, env=None):
    result = subprocess.run(['git', *args], capture_output=True, text=True,
                            env={**os.environ, **(env or {})})
    assert result.returncode == 0, (args, result.stderr)
    return result.stdout.strip()


class Shut:
    """No fetch of NODE from SOURCE gets an answer."""

    def __init__(self, node, source='a'):
        self.path = f'{TOP}/shut/{source}-{node.name}'

    def __enter__(self):
        open(self.path, 'w').close()

    def __exit__(self, *_):
        os.unlink(self.path)


def new_uuid():
    """Of a repository that was empty when the group got it."""
    uuid = bytearray(os.urandom(16))
    uuid[6] = uuid[6] & 15 | 0x80
    return bytes(uuid)


class Repo:
    """A repository of the leader a, which gets commits."""

    def __init__(self, path):
        self.path, self.uuid, self.tip = path, new_uuid(), None
        git('init', '-q', '--bare', f'{TOP}/a/{path}')

    def commit(self):
        """A commit with a new tree and blob. Returns its id."""
        repo = f'{TOP}/a/{self.path}'
        blob = subprocess.run(
            ['git', '-C', repo, 'hash-object', '-w', '--stdin'],
            input=os.urandom(20), capture_output=True).stdout.decode().strip()
        tree = subprocess.run(
            ['git', '-C', repo, 'mktree'], input=f'100644 blob {blob}\tf\n',
            capture_output=True, text=True).stdout.strip()
        parent = ['-p', self.tip] if self.tip else []
        self.tip = git('-C', repo, 'commit-tree', '-m', 'x', *parent, tree)
        return bytes.fromhex(self.tip)

    def hold(self, node, *oids):
        bases = oids[1:]
        return node.hold(self.path, self.uuid, oids[:1], bases)

    def aside(self, node):
        return (f'{TOP}/{node.name}/{os.path.dirname(self.path)}'
                f'/.refd-{self.uuid.hex()}')

    def put_in_place(self, node):
        """As the daemon does with the first row."""
        place = f'{TOP}/{node.name}/{self.path}'
        if os.path.exists(self.aside(node)) and not os.path.exists(place):
            os.rename(self.aside(node), place)

    def rename(self, path):
        os.makedirs(os.path.dirname(f'{TOP}/a/{path}'), exist_ok=True)
        os.rename(f'{TOP}/a/{self.path}', f'{TOP}/a/{path}')
        self.path = path

    def is_whole(self, node, oid):
        """Has the repository of the node all objects of a ref to OID?"""
        self.put_in_place(node)
        repo = f'{TOP}/{node.name}/{self.path}'
        ref = f'refs/heads/{oid.hex()}'
        if not os.path.exists(repo):
            return False
        return subprocess.run(
            ['git', '-C', repo, '-c', 'core.hooksPath=/dev/null', 'update-ref',
             ref, oid.hex()],
            capture_output=True).returncode == 0 and subprocess.run(
            ['git', '-C', repo, 'fsck', '--connectivity-only'],
            capture_output=True).returncode == 0

    def expect_held(self, name, *oids, node=None, seconds=20):
        node = node or a
        number = self.hold(node, *oids)
        same(name, 'HELD', node.outcome(number, seconds) +
             node.reasons.get(number, ''))
        report(f'{name}: the follower has all', self.is_whole(b, oids[0]))

    def expect_refused(self, name, *oids, text, seconds=20):
        number = self.hold(a, *oids)
        same(name, 'NOT_HELD', a.outcome(number, seconds))
        why = a.reasons.get(number, '')
        report(f'{name}: reason', text in why, why)


pg = Postgres(TOP, BINARIES, int(UID))
os.makedirs(f'{TOP}/shut')
os.makedirs(f'{TOP}/bin')
with open(f'{TOP}/bin/ssh', 'w') as ssh:
    ssh.write(SSH)
os.chmod(f'{TOP}/bin/ssh', 0o755)
os.environ.update(PATH=f'{TOP}/bin:' + os.environ['PATH'], HOME=TOP,
                  GIT_CONFIG_NOSYSTEM='1',
                  GIT_AUTHOR_NAME='a', GIT_AUTHOR_EMAIL='a@x',
                  GIT_COMMITTER_NAME='a', GIT_COMMITTER_EMAIL='a@x')
REFS = os.environ.get('GIT_DEFAULT_REF_FORMAT', 'files')
with open(f'{TOP}/.gitconfig', 'w') as settings:
    settings.write(f'[init]\n\tdefaultRefFormat = {REFS}\n')
a = make_node('a', ['b'])
b = make_node('b', ['a'])


def begin():
    make_role(pg)
    pg.sql('GRANT pg_read_all_stats TO refd')
    pg.names()
    await_standbys(pg)
    subprocess.run([PROGRAM, '--config', a.config, 'create'], check=True,
                   stdout=subprocess.DEVNULL)
    a.start()
    assert a.await_role(True), a.message()
    b.start()
    assert b.await_role(False), b.message()


def restart(node, **changes):
    node.end()
    write_config(node.name, ['b' if node is a else 'a'], **changes)
    node.start()
    assert node.await_role(node is a), node.message()
    # A follower that hears of the new epoch ends the fetches that it has begun
    # before, and its daemon asks again. The daemon's end here does not.
    assert wait_for(20, lambda: b.process.poll() is not None
                    or b.role[1] == a.role[1]), (a.role, b.role)
