"""For tests/lib/group_faults.py: faults of PostgreSQL, of its standbys, and
failovers."""
import contextlib
import signal
import time

from group import wait_for
from group_net import Cut
from group_real import LEASE


def locked(fault):
    """One fault of the servers at a time. Then all servers are well."""
    def run(self):
        with self.servers.lock:
            fault(self)
            self.servers.repair()
    run.__name__ = fault.__name__
    return run


class ServerFaults:
    def server_faults(self):
        return [self.cancel_commit, self.terminate_commit, self.end_sessions,
                self.empty_names, self.restart_primary, self.pause_primary,
                self.stop_standby, self.stop_standbys, self.cut_standby,
                self.cut_standbys, self.fail_over, self.fail_over_cut,
                self.fail_over_return, self.fail_over_behind,
                self.switch_over]

    def without_standbys(self, both=True):
        """The primary has no standby, and is not told so."""
        servers = self.servers
        return Cut([servers.primary.host],
                   [standby.host for standby in servers.standbys()], both)

    # ---- sessions and settings ----

    def end_commit(self, function):
        """A COMMIT ends that waits for the standbys."""
        waits = wait_for(2, self.servers.batch_waits)
        if waits:
            self.servers.sql(f'SELECT {function}({waits})')

    @locked
    def cancel_commit(self):
        with self.without_standbys():
            self.end_commit('pg_cancel_backend')
            time.sleep(self.random.choice((0, 1, LEASE + 1)))

    @locked
    def terminate_commit(self):
        with self.without_standbys():
            self.end_commit('pg_terminate_backend')
            time.sleep(self.random.choice((0, 1, LEASE + 1)))

    @locked
    def end_sessions(self):
        self.servers.sql("""SELECT pg_terminate_backend(pid)
            FROM pg_stat_activity WHERE usename = 'refd'
            AND random() < 0.6""")

    @locked
    def empty_names(self):
        """Commits wait for nobody, while nobody is there."""
        with self.without_standbys():
            time.sleep(self.random.random())
            self.servers.primary.names('')
            time.sleep(self.random.random() * 2)
            self.servers.primary.names()

    # ---- programs ----

    @locked
    def restart_primary(self):
        self.servers.primary.stop(self.random.choice(
            (signal.SIGQUIT, signal.SIGINT)))
        time.sleep(self.random.choice((0, 0, LEASE + 1)))

    @locked
    def pause_primary(self):
        self.servers.primary.signal_all(signal.SIGSTOP)
        time.sleep(self.random.choice((1, LEASE + 1, 8)))
        self.servers.primary.signal_all(signal.SIGCONT)

    @locked
    def stop_standby(self):
        self.random.choice(self.servers.standbys()).stop(signal.SIGQUIT)
        time.sleep(self.random.choice((1, LEASE + 1, 12)))

    @locked
    def stop_standbys(self):
        for standby in self.servers.standbys():
            standby.stop(signal.SIGQUIT)
        time.sleep(self.random.choice((1, LEASE + 1)))

    # ---- the network between servers ----

    @locked
    def cut_standby(self):
        hosts = [self.servers.primary.host,
                 self.random.choice(self.servers.standbys()).host]
        self.random.shuffle(hosts)
        with Cut(hosts[:1], hosts[1:], self.random.random() < 0.5):
            time.sleep(self.random.choice((1, LEASE + 1, 12)))

    @locked
    def cut_standbys(self):
        with self.without_standbys(self.random.random() < 0.5):
            time.sleep(self.random.choice((1, LEASE + 1)))

    # ---- failovers ----

    @locked
    def fail_over(self):
        """The primary is killed."""
        old = self.servers.primary
        old.kill()
        time.sleep(self.random.choice((0, 1)))
        self.servers.fail_over()
        time.sleep(self.random.choice((0, 3)))
        self.servers.rejoin(old)

    @locked
    def switch_over(self):
        """A clean end of the primary."""
        old = self.servers.primary
        old.stop(signal.SIGINT)
        self.servers.fail_over()
        self.servers.rejoin(old)

    @locked
    def fail_over_cut(self):
        """The primary goes on, without its standbys, for a part of the nodes or
        for all."""
        old = self.servers.primary
        nodes = self.random.sample(self.nodes, self.random.choice((0, 1, 3)))
        with self.without_standbys(), Cut(
                [old.host], [node.host for node in nodes]):
            time.sleep(self.random.random())
            self.servers.fail_over()
            time.sleep(self.random.choice((1, 4)))
        time.sleep(self.random.choice((0, 2)))
        self.servers.rejoin(old)

    @locked
    def fail_over_return(self):
        """The former primary comes back as a primary, and takes writes if the
        setting is empty. Or the switch was a mistake."""
        old = self.servers.primary
        old.kill()
        self.servers.fail_over()
        with contextlib.ExitStack() as stack:
            if self.random.random() < 0.5:
                # Some nodes see only the former primary.
                nodes = self.random.sample(self.nodes, 1)
                stack.enter_context(Cut(
                    [self.servers.primary.host],
                    [node.host for node in nodes]))
            assert old.start()
            if self.random.random() < 0.5:
                old.names('')
            time.sleep(self.random.choice((1, 4)))
        self.servers.rejoin(old)

    @locked
    def fail_over_behind(self):
        """The standbys lack the last entries, and rows of these are visible on
        the primary."""
        old = self.servers.primary
        with self.without_standbys():
            for _ in range(self.random.choice((1, 3))):
                self.end_commit(self.random.choice(
                    ('pg_cancel_backend', 'pg_terminate_backend')))
            time.sleep(self.random.random())
            old.kill()
        self.servers.fail_over()
        self.servers.rejoin(old)
