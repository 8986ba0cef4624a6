"""For tests/long/group_whole.py: faults of nodes and of PostgreSQL."""
import collections
import os
import random
import signal
import time

from group import wait_for
from group_real import LEASE


class Faults:
    def __init__(self, pg, nodes, top, seed):
        self.pg, self.nodes, self.top = pg, nodes, top
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.takeovers = []     # seconds from the fault on

    def leader(self):
        """A leader if there is one, or another node."""
        leaders = [node for node in self.nodes if node.leads()]
        return self.random.choice(leaders or self.nodes)

    def victim(self):
        return self.leader() if self.random.random() < 0.6 else \
            self.random.choice(self.nodes)

    def sql(self, text):
        try:
            return self.pg.sql(text)
        except AssertionError:      # PostgreSQL is away
            return ''

    # ---- programs of a node ----

    def kill(self, *services):
        for service in services:
            service.send(signal.SIGKILL)

    def kill_daemon(self):
        self.kill(self.victim().daemon)

    def kill_group(self):
        self.kill(self.victim().group)

    def kill_both(self):
        node = self.victim()
        self.kill(*self.random.sample(node.services(), 2))

    def pause(self, service):
        service.send(signal.SIGSTOP)
        time.sleep(self.random.choice((0.3, LEASE + 1, LEASE + 3)))
        service.send(signal.SIGCONT)

    def pause_daemon(self):
        self.pause(self.victim().daemon)

    def pause_group(self):
        self.pause(self.victim().group)

    def stop_node(self):
        """All of a node is away, after a crash or a clean end."""
        node = self.victim()
        node.down(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
        time.sleep(self.random.choice((1, LEASE + 3, 8)))
        node.up()

    def block_fetches(self):
        """Some or all fetches get no answer."""
        hosts = [f'{x.name}-{y.name}' for x in self.nodes for y in self.nodes
                 if x is not y]
        hosts = self.random.sample(hosts, self.random.choice((3, 6)))
        for host in hosts:
            open(f'{self.top}/shut/{host}', 'w').close()
        time.sleep(self.random.choice((1, 4)))
        for host in hosts:
            os.unlink(f'{self.top}/shut/{host}')

    # ---- PostgreSQL ----

    def end_commit(self, function):
        """The standby pauses, and a COMMIT ends that waits for it."""
        pid = self.pg.receiver()
        os.kill(pid, signal.SIGSTOP)
        try:
            waits = wait_for(3, self.pg.batch_waits)
            if waits:
                self.sql(f'SELECT {function}({waits})')
            time.sleep(self.random.choice((0, 1, LEASE + 1)))
        finally:
            os.kill(pid, signal.SIGCONT)

    def cancel_commit(self):
        self.end_commit('pg_cancel_backend')

    def terminate_commit(self):
        self.end_commit('pg_terminate_backend')

    def end_sessions(self):
        self.sql("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE usename = 'refd' AND random() < 0.6""")

    def empty_names(self):
        pid = self.pg.receiver()
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self.random.random())
            self.pg.names('')
            time.sleep(self.random.random() * 2)
            self.pg.names()
        finally:
            os.kill(pid, signal.SIGCONT)

    def restart_primary(self):
        self.pg.stop('p', self.random.choice((signal.SIGQUIT, signal.SIGINT)))
        time.sleep(self.random.choice((0, 0, LEASE + 1)))
        self.pg.start('p')

    def stop_standby(self):
        self.pg.stop('s', signal.SIGQUIT)
        time.sleep(self.random.choice((1, LEASE + 1, 6)))
        self.pg.start('s')

    # ---- at random ----

    def one(self):
        faults = [self.kill_daemon, self.kill_group, self.kill_both,
                  self.pause_daemon, self.pause_group, self.stop_node,
                  self.block_fetches, self.cancel_commit,
                  self.terminate_commit, self.end_sessions, self.empty_names,
                  self.restart_primary, self.stop_standby]
        fault = self.random.choice(faults)
        began, leads = time.monotonic(), self.leads()
        print(f'# {time.strftime("%H:%M:%S")} {fault.__name__}', flush=True)
        fault()
        self.counts[fault.__name__] += 1
        if fault.__name__.startswith('kill') and self.random.random() < 0.5 \
                and wait_for(2 * LEASE, lambda: self.leads() > leads):
            self.takeovers.append(time.monotonic() - began)

    def leads(self):
        return sum(node.said().count('event=group-leads')
                   for node in self.nodes)

    def epochs(self):
        return int(self.pg.sql("SELECT epoch FROM refd.lease"))

    def copy_standby(self):
        """The promoted standby gets a standby of its own (old, port 5603)."""
        self.pg.run('pg_basebackup', '-h', self.pg.top, '-p', '5602', '-U',
                    'postgres', '-D', f'{self.pg.top}/old', '-R', '-C', '-S',
                    's3', '-c', 'fast')
        with open(f'{self.pg.top}/old/postgresql.auto.conf', 'a') as conf:
            conf.write("port = 5603\ncluster_name = s3\n")
        self.pg.start('old')
        self.pg.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s3)'",
                    5602)
        self.pg.sql('SELECT pg_reload_conf()', 5602)
