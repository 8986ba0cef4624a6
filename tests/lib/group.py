"""For tests/long/group_*.py: PostgreSQL with a synchronous standby, and the
daemon's end of refd-group. Both end only processes that they have started."""
import os
import queue
import random
import signal
import socket
import struct
import subprocess
import threading
import time

HELLO, BATCH, HOLD, APPLIED, STOP, FOLLOWS = range(1, 7)
(ROLE, COMMITTED, REFUSED, DOUBTFUL, ROW, HELD, NOT_HELD, CURRENT,
 NEAR) = range(65, 74)
NAMES = {COMMITTED: 'COMMITTED', REFUSED: 'REFUSED', DOUBTFUL: 'DOUBTFUL',
         HELD: 'HELD', NOT_HELD: 'NOT_HELD'}


def clock():
    """The clock of leases and of CURRENT, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait_for(seconds, condition):
    """Returns the first true result of the condition, or its last result."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result or time.monotonic() > end:
            return result
        time.sleep(0.02)


class Postgres:
    """A primary (p, port 5601) and its standby s1 (s, port 5602)."""

    def __init__(self, top, binaries, uid):
        self.top, self.binaries, self.uid = top, binaries, uid
        self.servers = {}
        os.chown(top, 0, uid)
        os.chmod(top, 0o1771)
        self.run('initdb', '-D', f'{top}/p', '-A', 'trust', '-U', 'postgres',
                 '--no-sync')
        with open(f'{top}/p/postgresql.conf', 'a') as conf:
            conf.write(f"""
unix_socket_directories = '{top}'
listen_addresses = ''
port = 5601
shared_buffers = 16MB
max_connections = 40
wal_level = replica
""")
        self.start('p')
        self.run('pg_basebackup', '-h', top, '-p', '5601', '-U', 'postgres',
                 '-D', f'{top}/s', '-R', '-C', '-S', 's1')
        self.edit('postgresql.conf', 'port = 5601', 'port = 5602')
        self.edit('postgresql.auto.conf', 'user=postgres',
                  'application_name=s1 user=postgres')
        self.start('s')

    def copy_old(self):
        """A copy of the primary at this moment (old, port 5603), as a former
        primary without standbys, and without a setting."""
        self.run('pg_basebackup', '-h', self.top, '-p', '5601', '-U',
                 'postgres', '-D', f'{self.top}/old', '-c', 'fast')
        with open(f'{self.top}/old/postgresql.auto.conf', 'a') as conf:
            conf.write('port = 5603\n')

    def start_old(self, names):
        """Starts the copy with this synchronous_standby_names."""
        with open(f'{self.top}/old/postgresql.auto.conf', 'a') as conf:
            conf.write(f"synchronous_standby_names = '{names}'\n")
        self.start('old')

    def edit(self, name, old, new):
        path = f'{self.top}/s/{name}'
        text = open(path).read()
        assert old in text
        open(path, 'w').write(text.replace(old, new))

    def account(self, program, *args):
        """Ends with this program."""
        return ['setpriv', f'--reuid={self.uid}', f'--regid={self.uid}',
                '--clear-groups', '--pdeathsig=QUIT',
                f'{self.binaries}/{program}', *args]

    def run(self, program, *args):
        subprocess.run(self.account(program, *args), check=True, cwd=self.top,
                       stdout=subprocess.DEVNULL,
                       stderr=open(f'{self.top}/said', 'a'))

    def start(self, which):
        self.servers[which] = subprocess.Popen(
            self.account('postgres', '-D', f'{self.top}/{which}'),
            cwd=self.top, stdout=subprocess.DEVNULL,
            stderr=open(f'{self.top}/{which}.log', 'a'))
        port = {'p': '5601', 's': '5602', 'old': '5603'}[which]
        assert wait_for(120, lambda: subprocess.run(
            [f'{self.binaries}/pg_isready', '-q', '-h', self.top, '-p',
             port]).returncode == 0)

    def stop(self, which, number=signal.SIGINT):
        """SIGINT: a clean end. SIGQUIT: like a crash."""
        server = self.servers.pop(which)
        server.send_signal(number)
        server.wait(120)

    def children(self, which, name):
        out = subprocess.run(
            ['ps', '-o', 'pid=,args=', '--ppid', str(self.servers[which].pid)],
            capture_output=True, text=True).stdout
        return [int(line.split()[0]) for line in out.splitlines()
                if name in line]

    def promote(self):
        self.run('pg_ctl', '-D', f'{self.top}/s', '-w', 'promote')

    def sql(self, text, port=5601, database='refd'):
        result = subprocess.run(
            ['psql', '-X', '-h', self.top, '-p', str(port), '-U', 'postgres',
             '-d', database, '-qAtc', text], capture_output=True, text=True)
        assert result.returncode == 0, (text, result.stderr)
        return result.stdout.strip()

    def alter(self, setting, value):
        self.sql(f"ALTER SYSTEM SET {setting} = '{value}'")
        self.sql('SELECT pg_reload_conf()')

    def names(self, value='ANY 1 (s1)'):
        """Sets synchronous_standby_names, and waits until a session sees it."""
        self.alter('synchronous_standby_names', value)
        assert wait_for(10, lambda: self.sql(
            'SHOW synchronous_standby_names') == value)

    def receiver(self):
        """The process of the standby which receives WAL."""
        return wait_for(20, lambda: self.children('s', 'walreceiver'))[0]

    def batch_waits(self, event='SyncRep'):
        """The session of a batch that waits, or the empty string."""
        return self.sql(f"""SELECT pid FROM pg_stat_activity
            WHERE usename = 'refd' AND wait_event = '{event}'
            AND (query = 'COMMIT' OR query LIKE 'WITH fence%') LIMIT 1""")

    def waiting(self):
        """The number of sessions that wait for the standby."""
        return int(self.sql("""SELECT count(*) FROM pg_stat_activity
            WHERE usename = 'refd' AND wait_event = 'SyncRep'"""))

    def await_batch(self, event='SyncRep'):
        return wait_for(10, lambda: self.batch_waits(event))

    def log(self, port=5601):
        """The log: id to LSN."""
        out = self.sql("SELECT encode(id, 'hex'), lsn FROM refd.log"
                       " WHERE grp = 'main' AND lsn > 0", port)
        return {i: int(n) for i, n in
                (line.split('|') for line in out.splitlines())}

    def replayed(self):
        """Waits until the standby has replayed all of the primary."""
        at = self.sql('SELECT pg_current_wal_flush_lsn()')
        return wait_for(20, lambda: self.sql(
            f"SELECT pg_last_wal_replay_lsn() >= '{at}'", 5602) == 't')


class Locked:
    """A session of a superuser, in a transaction with these statements."""

    def __init__(self, pg, statements):
        self.pg, self.statements = pg, statements

    def __enter__(self):
        self.process = subprocess.Popen(
            ['psql', '-X', '-h', self.pg.top, '-p', '5601', '-U', 'postgres',
             'refd', '-qAt'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        self.process.stdin.write(f'BEGIN; {self.statements}; SELECT 1;\n')
        self.process.stdin.flush()
        assert self.process.stdout.readline() == '1\n'

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


class Text:
    """Reads the body of a frame."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        self.at += n
        assert self.at <= len(self.data)
        return self.data[self.at - n:self.at]

    def number(self, n=8):
        return int.from_bytes(self.take(n), 'little')

    def string(self):
        return self.take(self.number(4))


def put(data):
    return struct.pack('<I', len(data)) + data


def row_bytes(row):
    return (row['id'] + row['repo'] + row['txid'] +
            struct.pack('<IQ?', row['uid'], row['time'], row['final']) +
            put(row['path']) + put(row['record']) + put(row['objects']))


def read_row(body):
    return {'id': body.take(16), 'repo': body.take(16), 'txid': body.take(16),
            'uid': body.number(4), 'time': body.number(),
            'final': bool(body.number(1)), 'path': body.string(),
            'record': body.string(), 'objects': body.string()}


def new_row(size=200, objects=None):
    """Half of the rows have objects, if their size is not given."""
    if objects is None:
        objects = random.choice((0, random.randrange(1, 3000)))
    return {'id': os.urandom(16), 'repo': os.urandom(16),
            'txid': os.urandom(16), 'uid': 4294967294,
            'time': int(time.time() * 1000), 'final': random.random() < 0.5,
            'path': b'team/\xff \\.git', 'record': b'\0\\' + os.urandom(size),
            'objects': os.urandom(objects)}


class Node:
    """The daemon of a node, and the refd-group that the daemon talks to."""

    def __init__(self, name, program, config, top):
        self.name, self.program, self.config = name, program, config
        self.path, self.said = f'{top}/{name}.sock', f'{top}/{name}.log'
        self.loader = f'{top}/{name}.loader'
        self.process = self.socket = None
        self.applied = 0
        self.epoch = 0          # of the last row
        self.group = bytes(16)
        self.number = 0
        self.batches = {}       # number to rows, of all processes
        self.own = set()        # ids of these rows
        self.outcomes = {}      # number to a list of frames
        self.reasons = {}       # number to the reason of NOT_HELD
        self.committed = {}     # id to LSN
        self.refused = set()    # ids
        self.rows = {}          # LSN to row, from ROW and COMMITTED
        self.frames = queue.Queue()
        self.sending = threading.Lock()
        self.told = 0           # the last APPLIED
        self.role = None        # (is leader, epoch, LSN, leader)
        self.opened = []        # rows of earlier processes, until the role
        self.is_greeted = False
        self.current = 0        # of the last CURRENT, in seconds
        self.answers_roles = True
        self.is_silent = False

    # ---- the process ----

    def start(self, reads=True, prefix=(), **changes):
        hello = {'version': 1, 'group': self.group, 'node': self.name,
                 'applied': self.applied}
        hello.update(changes)
        if os.path.exists(self.path):
            os.unlink(self.path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(1)
        self.role = None
        self.is_greeted = False
        self.opened = self.open_rows()
        self.process = subprocess.Popen(
            [*prefix, self.program, '--config', self.config, '--socket',
             self.path, 'serve'], stderr=open(self.said, 'a'),
            env={**os.environ, 'LD_DEBUG': 'files',
                 'LD_DEBUG_OUTPUT': self.loader})
        listener.settimeout(20)
        self.socket, _ = listener.accept()
        listener.close()
        self.send(HELLO, struct.pack('<I', hello['version']) + hello['group']
                  + put(hello['node'].encode())
                  + struct.pack('<QQ', hello['applied'], hello['applied']))
        self.told = hello['applied']
        threading.Thread(target=self.beat, args=(self.socket,),
                         daemon=True).start()
        self.reader = threading.Thread(
            target=self.read, args=(self.socket,), daemon=True)
        if reads:
            self.reader.start()

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)

    def hang_up(self):
        """Closes the socket, as a daemon that dies. Returns the status."""
        self.socket.shutdown(socket.SHUT_RDWR)
        return self.process.wait(20)

    def end(self):
        """Ends the process like a crash."""
        self.kill()
        self.process.wait()
        self.reader.join()
        self.socket.close()

    def stop(self):
        self.send(STOP, b'')
        self.process.wait(20)
        self.reader.join()
        self.socket.close()
        return self.process.returncode

    def most_memory(self):
        """The most bytes in memory until now."""
        status = open(f'/proc/{self.process.pid}/status').read()
        return int(status.split('VmHWM:')[1].split()[0]) << 10

    def runs_handlers(self):
        """Has the process run the handlers of exit()?"""
        return 'calling fini' in open(
            f'{self.loader}.{self.process.pid}').read()

    def message(self):
        return open(self.said).read()

    # ---- frames ----

    def send(self, kind, body):
        with self.sending:
            self.socket.sendall(
                struct.pack('<I', len(body) + 1) + bytes([kind]) + body)

    def beat(self, sock):
        """A daemon is never silent for long."""
        while self.socket is sock and sock.fileno() >= 0:
            try:
                if not self.is_silent:
                    self.send(APPLIED, struct.pack('<QQ', self.told, self.told))
            except OSError:
                return
            time.sleep(1)

    def send_applied(self):
        self.told = self.applied
        try:
            self.send(APPLIED, struct.pack('<QQ', self.applied, self.applied))
        except OSError:  # refd-group has ended, and its frames still count
            pass

    def send_follows(self, epoch):
        try:
            self.send(FOLLOWS, struct.pack('<Q', epoch))
        except OSError:
            pass

    def batch(self, *rows):
        self.number += 1
        self.batches[self.number] = rows
        self.own.update(row['id'] for row in rows)
        self.outcomes[self.number] = []
        self.send(BATCH, struct.pack('<QQI', self.number,
                                      self.role[1] if self.role else 1,
                                      len(rows))
                  + b''.join(row_bytes(row) for row in rows))
        return self.number

    def hold(self, path, uuid, oids, bases=(), is_new=False):
        self.number += 1
        self.outcomes[self.number] = []
        self.send(HOLD, struct.pack('<Q', self.number) + uuid
                  + put(os.fsencode(path)) + struct.pack('<BBBI', is_new, False, 1,
                                                     len(oids))
                  + b''.join(oids) + struct.pack('<I', len(bases))
                  + b''.join(bases))
        return self.number

    def open_rows(self):
        return [row for rows in self.batches.values() for row in rows
                if row['id'] not in self.committed
                and row['id'] not in self.refused]

    def read(self, sock):
        data = b''
        while True:
            try:
                more = sock.recv(1 << 16)
            except OSError:
                return
            if not more:
                return
            data += more
            while len(data) >= 5:
                n = 4 + int.from_bytes(data[:4], 'little')
                if len(data) < n:
                    break
                self.take(data[4], Text(data[5:n]))
                data = data[n:]

    def commit(self, row, lsn):
        assert lsn == self.applied + 1, (lsn, self.applied)
        self.add_row(row, lsn)
        self.committed[row['id']] = lsn

    def add_row(self, row, lsn):
        assert row['id'] not in self.refused, lsn
        assert self.rows.setdefault(lsn, row) == row, lsn
        self.applied = lsn

    def take(self, kind, body):
        if kind == NEAR:
            pass
        elif kind == ROLE:
            role = (bool(body.number(1)), body.number(), body.number())
            self.group = body.take(16)
            if not role[0] and self.answers_roles:
                self.send_follows(role[1])
            assert role[1] >= self.epoch, (role, self.epoch)
            assert role[2] == self.applied, (role, self.applied)
            if not self.is_greeted:
                assert not role[0]
                self.is_greeted = True
                return
            # A row of an earlier process that has not come never comes.
            self.refused.update(row['id'] for row in self.opened
                                if row['id'] not in self.committed)
            self.opened = []
            self.role = role + (body.string().decode(),)
        elif kind == ROW:
            lsn, epoch = body.number(), body.number()
            row = read_row(body)
            assert lsn == self.applied + 1, (lsn, self.applied)
            assert epoch >= self.epoch, (epoch, self.epoch)
            self.epoch = epoch
            self.add_row(row, lsn)
            if row['id'] in self.own:
                self.committed[row['id']] = lsn
            self.send_applied()
        elif kind == CURRENT:
            self.current = body.number() / 1000
        else:
            number = body.number()
            if kind == COMMITTED:
                lsn = body.number()
                for i, row in enumerate(self.batches[number]):
                    self.commit(row, lsn + i)
                self.send_applied()
            elif kind == REFUSED:
                for row in self.batches[number]:
                    assert row['id'] not in self.committed
                    self.refused.add(row['id'])
            elif kind == NOT_HELD:
                self.reasons[number] = body.string().decode()
            self.outcomes[number].append(NAMES[kind])

    # ---- waiting ----

    def await_role(self, is_leader, seconds=20):
        return bool(wait_for(seconds, lambda: self.role
                             and self.role[0] == is_leader))

    def outcome(self, number, seconds=20):
        """The frames for a batch, as soon as the last is no DOUBTFUL."""
        wait_for(seconds, lambda: self.outcomes[number]
                 and self.outcomes[number][-1] != 'DOUBTFUL')
        return ' '.join(self.outcomes[number])
