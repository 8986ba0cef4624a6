"""For tests/long/group_whole.py: faults of nodes, of the network and of
PostgreSQL, one after the other or several at once, and the time without
writes."""
import collections
import random
import signal
import threading
import time

from group import wait_for
from group_faults_disks import DiskFaults
from group_faults_servers import ServerFaults
from group_net import Cut
from group_real import LEASE

# Nobody can write before the end of these.
BLOCKING = {'cut_fetches', 'cut_standbys', 'empty_names', 'stop_standbys',
            'cancel_commit', 'terminate_commit', 'restart_primary',
            'pause_primary', 'fail_over_behind', 'fill_server',
            'fill_node'}
# After a single fault, or for BLOCKING after its end.
GOAL = 10


class Event:
    def __init__(self, names, begin, end):
        self.names, self.begin, self.end = names, begin, end
        self.back = self.gap = None

    def measure(self, acks):
        """BACK: seconds from the end to the next acknowledgement. GAP: longest
        time without one, from the begin on."""
        times = [self.begin]
        for ack in acks:
            if ack > self.begin:
                times.append(ack)
            if ack > self.end:
                self.back = ack - self.end
                break
        self.gap = max((y - x for x, y in zip(times, times[1:])), default=0)

    def is_single(self):
        return len(self.names) == 1

    def waited(self):
        return self.back if self.names[0] in BLOCKING else self.gap

    def __str__(self):
        return f"{'+'.join(self.names)} {self.waited():.1f}"


class NodeFaults:
    """Programs of a node, and its network."""

    def leader(self):
        """A leader if there is one, or another node."""
        leaders = [node for node in self.nodes if node.leads()]
        return self.random.choice(leaders or self.nodes)

    def victim(self):
        return self.leader() if self.random.random() < 0.6 else \
            self.random.choice(self.nodes)

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

    def pause(self, *services):
        for service in services:
            service.send(signal.SIGSTOP)
        time.sleep(self.random.choice((0.3, LEASE + 1, LEASE + 3)))
        for service in services:
            service.send(signal.SIGCONT)

    def pause_daemon(self):
        self.pause(self.victim().daemon)

    def pause_group(self):
        self.pause(self.victim().group)

    def pause_both(self):
        self.pause(*self.victim().services())

    def stop_node(self):
        """All of a node is away, after a crash or a clean end."""
        node = self.victim()
        with node.lock:
            node.down(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
            time.sleep(self.random.choice((1, LEASE + 3, 8)))
            node.up()

    # ---- the network ----

    def hold_cut(self, sources, targets, *seconds):
        with Cut(sources, targets, self.random.random() < 0.6):
            time.sleep(self.random.choice(seconds or (1, LEASE + 1, 12)))

    def cut_node(self):
        """From all that is not on the same machine."""
        node = self.victim()
        self.hold_cut([node.host], self.servers.hosts()
                      + [other.host for other in self.nodes])

    def cut_primary(self):
        """A node from the primary, or from all servers."""
        hosts = self.random.choice(([self.servers.primary.host],
                                    self.servers.hosts()))
        self.hold_cut(*self.either([self.victim().host], hosts))

    def either(self, one, other):
        return (one, other) if self.random.random() < 0.5 else (other, one)

    def cut_pair(self):
        """Two nodes from each other."""
        one, other = self.random.sample(self.nodes, 2)
        self.hold_cut([one.host], [other.host])

    def cut_fetches(self):
        """The leader from all other nodes."""
        self.hold_cut(*self.either([self.leader().host], [
            node.host for node in self.nodes]), 1, LEASE + 1)

    def reset(self):
        """Connections of a node to the primary end, at either end."""
        hosts = [self.victim().host, self.servers.primary.host]
        self.random.shuffle(hosts)
        hosts[0].reset(hosts[1])
        time.sleep(self.random.random())
        hosts[0].end_reset(hosts[1])


class Faults(NodeFaults, DiskFaults, ServerFaults):
    def __init__(self, servers, nodes, world, seed):
        self.servers, self.nodes, self.world = servers, nodes, world
        self.random = random.Random(seed)
        self.events = []
        self.all = [
            self.kill_daemon, self.kill_group, self.kill_both,
            self.pause_daemon, self.pause_group, self.pause_both,
            self.stop_node, self.cut_node, self.cut_primary, self.cut_pair,
            self.cut_fetches, self.reset, *self.disk_faults(),
            *self.server_faults()]

    def several(self, faults):
        """At once, or almost."""
        def run(fault):
            time.sleep(self.random.random() * 2)
            try:
                fault()
            except Exception as error:  # pylint: disable=broad-except
                self.world.problem(f'{fault.__name__}: {error!r}')

        threads = [threading.Thread(target=run, args=(fault,))
                   for fault in faults]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def settle(self):
        """All nodes have the log of this moment, and one leads."""
        end = self.servers.lsn()
        is_settled = wait_for(30, lambda: any(
            node.leads() for node in self.nodes) and all(
                node.group_lsn() >= end for node in self.nodes))
        if not is_settled:
            print(f'# not all nodes have LSN {end} after 30 s:', [
                node.group_lsn() for node in self.nodes], flush=True)

    def one(self):
        """One fault, or several at once. Returns as soon as an update is
        acknowledged after it. False: none in 90 s."""
        nr = 1 if self.random.random() < 0.7 else self.random.choice((2, 3))
        if nr == 1:
            self.settle()
        faults = self.random.sample(self.all, nr)
        names = [fault.__name__ for fault in faults]
        print(f'# {time.strftime("%H:%M:%S")} {"+".join(names)}', flush=True)
        begin = time.monotonic()
        if nr == 1:
            faults[0]()
        else:
            self.several(faults)
        event = Event(names, begin, time.monotonic())
        self.events.append(event)
        is_back = wait_for(90, lambda: self.world.acks[-1] > event.end)
        event.measure(self.world.acks[-20000:])
        if event.waited() > GOAL:
            print(f'# {event} s without writes', flush=True)
        return is_back

    def print_numbers(self):
        counts = collections.Counter(
            name for event in self.events for name in event.names)
        print(f'# {sum(counts.values())} faults:', dict(counts))
        longest = {}
        for event in self.events:
            if event.is_single():
                name = event.names[0]
                longest[name] = max(event.waited(), longest.get(name, 0))
        print('# longest time without writes, single faults:', ', '.join(
            f'{name} {seconds:.1f}' for name, seconds in sorted(
                longest.items(), key=lambda item: -item[1])))
        several = sorted((event.gap, str(event)) for event in self.events
                         if not event.is_single())
        print('# the same, several at once:', ', '.join(
            text for _, text in several[-3:]), flush=True)
