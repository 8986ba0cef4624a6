"""For tests/long/group_whole.py: nodes with a daemon, refd-group and
repositories of their own, which a service manager starts again, and
PostgreSQL. It ends only processes that it has started."""
import collections
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_disks import NodeDisk  # noqa: E402
import group_net  # noqa: E402
import group_nodes  # noqa: E402
import journal_copy  # noqa: E402

LEASE = int(os.environ.get('GROUP_LEASE', '2'))
# A service manager waits so long before it starts a program again.
AGAIN = 0.5

def prepare(top):
    """Nothing of the account's configuration gets in."""
    for name in ('root', 'work'):
        os.makedirs(f'{top}/{name}')
    group_net.prepare()
    for who in ('AUTHOR', 'COMMITTER'):
        os.environ.update({f'GIT_{who}_NAME': 'a', f'GIT_{who}_EMAIL': 'a@x',
                           f'GIT_{who}_DATE': '1700000000 +0000'})


class Service:
    """A program that is started again whenever it ends."""

    def __init__(self, name, argv, log):
        self.name, self.argv, self.log = name, argv, log
        self.is_wanted = False
        self.process = self.thread = None
        self.statuses = collections.Counter()
        self.mutex = threading.Lock()

    def up(self):
        self.is_wanted = True
        self.launch()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def launch(self):
        with self.mutex:
            if self.is_wanted:
                self.process = subprocess.Popen(
                    self.argv(), stdin=subprocess.DEVNULL,
                    stdout=open(self.log, 'a'), stderr=subprocess.STDOUT)

    def watch(self):
        while True:
            self.statuses[self.process.wait()] += 1
            if not self.is_wanted:
                return
            time.sleep(AGAIN)
            if not self.is_wanted:
                return
            self.launch()

    def send(self, number):
        self.process.send_signal(number)

    def down(self, number=signal.SIGKILL):
        with self.mutex:
            self.is_wanted = False
        if self.thread:
            self.send(signal.SIGCONT)
            self.send(number)
            self.thread.join()
            self.thread = None

    def said(self):
        return open(self.log).read() if os.path.exists(self.log) else ''


class RealNode(group_nodes.Node):
    """A node of the group, a host of its own, with refd-group, git daemon and a
    disk."""
    DISK = '/disk'

    def __init__(self, name, names, top, build, database, cellar):
        self.build, self.database, self.names = build, database, names
        self.disk = NodeDisk(f'{top}/{name}/disk', name, cellar)
        super().__init__(name, top, f'{build}/refd', None)
        self.lock = threading.Lock()    # of a fault of the whole node
        self.is_off = False             # nobody may write the disk
        self.kept_lsn = -1e9            # of the copy of the disk
        config = f'{self.top}/config'
        with open(f'{self.top}/clock', 'wb') as clock:
            clock.write(bytes(8))
        clock = ('env', f'REFD_CLOCK={self.top}/clock', 'LD_PRELOAD='
                 + os.environ['BUILD'] + '/tests/helper/preload_clock.so')
        self.daemon = Service(
            f'{name}: the daemon',
            lambda: self.host.enter(*clock, self.refd, 'daemon', '--config',
                                    config),
            f'{self.top}/log')
        self.group = Service(
            f'{name}: refd-group',
            lambda: self.host.enter(
                *clock, f'{build}/refd-group', '--config', config, '--socket',
                f'{self.state}/group.sock', 'serve'),
            f'{self.top}/group.log')
        self.source = Service(
            f'{name}: git daemon', lambda: self.host.enter(
                'git', 'daemon', '--reuseaddr', '--export-all',
                f'--listen={self.host.address}', self.seen_root),
            f'{self.top}/source.log')

    def mount(self):
        self.host = group_net.Host(
            self.name, self.number(self.name), 'mount',
            command=f"mount --bind '{self.root}' '{self.seen_root}' && echo up")

    @property
    def inside(self):
        return self.host.enter(self.refd)

    def number(self, name):
        return 1 + self.names.index(name)

    def configure(self, **more):
        super().configure(lease=f'{LEASE}s', held=1,
                          database=f'"{self.database}"', **more)
        with open(f'{self.top}/config', 'a') as f:
            for other in self.names.replace(self.name, ''):
                f.write(f'\tsource = {other} git://{group_net.NETWORK}.'
                        f'{self.number(other)}{self.seen_root}\n')

    def up(self):
        self.is_off = False
        for service in self.all_services():
            service.up()

    def down(self, number=signal.SIGKILL):
        for service in self.all_services():
            service.down(number)

    # ---- power and disk ----

    def cut_power(self, how, random):
        """Nothing gets out of the machine after its disk has lost power."""
        for service in self.all_services():
            service.is_wanted = False
        # No program is started any longer after the second turn.
        for _ in range(2):
            self.host.signal_all(signal.SIGSTOP)
        self.disk.cut(how, random)
        self.host.signal_all(signal.SIGKILL)
        for service in self.all_services():
            service.down()
        self.host.down()
        self.disk.unmount()

    def power_up(self, random):
        self.disk.mount(random)
        for name in os.listdir(self.top):   # was in a tmpfs
            if name.startswith('sock'):
                os.unlink(f'{self.top}/{name}')
        self.host.up()
        self.up()

    def end(self):
        self.down()
        self.host.down()
        self.disk.remove()

    def services(self):
        return self.daemon, self.group

    def all_services(self):
        return self.daemon, self.group, self.source

    def command(self, *args, seconds=60, **more):
        """refd-group, for the administrator."""
        return subprocess.run(
            self.host.enter(f'{self.build}/refd-group', '--config',
                            f'{self.top}/config', *args),
            capture_output=True, text=True, timeout=seconds, **more)

    def enable(self, repo):
        return self.run('enable', f'{self.seen_root}/{repo}')

    def imports(self, repo):
        """Does refd enable give the refs to the other nodes soon?"""
        return 'refs are in the group' in subprocess.run(
            ['timeout', '20', *self.inside, 'enable', '--socket',
             self.socket_path, f'{self.seen_root}/{repo}'],
            capture_output=True, text=True,
            env={**os.environ, 'REFD_STATE': self.state}).stdout

    def verify(self, repo):
        return subprocess.run(
            [*self.inside, 'verify', '--state', self.state,
             f'{self.seen_root}/{repo}'], capture_output=True, text=True)

    def git_here(self, *args, seconds=120, **more):
        """git, which sees the repositories of this node."""
        if self.is_off:
            return subprocess.CompletedProcess(args, 1, '', 'is off')
        return subprocess.run(self.host.enter('git', *args), text=True,
                              capture_output=True, timeout=seconds, **more)

    def push(self, work, repo, *args, **more):
        return self.git_here('-C', work, 'push', '-q',
                             f'{self.seen_root}/{repo}', *args, **more)

    def git(self, repo, *args):
        return self.git_here('-C', f'{self.seen_root}/{repo}',
                             *args).stdout.strip()

    def commit(self, repo, parent, message):
        """The same commit on every node."""
        tree = self.git(repo, 'hash-object', '-w', '-t', 'tree', '/dev/null')
        more = ['-p', parent] if parent else []
        return self.git(repo, 'commit-tree', '-m', message, *more, tree)

    def fsck(self, repo):
        result = self.git_here('-C', f'{self.seen_root}/{repo}', 'fsck',
                               '--full', '--strict')
        said = [line for line in (result.stdout + result.stderr).splitlines()
                if not line.startswith(('dangling', 'notice', 'Checking'))]
        return [] if result.returncode == 0 and not said else [
            result.returncode, *said[:5]]

    def refs(self, repo):
        """Kept values belong to one node."""
        return '\n'.join(line for line in super().refs(repo).split('\n')
                         if not line.startswith('refs/refd/'))

    def leads(self):
        """By the last line of the daemon about its role."""
        events = re.findall('group-(leads|follows|lost)', self.daemon.said())
        return bool(events) and events[-1] == 'leads'

    def journal(self):
        """LSN of the group to the id of the transaction."""
        return dict(journal_copy.ask(
            self.state, 'SELECT group_lsn, hex(txid) FROM record WHERE'
            ' group_lsn > 0'))

    def group_lsn(self):
        """The last row that this node has, or 0 while it is away."""
        status = self.run('status', '-v').stdout
        found = re.search(r'group_lsn\W+(\d+)', status)
        return int(found[1]) if found else 0


def await_leader(nodes, seconds=30):
    return wait_for(seconds, lambda: next(
        (node for node in nodes if node.leads()), None))
