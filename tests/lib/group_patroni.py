"""For tests/long/group_patroni.sh: three servers of PostgreSQL under Patroni,
with etcd, on 127.0.0.1. They end only processes that they have started."""
import json
import os
import signal
import subprocess
import urllib.request

from group import wait_for

CONFIG = """
scope: refd
name: {name}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}}
etcd3: {{host: '127.0.0.1:2379'}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    maximum_lag_on_failover: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters:
        shared_buffers: 16MB
        max_connections: 60
        wal_log_hints: 'on'
  initdb: [{{auth: trust}}, no-sync]
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {top}/data
  bin_dir: {binaries}
  pgpass: {top}/pgpass
  parameters: {{unix_socket_directories: '{top}'}}
  pg_hba:
    - local all all trust
    - host all,replication all 127.0.0.1/32 trust
  authentication:
    superuser: {{username: postgres}}
    replication: {{username: replicator}}
    rewind: {{username: postgres}}
"""


class Member:
    """A server, and its Patroni."""

    def __init__(self, number, top, binaries, uid):
        self.name, self.port = f'pg{number}', 5600 + number
        self.rest = 8000 + number
        self.top, self.binaries, self.uid = f'{top}/{self.name}', binaries, uid
        os.mkdir(self.top)
        os.chown(self.top, uid, uid)
        self.config = f'{self.top}/patroni.yml'
        with open(self.config, 'w') as config:
            config.write(CONFIG.format(**vars(self)))
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            ['setpriv', f'--reuid={self.uid}', f'--regid={self.uid}',
             '--clear-groups', '--pdeathsig=INT', 'patroni', self.config],
            stdout=subprocess.DEVNULL, stderr=open(f'{self.top}/log', 'a'),
            cwd=self.top)

    def postmaster(self):
        with open(f'{self.top}/data/postmaster.pid') as file:
            return int(file.readline())

    def family(self):
        """Patroni, the postmaster, and the processes of the server."""
        server = self.postmaster()
        out = subprocess.run(['ps', '-o', 'pid=', '--ppid', str(server)],
                             capture_output=True, text=True).stdout
        return [self.process.pid, server, *map(int, out.split())]

    def signal_all(self, number):
        for pid in self.family():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        """The power of the machine is lost."""
        self.signal_all(signal.SIGKILL)
        self.process.wait()

    def end(self):
        """A clean end of both."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def sql(self, text, database='refd'):
        result = subprocess.run(
            ['psql', '-X', '-h', self.top, '-p', str(self.port), '-U',
             'postgres', '-d', database, '-qAtc', text], capture_output=True,
            text=True)
        assert result.returncode == 0, (self.name, text, result.stderr)
        return result.stdout.strip()


class Cluster:
    """etcd, and three members. The first one is the first primary."""

    def __init__(self, top, binaries, uid):
        self.etcd = subprocess.Popen(
            ['etcd', '--data-dir', f'{top}/etcd', '--unsafe-no-fsync'],
            stdout=subprocess.DEVNULL, stderr=open(f'{top}/etcd.log', 'w'))
        self.members = [Member(i, top, binaries, uid) for i in (1, 2, 3)]
        self.members[0].start()
        assert wait_for(60, self.primary)
        for member in self.members[1:]:
            member.start()
        assert wait_for(60, self.is_whole), self.roles()

    def roles(self):
        """Name to role, as Patroni says."""
        found = {}
        for member in self.members:
            try:
                with urllib.request.urlopen(
                        f'http://127.0.0.1:{member.rest}/cluster', timeout=2) \
                        as answer:
                    for one in json.load(answer)['members']:
                        found[one['name']] = one['role'], one['state']
                    return found
            except OSError:
                pass
        return found

    def primary(self):
        """The member that leads, or nothing."""
        roles = self.roles()
        return next((member for member in self.members if roles.get(
            member.name) == ('leader', 'running')), None)

    def is_whole(self):
        """A primary, a synchronous standby and another one."""
        roles = sorted(self.roles().values())
        return [role for role, _ in roles] == [
            'leader', 'replica', 'sync_standby'] and {
                state for _, state in roles} <= {'running', 'streaming'}

    # ---- the log of the group, for check_log() ----

    def database(self):
        nr = len(self.members)
        return (f'host={",".join(["127.0.0.1"] * nr)} port='
                f'{",".join(str(member.port) for member in self.members)}'
                ' dbname=refd user=refd')

    def sql(self, text, database='refd'):
        return self.primary().sql(text, database)

    def replayed(self):
        return self.primary() is not None

    def log(self, _):
        """Of the primary: id to LSN."""
        out = self.sql("SELECT encode(id, 'hex'), lsn FROM refd.log"
                       " WHERE grp = 'main' AND lsn > 0")
        return {i: int(n) for i, n in
                (line.split('|') for line in out.splitlines())}

    # ---- changes ----

    def switch(self):
        """A planned change to the synchronous standby."""
        old = self.primary()
        name = next(name for name, (role, _) in self.roles().items()
                    if role == 'sync_standby')
        done = subprocess.run(
            ['patronictl', '-c', old.config, 'switchover', '--force',
             '--candidate', name], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done
        assert wait_for(60, lambda: self.primary() is not None and
                        self.primary().name == name), (self.roles(), done)

    def fail_over(self):
        """The machine of the primary is lost. Returns its member."""
        old = self.primary()
        old.kill()
        assert wait_for(90, lambda: self.primary() not in (None, old)), \
            self.roles()
        return old

    def end(self):
        for member in self.members:
            member.end()
        self.etcd.kill()
        self.etcd.wait()
