"""For tests/lib/group_faults.py: faults of the repositories of a node, of its
clock, and a second machine with its name."""
import os
import shutil
import signal
import struct
import subprocess
import threading
import time

from group import wait_for
import group_net
from group_real import LEASE

REPOS = ('team/one.git', 'two.git')


def overwrite(path):
    """The middle: git can open the file."""
    os.chmod(path, 0o600)
    with open(path, 'r+b') as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b'damaged')


class Clone:
    """A second machine with the name, the disk and the journal of a node."""

    def __init__(self, node, number):
        self.node, self.top = node, f'{node.disk.where}.clone'
        shutil.rmtree(self.top, ignore_errors=True)
        subprocess.run(['cp', '-a', node.disk.kept, self.top], check=True)
        self.state = f'{self.top}/state'
        with open(f'{node.top}/config') as config, \
                open(f'{self.top}/config', 'w') as mine:
            mine.write(config.read()
                       .replace(node.socket_path, f'{self.top}/sock')
                       .replace(node.state, self.state))
        self.host = group_net.Host(
            'clone', number, 'mount', command=f"mount --bind '{self.top}/root'"
            f" '{node.seen_root}' && echo up")
        self.log = open(f'{self.top}/log', 'w')
        self.processes = [
            self.launch(node.refd, 'daemon', '--config', f'{self.top}/config'),
            self.launch(f'{node.build}/refd-group', '--config',
                        f'{self.top}/config', '--socket',
                        f'{self.state}/group.sock', 'serve')]

    def launch(self, *argv):
        """As often as a service manager."""
        return subprocess.Popen(
            self.host.enter('sh', '-c', 'while :; do "$@"; sleep 0.5; done',
                            'sh', *argv), stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=subprocess.STDOUT)

    def said(self):
        with open(f'{self.top}/log') as log:
            return log.read()

    def end(self):
        for _ in range(2):      # no program is started any longer
            self.host.signal_all(signal.SIGSTOP)
        self.host.signal_all(signal.SIGKILL)
        for process in self.processes:
            process.wait()
        self.host.down()
        self.log.close()
        shutil.rmtree(self.top)


class RepoFaults:
    clones = threading.Lock()

    def repo_faults(self):
        return [self.lose_hooks, self.damage_pack, self.roll_back,
                self.clone_node, self.change_clock]

    def lose_hooks(self):
        """Of all repositories; while the node is off, also the settings that
        name the hooks, as in repositories that nobody has enabled."""
        node = self.victim()
        is_off = self.random.random() < 0.6
        with node.lock:
            if is_off:
                self.shut_down(node)
            for repo in REPOS:
                path = f'{node.root}/{repo}'
                shutil.rmtree(f'{path}/hooks', ignore_errors=True)
                if is_off:
                    subprocess.run(['git', '-C', path, 'config',
                                    '--unset-all', 'receive.procReceiveRefs'],
                                   check=False)
            if is_off:
                node.up()
            else:
                self.stay(1, LEASE + 1)
                self.enable(node)

    def enable(self, node):
        """A node that is away cannot be asked."""
        for repo in REPOS:
            hook = f'{node.root}/{repo}/hooks/reference-transaction'
            if not wait_for(90, lambda: node.enable(repo).returncode == 0 or
                            os.path.lexists(hook)):
                self.world.problem(f'{node.name}: {repo}: no hooks')

    def damage_pack(self):
        """The other nodes have all objects, so one node at a time."""
        repo = self.random.choice(REPOS)
        with self.copies:
            node = self.victim()
            with node.lock:
                node.git(repo, 'repack', '-dq')
                folder = f'{node.root}/{repo}/objects/pack'
                packs = sorted((f'{folder}/{name}' for name in
                                os.listdir(folder) if name.endswith('.pack')),
                               key=os.path.getsize)
                if not packs:
                    return False
                overwrite(packs[-1])
                self.stay(1, LEASE + 1)
            self.repair(node, repo)
        return True

    def repair(self, node, repo):
        """Needs the node, and another one. The refs may differ meanwhile."""
        result = None
        end = time.monotonic() + 150
        while time.monotonic() < end:
            try:
                result = node.command('verify', '--repair',
                                      f'{node.seen_root}/{repo}',
                                      seconds=100)
            except subprocess.TimeoutExpired as error:
                result = error.stdout
                continue
            if 'repositories verified' in result.stdout and \
                    'is damaged' not in result.stdout and \
                    'not checked' not in result.stdout:
                shutil.rmtree(f'{node.root}/{repo}/refd/damaged',
                              ignore_errors=True)
                return
            time.sleep(1)
        self.world.problem(f'{node.name}: {repo} is not repaired: {result}')

    # ---- one repository is an older copy ----

    def roll_back(self):
        """Beside the daemon, or while the node is off. A daemon that starts
        then refuses, unless the refs of the group are back already."""
        repo = self.random.choice(REPOS)
        with self.copies:
            node = self.random.choice(self.nodes)
            kept = f'{node.disk.where}.repo'
            path = f'{node.root}/{repo}'
            with node.lock:
                self.shut_down(node)
                shutil.rmtree(kept, ignore_errors=True)
                subprocess.run(['cp', '-a', path, kept], check=True)
                node.up()
            self.stay(1, LEASE + 1)
            with node.lock:
                said = len(node.said())
                is_beside = self.random.random() < 0.5
                if not is_beside:
                    self.shut_down(node)
                self.exchange(path, kept)
                if is_beside:
                    self.stay(0.3, LEASE + 1)
                    node.daemon.send(signal.SIGKILL)
                else:
                    node.up()
            self.follows_again(node, repo, said)

    @staticmethod
    def exchange(path, new):
        """A rename, so that nobody writes to a part of the copy."""
        aside = f'{os.path.dirname(path)}/.new-{os.path.basename(path)}'
        subprocess.run(['cp', '-a', new, aside], check=True)
        os.rename(path, f'{aside}.old')
        os.rename(aside, path)
        shutil.rmtree(f'{aside}.old')
        subprocess.run(['sync', '-f', path], check=True)

    def follows_again(self, node, repo, said):
        """With the remedy of docs/group.md: the repository of another node."""
        end = self.servers.lsn()

        def is_refused():
            return 'an older copy' in node.said()[said:]

        def is_decided():
            return is_refused() or node.group_lsn() >= end

        if not wait_for(60, is_decided):
            self.world.problem(f'{node.name} has not come back: '
                               + node.said()[-500:])
        elif is_refused():
            # A node that lacks rows itself has an older copy, too.
            others = [n for n in self.nodes if n is not node]
            self.random.shuffle(others)
            other = wait_for(60, lambda: next(
                (n for n in others if n.group_lsn() >= end), None))
            if not other:
                self.world.problem(f'no node has a newer copy for {node.name}')
                return
            with other.lock:
                self.shut_down(other)
                with node.lock:
                    self.shut_down(node)
                    self.exchange(f'{node.root}/{repo}',
                                  f'{other.root}/{repo}')
                    node.up()
                other.up()
            if not wait_for(60, lambda: node.group_lsn() >= end):
                self.world.problem(f'{node.name} with the copy of {other.name}:'
                                   ' ' + node.said()[-500:])

    # ---- machines ----

    def clone_node(self):
        """A copy of a virtual machine, beside the machine."""
        with self.clones:
            node = self.random.choice(self.nodes)
            with node.lock:
                self.keep(node)
                clone = Clone(node, 9)
            try:
                self.stay(LEASE + 1, LEASE + 4)
                said = clone.said()
            finally:
                clone.end()
            # In a storm the machine itself can be away.
            if not self.is_storm and (
                    'group-leads' in said or 'another machine is the node' not
                    in said):
                self.world.problem(f'a clone of {node.name}: ' + said[-500:])

    def change_clock(self):
        """The time of day, seen by the programs of a node. It stays so."""
        node = self.victim()
        seconds = self.random.choice((0, 3, -3, 60, -60, 3000, -3000))
        with open(f'{node.top}/clock', 'r+b') as clock:
            clock.write(struct.pack('=q', seconds))
        self.stay(1, LEASE + 1)
