"""For tests/lib/group_faults.py: faults of the disks."""
import os
import signal
import threading
import time

from group import wait_for
from group_disks import fill
from group_faults_servers import locked
from group_real import LEASE


class DiskFaults:
    # A copy is older than the last rows. No other disk may be lost before the
    # node has caught up.
    copies = threading.Lock()

    def disk_faults(self):
        return [self.cut_power, self.fill_node, self.fill_server,
                self.keep_copy, self.old_copy]

    def cut_power(self):
        """Of a node."""
        node = self.victim()
        with node.lock:
            node.cut_power(self.random.choice(('nologflush', 'logflush',
                                               'reflink')), self.random)
            self.stay(0, LEASE + 3)
            node.power_up(self.random)

    def fill_node(self):
        node = self.victim()
        with node.lock:
            node.disk.fill()
            self.stay(1, LEASE + 3, 12)
            node.disk.empty()

    @locked
    def fill_server(self):
        server = self.random.choice(self.servers.all)
        path = fill(os.path.dirname(server.data))
        self.stay(1, LEASE + 1)
        os.unlink(path)

    @staticmethod
    def shut_down(node):
        """Also git of refd-group and of clients, which start more of it."""
        node.is_off = True
        node.down()

        def is_empty():
            node.host.signal_all(signal.SIGKILL)
            return not node.host.processes()

        assert wait_for(20, is_empty), node.host.processes()

    def keep(self, node):
        node.kept_lsn = self.servers.lsn()
        self.shut_down(node)
        node.disk.keep()
        node.up()

    def keep_copy(self):
        """For a later fault."""
        node = self.random.choice(self.nodes)
        with node.lock:
            self.keep(node)

    def old_copy(self):
        """The copy lacks few rows: each costs up to 50 ms."""
        with self.copies:
            fresh = [node for node in self.nodes
                     if node.kept_lsn > self.servers.lsn() - 500]
            node = self.random.choice(fresh or self.nodes)
            with node.lock:
                if not fresh:
                    self.keep(node)
                    self.stay(1, LEASE + 1)
                self.shut_down(node)
                node.disk.bring_back()
                node.up()
            began, end = time.monotonic(), self.servers.lsn()
            at = node.kept_lsn
            if wait_for(60, lambda: node.group_lsn() >= end):
                print(f'# {node.name} has caught up {end - at} rows in '
                      f'{time.monotonic() - began:.1f} s', flush=True)
            else:
                self.world.problem(f'{node.name} has not caught up: '
                                   + node.said()[-500:])
