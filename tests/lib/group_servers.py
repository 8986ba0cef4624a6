"""For tests/long/group_whole.py: three servers of PostgreSQL, a host each, one
of them the primary, and a failover tool. They end only processes that they have
started."""
import os
import re
import shutil
import signal
import subprocess
import threading
import time

from group import wait_for
import group_net

NAMES = 'ANY 1 (pg1, pg2, pg3)'
SETTINGS = """
listen_addresses = '{address}'
unix_socket_directories = '{top}'
cluster_name = {name}
shared_buffers = 16MB
max_connections = 60
max_wal_size = 64MB
min_wal_size = 16MB
wal_keep_size = 64MB
wal_sender_timeout = 3s
wal_receiver_timeout = 3s
wal_retrieve_retry_interval = 300ms
"""


class Server:
    """A server. Its name is the name as a standby."""

    def __init__(self, number, top, binaries, uid):
        self.name = f'pg{number}'
        self.top, self.binaries, self.uid = f'{top}/{self.name}', binaries, uid
        self.data = f'{self.top}/disk/data'
        os.makedirs(f'{self.top}/disk')
        group_net.run('mount', '-t', 'tmpfs', '-o', 'size=250m,mode=777',
                      self.name, f'{self.top}/disk')
        os.chown(self.top, uid, uid)
        self.host = group_net.Host(self.name, 10 + number)
        self.process = None

    # ---- the program ----

    def account(self, program, *args):
        return self.host.enter(
            'setpriv', f'--reuid={self.uid}', f'--regid={self.uid}',
            '--clear-groups', f'{self.binaries}/{program}', *args)

    def run(self, program, *args):
        subprocess.run(self.account(program, *args), check=True, cwd=self.top,
                       stdout=subprocess.DEVNULL,
                       stderr=open(f'{self.top}/said', 'a'))

    def make(self):
        """A new database system."""
        self.run('initdb', '-D', self.data, '-A', 'trust', '-U', 'postgres',
                 '--no-sync', '--wal-segsize=1')
        with open(f'{self.data}/pg_hba.conf', 'a') as conf:
            conf.write(f'host all,replication all {group_net.NETWORK}.0/24'
                       ' trust\n')
        self.configure()

    def configure(self):
        path = f'{self.data}/postgresql.conf'
        text = open(path).read().split('# of the test')[0]
        with open(path, 'w') as conf:
            conf.write(text + '# of the test' + SETTINGS.format(
                address=self.host.address, top=self.top, name=self.name))

    def follow(self, primary):
        """The words for this server, as a standby of PRIMARY."""
        return (f"primary_conninfo = 'host={primary.host.address}"
                " user=postgres'\n")

    def copy(self, primary):
        """Begins anew, as a standby of PRIMARY."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run('pg_basebackup', '-h', primary.host.address, '-U', 'postgres',
                 '-D', self.data, '-c', 'fast', '--no-sync')
        self.configure()
        with open(f'{self.data}/postgresql.auto.conf', 'w') as conf:
            conf.write(self.follow(primary))
            conf.write(f"synchronous_standby_names = '{NAMES}'\n")
        open(f'{self.data}/standby.signal', 'w').close()
        shutil.chown(f'{self.data}/standby.signal', self.uid)
        assert self.start(), self.name

    def start(self, seconds=60):
        """Waits until the server answers. False: it ends, or does not answer
        in time."""
        self.process = subprocess.Popen(
            self.account('postgres', '-D', self.data), cwd=self.top,
            stdout=subprocess.DEVNULL, stderr=open(f'{self.top}/log', 'a'))
        return wait_for(seconds, lambda: self.is_ready()
                        or not self.is_up()) and self.is_up()

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def is_ready(self):
        return subprocess.run([f'{self.binaries}/pg_isready', '-q', '-h',
                               self.top, '-U', 'postgres']).returncode == 0

    def stop(self, number=signal.SIGINT):
        """SIGINT: a clean end. SIGQUIT: like a crash."""
        if self.is_up():
            self.process.send_signal(number)
            self.process.wait(120)

    def kill(self):
        """All processes at the same time."""
        for pid in [self.process.pid, *self.children('')]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(60)

    def signal_all(self, number):
        for pid in [self.process.pid, *self.children('')]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def children(self, name):
        out = subprocess.run(
            ['ps', '-o', 'pid=,args=', '--ppid', str(self.process.pid)],
            capture_output=True, text=True).stdout
        return [int(line.split()[0]) for line in out.splitlines()
                if name in line]

    # ---- statements ----

    def sql(self, text, database='postgres', seconds=60):
        result = subprocess.run(
            ['psql', '-X', '-h', self.top, '-U', 'postgres', '-d', database,
             '-qAtc', text], capture_output=True, text=True, timeout=seconds)
        assert result.returncode == 0, (self.name, text, result.stderr)
        return result.stdout.strip()

    def alter(self, setting, value):
        self.sql(f"ALTER SYSTEM SET {setting} = '{value}'")
        self.sql('SELECT pg_reload_conf()')

    def names(self, value=NAMES):
        """Sets synchronous_standby_names, and waits until a session sees it."""
        self.alter('synchronous_standby_names', value)
        assert wait_for(10, lambda: self.sql(
            'SHOW synchronous_standby_names') == value)

    # ---- as a standby ----

    def hold_still(self):
        """Receives no WAL any longer, from whomever. Returns the position of
        the flushed WAL, which has been replayed then. The last record can be a
        part of one, which is never replayed."""
        self.alter('primary_conninfo', '')
        assert wait_for(20, lambda: self.sql(
            'SELECT count(*) FROM pg_stat_wal_receiver') == '0'), self.name
        is_replayed = """SELECT coalesce(pg_last_wal_receive_lsn(), '0/0') <=
            pg_last_wal_replay_lsn()"""
        position, last = "SELECT pg_last_wal_replay_lsn() - '0/0'::pg_lsn", ''
        while self.sql(is_replayed) != 't' and self.sql(position) != last:
            last = self.sql(position)
            time.sleep(2)
        return int(self.sql(position))

    def chase(self, primary):
        value = re.search("'(.*)'", self.follow(primary))[1]
        self.alter('primary_conninfo', value)

    def promote(self):
        assert self.sql('SELECT pg_promote(true, 60)') == 't', self.name


class Servers:
    """The primary, its two standbys, and the failover tool. A fault of a server
    takes the lock first."""

    def __init__(self, top, binaries, uid):
        self.top = top
        self.all = [Server(i, top, binaries, uid) for i in (1, 2, 3)]
        self.primary = self.all[0]
        self.lock = threading.Lock()
        self.failovers = 0
        self.able = None    # since when a primary can commit: see repair()
        self.primary.make()
        assert self.primary.start()
        for standby in self.standbys():
            standby.copy(self.primary)
        self.primary.names()
        self.await_standbys()

    def database(self):
        return 'host=' + ','.join(server.host.address for server in self.all) \
            + ' dbname=refd user=refd'

    def hosts(self):
        return [server.host for server in self.all]

    def standbys(self):
        return [server for server in self.all if server is not self.primary]

    def sql(self, text):
        return self.primary.sql(text, 'refd')

    def lsn(self):
        """The end of the group's log. The primary may be away for a moment."""
        said = []

        def ask():
            try:
                return self.sql('SELECT max(lsn) FROM refd.log')
            except (AssertionError, subprocess.TimeoutExpired) as error:
                said.append(error)
                return None

        lsn = wait_for(60, ask)
        assert lsn, said[-1]
        return int(lsn)

    def state(self):
        """For people."""
        try:
            return self.sql("""SELECT now(), 'lease', l::text FROM refd.lease l
                UNION ALL SELECT now(), 'node', n::text FROM refd.node n""")
        except Exception as error:  # pylint: disable=broad-except
            return repr(error)

    def count_standbys(self):
        return int(self.primary.sql(
            "SELECT count(*) FROM pg_stat_replication WHERE state ="
            " 'streaming' AND sync_state = 'quorum'"))

    def await_standbys(self, number=2, seconds=60):
        assert wait_for(seconds, lambda: self.count_standbys() >= number), \
            [server.name for server in self.standbys()]

    def await_able(self):
        """A COMMIT needs one standby."""
        self.await_standbys(1)
        self.able = time.monotonic()

    def batch_waits(self):
        """The session of a batch that waits for the standbys, or nothing."""
        return self.sql("""SELECT pid FROM pg_stat_activity
            WHERE usename = 'refd' AND wait_event = 'SyncRep'
            AND (query = 'COMMIT' OR query LIKE 'WITH fence%') LIMIT 1""")

    # ---- failover ----

    def fail_over(self):
        """The primary is dead, or cut off. Both standbys are compared: 2 - 1 +
        1, with copies = 1 (docs/group-internals.md)."""
        positions = {server: server.hold_still()
                     for server in self.standbys()}
        best = max(positions, key=positions.get)
        other, = (server for server in positions if server is not best)
        best.promote()
        other.chase(best)
        self.primary = best
        self.failovers += 1
        self.await_able()

    def rejoin(self, server):
        """A former primary becomes a standby."""
        server.stop(signal.SIGQUIT)
        server.copy(self.primary)
        self.await_standbys()

    def repair(self):
        """Starts what has ended. For the end of each fault."""
        for server in self.all:
            if not server.is_up():
                assert server.start(), server.name
        if not self.able:
            self.await_able()
        self.await_standbys()

    def end(self):
        for server in self.all:
            if server.is_up():
                server.signal_all(signal.SIGCONT)
                server.stop(signal.SIGQUIT)
            server.host.down()
