"""For tests of daemons in a group: the log of a group in memory, in place of
refd-group and PostgreSQL. It ends only processes that it has started."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import (APPLIED, BATCH, COMMITTED, CURRENT,  # noqa: E402
                   FOLLOWS, HELD, HELLO, HOLD, NEAR, NOT_HELD, REFUSED, ROLE,
                   ROW, STOP, Text, clock, put, read_row, row_bytes, wait_for)

GROUP = b'the one group!!!'


class Log:
    """The log of the group. Row N is rows[N - 1]."""

    def __init__(self):
        self.rows = []
        self.group = GROUP
        self.epoch = 0
        self.leader = None      # a node
        self.lock = threading.RLock()


class Node:
    """A daemon, with its configuration and its connection to the log."""
    DISK = ''   # the directory of repositories and state, after a slash

    def __init__(self, name, top, refd, log):
        self.name, self.refd, self.log = name, refd, log
        self.top = f'{top}/{name}'
        self.root, self.state = (f'{self.top}{self.DISK}/{name}'
                                 for name in ('root', 'state'))
        self.seen_root = f'{top}/root'  # by the daemon and its clients
        self.socket_path = f'{self.top}/sock'
        self.others = []
        self.process = self.link = None
        os.makedirs(self.root)
        os.makedirs(self.seen_root, exist_ok=True)
        self.mount()
        self.configure()

    def mount(self):
        """All nodes have their repositories at the same path."""
        self.mounts = subprocess.Popen(
            ['unshare', '-m', 'sh', '-c', 'mount --bind "$1" "$2" && echo up '
             '&& exec sleep infinity', 'sh', self.root, self.seen_root],
            stdout=subprocess.PIPE)
        assert self.mounts.stdout.readline() == b'up\n'
        self.inside = ['nsenter', f'--mount=/proc/{self.mounts.pid}/ns/mnt',
                       '--', self.refd]

    def configure(self, **more):
        keys = {'name': 'main', 'node': self.name, 'patience': '2s',
                'database': 'dbname=none'}
        keys.update(more)
        with open(f'{self.top}/config', 'w') as f:
            f.write(f'[daemon]\n\tsocket = {self.socket_path}\n'
                    f'\tstate = {self.state}\n\troot = {self.seen_root}\n[group]\n')
            for key, value in keys.items():
                f.write(f'\t{key} = {value}\n')

    # ---- the daemon ----

    def launch(self):
        self.process = subprocess.Popen(
            [*self.inside, 'daemon', '--config', f'{self.top}/config'],
            stdin=subprocess.DEVNULL, stdout=open(f'{self.top}/log', 'a'),
            stderr=subprocess.STDOUT)

    def start(self):
        self.launch()
        return self.run('ping', '--wait', '20').returncode == 0

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.ended(60)

    def ended(self, seconds=20):
        """The exit status, or None."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def run(self, command, *args, env=os.environ, **more):
        return subprocess.run(
            [*self.inside, command, '--socket', self.socket_path, *args],
            capture_output=True, text=True, timeout=120,
            env={**env, 'REFD_STATE': self.state}, **more)

    def recover(self, *args, **more):
        return subprocess.run(
            [*self.inside, 'recover', '--state', self.state, *args],
            capture_output=True, text=True, timeout=120, **more)

    def update(self, repo, *args, **more):
        return self.run('update', '--git-dir', f'{self.seen_root}/{repo}',
                        *args, **more)

    def git(self, repo, *args):
        return subprocess.run(['git', '-C', f'{self.root}/{repo}', *args],
                              capture_output=True, text=True).stdout.strip()

    def refs(self, repo):
        return self.git(repo, 'for-each-ref',
                        '--format=%(refname) %(objectname) %(symref)')

    def end(self):
        """Ends what has been started, like a crash."""
        for process in (self.process, self.mounts):
            if process and process.poll() is None:
                process.kill()
                process.wait()

    def said(self):
        return open(f'{self.top}/log').read()

    # ---- the connection ----

    def connect(self):
        self.link = Link(self)
        return self.link

    def lead(self, seconds=20):
        """Takes the lease, and leads. True: the daemon takes writes."""
        before = len(self.said())
        with self.log.lock:
            self.log.epoch += 1
            self.log.leader = self
            for other in self.others:
                if other.link:
                    other.link.begin(False)
            self.link.begin(True)
        return self.await_said('group-leads', before, seconds)

    def await_said(self, text, before=0, seconds=20):
        """Waits for a line of the log behind the first BEFORE characters."""
        return bool(wait_for(seconds, lambda: text in self.said()[before:]))

    def await_asked(self, before, seconds=20):
        """Waits for a HOLD behind the first BEFORE ones."""
        return bool(wait_for(seconds, lambda: self.link.asked > before))

    def await_applied(self, seconds=20):
        """Waits until the daemon has applied the whole log."""
        return bool(wait_for(seconds, lambda: self.link.applied
                             >= len(self.log.rows)))


class Link:
    """A refd-group for one daemon. What it does with a batch:

    commit      commits, and answers
    refuse      answers REFUSED
    forget      commits, and does not answer
    wait        does nothing yet
    later       commits, and answers in answer_kept()
    reverse     commits two batches, and answers the later LSN first"""

    def __init__(self, node):
        self.node, self.log = node, node.log
        self.policy = 'commit'
        self.holds = 'copy'     # or 'fail', 'wait', 'late', 'skip'
        self.batches = self.asked = 0
        self.follows = None     # the epoch of the last FOLLOWS
        self.signs = 0          # of life: APPLIED
        self.kept = []          # for 'reverse', 'later': number, epoch, rows
        self.is_following = False
        self.socket = connect(node)
        self.data = b''
        kind, body = self.next()
        assert kind == HELLO, kind
        assert body.number(4) == 1
        self.group = body.take(16)
        assert body.string().decode() == node.name
        self.applied, self.sent = body.number(), body.number()
        self.writing = threading.Lock()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()
        self.node.link = None

    def next(self):
        """A frame, or None at the end."""
        while len(self.data) < 5 or len(self.data) < self.length():
            try:
                more = self.socket.recv(1 << 20)
            except OSError:
                return None
            if not more:
                return None
            self.data += more
        n = self.length()
        frame = self.data[4], Text(self.data[5:n])
        self.data = self.data[n:]
        return frame

    def length(self):
        return 4 + int.from_bytes(self.data[:4], 'little')

    def send(self, kind, body):
        with self.writing:
            try:
                self.socket.sendall(struct.pack('<IB', len(body) + 1, kind)
                                    + body)
            except OSError:
                pass

    def send_rows(self):
        """Sends the rows that the daemon lacks."""
        for lsn in range(self.sent + 1, len(self.log.rows) + 1):
            epoch, row = self.log.rows[lsn - 1]
            self.send(ROW, struct.pack('<QQ', lsn, epoch) + row_bytes(row))
        self.sent = len(self.log.rows)

    def begin(self, leads):
        with self.log.lock:
            self.send_role(False)
            self.send_rows()
            self.is_following = not leads
            if leads:
                self.send_current(clock() + 3600)
                self.send_role(True)
            self.follow()

    def follow(self):
        """Tells a daemon with all rows that it has them."""
        if self.is_following and self.applied >= self.sent:
            self.send_current(clock())

    def send_current(self, seconds):
        self.send(CURRENT, struct.pack('<Q', int(seconds * 1000)))

    def role_body(self, leads):
        leader = self.log.leader.name if self.log.leader else 'nobody'
        return (struct.pack('<BQQ', leads, self.log.epoch, self.sent)
                + self.log.group + put(leader.encode()))

    def role_bytes(self, leads):
        body = self.role_body(leads)
        return struct.pack('<IB', len(body) + 1, ROLE) + body

    def send_role(self, leads):
        self.send(ROLE, self.role_body(leads))

    def near(self, lsn):
        """Other nodes are alive, and have applied the rows up to LSN."""
        self.send(NEAR, struct.pack('<Q', lsn))

    def serve(self):
        while True:
            frame = self.next()
            if frame is None:
                return
            kind, body = frame
            if kind == BATCH:
                self.take_batch(body)
            elif kind == HOLD:
                self.take_hold(body)
            elif kind == APPLIED:
                self.signs += 1
                self.take_applied(body.number())
            elif kind == FOLLOWS:
                self.follows = body.number()
            elif kind == STOP:
                self.socket.shutdown(socket.SHUT_RDWR)
                return

    def take_applied(self, lsn):
        if lsn != self.applied:
            self.applied = lsn
            self.follow()

    def take_batch(self, body):
        number, epoch = body.number(), body.number()
        rows = [read_row(body) for _ in range(body.number(4))]
        policy = self.policy
        self.batches += 1
        if policy == 'wait':
            return
        if policy == 'reverse':
            self.kept.append((number, epoch, rows))
            if len(self.kept) == 2:
                with self.log.lock:
                    for kept in reversed(self.kept):
                        self.commit(*kept)
                    for kept in self.kept:
                        self.answer(kept[0], kept[2])
            return
        with self.log.lock:
            if policy == 'refuse' or epoch != self.log.epoch or \
                    self.log.leader is not self.node:
                self.send(REFUSED, struct.pack('<Q', number) + put(b'lost'))
                return
            self.commit(number, epoch, rows)
            if policy == 'later':
                self.kept.append((number, epoch, rows))
            elif policy != 'forget':
                self.answer(number, rows)

    def answer_kept(self):
        with self.log.lock:
            for number, _, rows in self.kept:
                self.answer(number, rows)
            self.kept = []

    def commit(self, _, epoch, rows):
        self.log.rows += [(epoch, row) for row in rows]
        self.sent = len(self.log.rows)

    def answer(self, number, rows):
        first = 1 + [row for _, row in self.log.rows].index(rows[0])
        self.send(COMMITTED, struct.pack('<QQ', number, first))
        for other in self.node.others:
            if other.link and other.link.is_following:
                other.link.send_rows()

    def take_hold(self, body):
        number, uuid, path = body.number(), body.take(16), body.string()
        path = path.decode()
        _, is_fetch = body.number(1), body.number(1)
        self.asked += 1
        if self.holds == 'wait':
            return
        if self.holds == 'late':
            time.sleep(3)
        if self.holds == 'fail':
            self.send(NOT_HELD, struct.pack('<Q', number)
                      + put(b'the node b is away'))
            return
        if is_fetch:    # this node needs the objects itself
            for other in ([self.log.leader] if self.is_following
                          else self.node.others):
                bring(other, self.node, path, uuid)
        for other in self.node.others if self.holds != 'skip' else []:
            bring(self.node, other, path, uuid)
        self.send(HELD, struct.pack('<Q', number))


def copy_objects(source, target):
    for where, _, names in os.walk(source):
        to = target + where[len(source):]
        os.makedirs(to, exist_ok=True)
        for name in names:
            if not os.path.exists(f'{to}/{name}'):
                shutil.copy(f'{where}/{name}', f'{to}/{name}.tmp')
                os.rename(f'{to}/{name}.tmp', f'{to}/{name}')


def connect(node):
    path = f'{node.state}/group.sock'
    link = socket.socket(socket.AF_UNIX)
    assert wait_for(20, lambda: link.connect_ex(path) == 0), path
    return link


def bring(source, target, repo, uuid):
    """As refd-group fetches: nothing that is in its place is moved."""
    to = find(target, uuid)
    if to is None and os.path.exists(f'{target.root}/{repo}/objects') and \
            id_of(f'{target.root}/{repo}') is None:
        to = repo
    if to is None:
        to = os.path.join(os.path.dirname(repo), f'.refd-{uuid.hex()}')
        subprocess.run(['git', 'init', '-q', '--bare', f'{target.root}/{to}'],
                       check=True)
    copy_objects(f'{source.root}/{find(source, uuid)}/objects',
                 f'{target.root}/{to}/objects')
    claim(target, to, uuid)


def id_of(path):
    """The uuid in hexadecimal digits, or None."""
    try:
        with open(f'{path}/refd/id') as f:
            return f.readline().split()[1]
    except (FileNotFoundError, NotADirectoryError):
        return None


def find(node, uuid):
    """The path of a repository below the root of the node, or None."""
    for where, names, _ in os.walk(node.root):
        if id_of(where) == uuid.hex():
            return os.path.relpath(where, node.root)
        names[:] = [] if 'objects' in names else names
    return None


def claim(node, repo, uuid):
    """Writes refd/id as refd-group does: the journal is not known."""
    path, seen = f'{node.root}/{repo}', f'{node.seen_root}/{repo}'
    if not os.path.exists(f'{path}/refd/id'):
        os.makedirs(f'{path}/refd', exist_ok=True)
        with open(f'{path}/refd/id', 'w') as f:
            f.write(f'uuid {uuid.hex()}\njournal {"0" * 32}\npath {seen}\n')


def pair(top, refd):
    """Two nodes of one group."""
    log = Log()
    a, b = (Node(name, top, refd, log) for name in 'ab')
    a.others, b.others = [b], [a]
    return a, b
