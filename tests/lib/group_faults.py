"""For tests/long/group_whole.py: faults of nodes, of the network and of
PostgreSQL, one alone or several at once."""
import os
import random
import signal
import threading
import time

from group import wait_for
from group_faults_disks import DiskFaults
from group_faults_repos import RepoFaults
from group_faults_servers import ServerFaults
from group_faults_times import GOAL, Event
from group_net import Cut
from group_real import LEASE


class NodeFaults:
    """Programs of a node, and its network."""

    def stay(self, *seconds):
        """Several faults at once are short, so that there are many."""
        time.sleep(self.random.choice(
            seconds[:2] if self.is_storm else seconds))

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
        self.stay(0.3, LEASE + 1, LEASE + 3)
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
            self.stay(1, LEASE + 3, 8)
            node.up()

    # ---- the network ----

    def hold_cut(self, sources, targets, *seconds):
        with Cut(sources, targets, self.random.random() < 0.6):
            self.stay(*(seconds or (1, LEASE + 1, 12)))

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


class Faults(NodeFaults, DiskFaults, RepoFaults, ServerFaults):
    """LOG: a file that gets a line for each fault."""

    def __init__(self, servers, nodes, world, seed, log):
        self.servers, self.nodes, self.world = servers, nodes, world
        self.random = random.Random(seed)
        self.log = open(log, 'w', buffering=1)
        self.is_storm = False
        self.events = []
        self.of_nodes = [
            self.kill_daemon, self.kill_group, self.kill_both,
            self.pause_daemon, self.pause_group, self.pause_both,
            self.stop_node, self.cut_node, self.cut_primary, self.cut_pair,
            self.cut_fetches, self.reset, *self.disk_faults(),
            *self.repo_faults()]
        # These take as long as ten others.
        self.slow = [self.old_copy, self.damage_pack, self.roll_back,
                     self.clone_node]
        self.of_servers = self.server_faults()
        wanted = os.environ.get('GROUP_FAULTS', '').split()
        if wanted:
            self.of_nodes, self.of_servers = (
                [fault for fault in faults if fault.__name__ in wanted]
                for faults in (self.of_nodes, self.of_servers))
        self.never_storms = bool(wanted)
        self.left = []      # each fault alone once, before the first again

    def run(self, fault):
        """True: it had an effect."""
        begin = time.time()
        try:
            has_effect = fault() is not False
        except Exception as error:  # pylint: disable=broad-except
            self.world.problem(f'{fault.__name__}: {error!r}')
            has_effect = False
        self.log.write(f'{clock(begin)} {clock(time.time())} {fault.__name__}'
                       f'{"" if has_effect else " (nothing)"}\n')
        return has_effect

    def run_lanes(self, lanes):
        """At once, or almost: the faults of a lane one after the other. The
        names of the faults that had an effect."""
        names = []

        def run(lane):
            for fault in lane:
                time.sleep(self.random.random())
                if self.run(fault):
                    names.append(fault.__name__)

        threads = [threading.Thread(target=run, args=(lane,))
                   for lane in lanes if lane]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return names

    def storm(self):
        """PostgreSQL has one fault at a time."""
        lanes = [[], [], []]
        weights = [1 if fault in self.slow else 5 for fault in self.of_nodes]
        for fault in self.random.choices(self.of_nodes, weights,
                                         k=self.random.randrange(4, 15)):
            self.random.choice(lanes).append(fault)
        lanes.append([self.random.choice(self.of_servers) for _ in
                      range(self.random.randrange(5))])
        return self.run_lanes(lanes)

    def alone(self):
        self.settle()
        if not self.left:
            self.left = self.of_nodes + self.of_servers
            self.random.shuffle(self.left)
        return self.left.pop()

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
        """One fault, or several at once. Returns as soon as the stranger has
        written after it. False: not in 90 s."""
        self.is_storm = not self.never_storms and self.random.random() < 0.6
        fault = None if self.is_storm else self.alone()
        begin, self.servers.able = time.monotonic(), None
        if fault:
            names = [fault.__name__] if self.run(fault) else []
        else:
            names = self.storm()
        end = time.monotonic()
        if not names:
            return True
        event = Event(names, self.is_storm, begin, end, self.servers.able)
        is_back = wait_for(GOAL, lambda: self.world.found[-1] > end)
        if not is_back:
            self.log.write(f'{clock(time.time())} no writes for {GOAL} s after '
                           f'{event}: {self.servers.state()}\n')
            is_back = wait_for(80, lambda: self.world.found[-1] > end)
        event.measure(self.world.found[-20000:])
        self.events.append(event)
        print(f'# {clock(time.time() - time.monotonic() + begin)} {event}: '
              f'{event.gap:.1f} s without writes, delay {event.delay:.1f} s',
              flush=True)
        return is_back


def clock(seconds):
    """Like the logs."""
    return time.strftime('%H:%M:%S', time.gmtime(seconds)) + \
        f'{seconds % 1:.3f}'[1:]
