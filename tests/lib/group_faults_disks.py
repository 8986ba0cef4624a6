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
            time.sleep(self.random.choice((0, LEASE + 3)))
            node.power_up(self.random)

    def fill_node(self):
        node = self.victim()
        with node.lock:
            path = fill(node.disk.where)
            time.sleep(self.random.choice((1, LEASE + 3, 12)))
            os.unlink(path)

    @locked
    def fill_server(self):
        server = self.random.choice(self.servers.all)
        path = fill(os.path.dirname(server.data))
        time.sleep(self.random.choice((1, LEASE + 1)))
        os.unlink(path)

    @staticmethod
    def shut_down(node):
        """Also git of refd-group and of clients."""
        node.is_off = True
        node.down()
        node.host.signal_all(signal.SIGKILL)
        assert wait_for(20, lambda: not node.host.processes())

    def keep_copy(self):
        node = self.random.choice(self.nodes)
        with node.lock:
            self.shut_down(node)
            node.disk.keep()
            node.up()

    def old_copy(self):
        with self.copies:
            kept = [node for node in self.nodes
                    if os.path.exists(node.disk.kept)]
            if not kept:
                return
            node = self.random.choice(kept)
            with node.lock:
                self.settle()
                self.shut_down(node)
                node.disk.bring_back()
                node.up()
            began, end = time.monotonic(), self.servers.lsn()
            at = wait_for(20, node.group_lsn)
            # A row whose objects must be fetched takes about 50 ms.
            if wait_for(30 + (end - at) / 5, lambda: node.group_lsn() >= end):
                print(f'# {node.name} has caught up {end - at} rows in '
                      f'{time.monotonic() - began:.1f} s', flush=True)
            else:
                self.world.problem(f'{node.name} has not caught up: '
                                   + node.said()[-500:])
