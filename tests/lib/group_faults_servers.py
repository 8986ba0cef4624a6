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
            has_effect = fault(self)
            self.servers.repair()
        return has_effect
    run.__name__ = fault.__name__
    return run


class ServerFaults:
    def server_faults(self):
        return [self.cancel_commit, self.terminate_commit, self.reset_commit,
                self.end_sessions, self.empty_names, self.restart_primary, self.pause_primary,
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
        """A COMMIT ends that waits for the standbys. False: there was none."""
        waits = wait_for(2, self.servers.batch_waits)
        if waits:
            self.servers.sql(f'SELECT {function}({waits})')
        return bool(waits)

    def end_alone(self, function):
        with self.without_standbys():
            has_effect = self.end_commit(function)
            self.stay(0, 1, LEASE + 1)
        return has_effect

    @locked
    def cancel_commit(self):
        return self.end_alone('pg_cancel_backend')

    @locked
    def terminate_commit(self):
        return self.end_alone('pg_terminate_backend')

    @locked
    def reset_commit(self):
        """The connection of a COMMIT that waits is cut, at either end. The
        COMMIT goes on."""
        primary = self.servers.primary.host
        with self.without_standbys():
            waits = wait_for(2, self.servers.batch_waits)
            if not waits:
                return False
            address = self.servers.sql(
                'SELECT host(client_addr) FROM pg_stat_activity WHERE pid ='
                f' {waits}')
            for node in self.nodes:
                if node.host.address == address:
                    one, other = self.either(node.host, primary)
                    one.cut_sockets(other)
            self.stay(0, 1, LEASE + 1)
        return True

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
        self.stay(0, 0, LEASE + 1)

    @locked
    def pause_primary(self):
        self.servers.primary.signal_all(signal.SIGSTOP)
        self.stay(1, LEASE + 1, 8)
        self.servers.primary.signal_all(signal.SIGCONT)

    @locked
    def stop_standby(self):
        self.random.choice(self.servers.standbys()).stop(signal.SIGQUIT)
        self.stay(1, LEASE + 1, 12)

    @locked
    def stop_standbys(self):
        for standby in self.servers.standbys():
            standby.stop(signal.SIGQUIT)
        self.stay(1, LEASE + 1)

    # ---- the network between servers ----

    @locked
    def cut_standby(self):
        hosts = [self.servers.primary.host,
                 self.random.choice(self.servers.standbys()).host]
        self.random.shuffle(hosts)
        with Cut(hosts[:1], hosts[1:], self.random.random() < 0.5):
            self.stay(1, LEASE + 1, 12)

    @locked
    def cut_standbys(self):
        with self.without_standbys(self.random.random() < 0.5):
            self.stay(1, LEASE + 1)

    # ---- failovers ----

    @locked
    def fail_over(self):
        """The primary is killed."""
        old = self.servers.primary
        old.kill()
        self.stay(0, 1)
        self.servers.fail_over()
        self.stay(0, 3)
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
            self.stay(1, 4)
        self.stay(0, 2)
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
            self.stay(1, 4)
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
