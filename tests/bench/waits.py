"""B8: what waits. An idle daemon's answer, the loop while a flush is under
way, memory, and how long things take to start."""
import os
import statistics
import subprocess
import time

from contestants import Refd, Stage
from place import (CHEAP, COLUMNS, HELPER, LOAD, REFD, Daemon, LongestTurn,
                   delayed, load)
from push import Pusher


class Single(Refd):
    """Now and then an update, each of a ref of its own, and nobody else: what
    was flushed meanwhile is timed by the same loop, by the raw log. What is
    not the flush is told apart by a ping at the same rate and by the daemon's
    own numbers; and an update by the command has a process, and its
    connection, on top."""

    def parts(self):
        stats = self.stage.daemon.stats()
        return {f"{stage}_ms": stats[f"{stage}_us_p50"] / 1000
                for stage in ("admit", "lock", "publish")}

    def command(self, turn):
        """Each the no-op that the first one leaves."""
        done = load(self.stage.place, "command", {"txns": 20}, 0,
                    command=(REFD, "update", "--socket",
                             self.stage.daemon.socket, "-C", turn.path,
                             "refs/heads/single", self.stage.oids[0]))
        return done["p50_us"] / 1000

    def measure(self, turn):
        shape = {"clients": 1, "rate": 50, "seconds": turn.point["seconds"]}
        got = load(self.stage.place, "refd", shape, self.stage.delay_us,
                   *turn.more, "--oid", self.stage.oids[0])
        parts = self.parts()
        trip = load(self.stage.place, "ping", shape, 0,
                    "--path", self.stage.daemon.socket)
        path = os.path.join(self.stage.place.fresh(), "log")
        flush = load(self.stage.place, "raw", dict(shape, refs=64),
                     self.stage.delay_us, "--path", path)
        return {"p50_ms": got["p50_us"] / 1000, "p99_ms": got["p99_us"] / 1000,
                "flush_ms": flush["p50_us"] / 1000,
                "above_ms": (got["p50_us"] - flush["p50_us"]) / 1000,
                "trip_ms": trip["p50_us"] / 1000,
                "command_ms": self.command(turn) - flush["p50_us"] / 1000,
                **parts}

    def check(self, turn):
        pass


class Stall(Refd):
    """Pings, at a steady rate, alone and beside a storm, as a client sees
    them; the longest turn of the daemon's loop, as the daemon times it and in
    processor time."""

    def pings(self, seconds):
        got = load(self.stage.place, "ping",
                   {"clients": 1, "rate": 200, "seconds": seconds}, 0,
                   "--path", self.stage.daemon.socket)
        return got

    def measure(self, turn):
        seconds = turn.point["seconds"]
        alone = self.pings(seconds)
        self.stage.daemon.counted.clear()
        storm = subprocess.Popen(
            [LOAD, "--on", "refd", "--clients", "16", "--seconds",
             str(seconds + 0.3), *turn.more, "--oid", self.stage.oids[0]],
            env=delayed(self.stage.place.env, self.stage.delay_us),
            stdout=subprocess.DEVNULL)
        beside = self.pings(seconds)
        if storm.wait() != 0:
            raise RuntimeError("the storm failed")
        stats = self.stage.daemon.stats()
        return {"turn_max_ms": stats["turn_us_max"] / 1000,
                "turn_cpu_max_ms": self.stage.daemon.counted.now() / 1e6,
                "turn_p99_ms": stats["turn_us_p99"] / 1000,
                "ping_p50_ms": beside["p50_us"] / 1000,
                "ping_p99_ms": beside["p99_us"] / 1000,
                "ping_max_ms": beside["max_us"] / 1000,
                "alone_p99_ms": alone["p99_us"] / 1000}

    def check(self, turn):
        pass


class Starts(Refd):
    """The daemon, until it serves; the client; a push's hook, by a push that
    leads to it and one that leads to a hook which does nothing."""

    def measure(self, turn):
        begun = time.monotonic()
        daemon = Daemon(self.stage.place)
        ready = time.monotonic() - begun
        idle, own = daemon.memory_kb(), daemon.memory_kb("RssAnon")
        held = self.hold(daemon, turn.point["connections"])
        daemon.stop()
        client = load(self.stage.place, "command", {"txns": 20}, 0,
                      command=(REFD, "version"))
        return {"ready_ms": ready * 1000, "idle_kb": idle, "own_kb": own,
                "held_kb": held,
                "client_ms": client["p50_us"] / 1000, **self.hook()}

    def hold(self, daemon, connections):
        """The daemon's memory with that many connections that have all
        been answered."""
        many = subprocess.Popen(
            [os.path.join(HELPER, "many_conns"), daemon.socket,
             str(connections)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in many.stdout:
            if "answered" in line:
                break
        if line.split()[0] != str(connections):
            raise RuntimeError(f"of {connections} connections: {line}")
        memory = daemon.memory_kb()
        many.stdin.close()
        many.wait()
        return memory

    def hook(self):
        """What is longer than a push to a hook that writes nothing, with the
        update, and without the daemon's time for it: the median of some
        pairs."""
        more, alone = [], []
        for _ in range(5):
            took = {}
            for name in ("hook only", "refd"):
                one = Pusher(self.stage, name)
                turn = one.prepare({"refs": 1})
                time.sleep(0.15)
                one.warm(turn)
                before = self.stage.daemon.stats()["total_us_sum"]
                took[name] = one.measure(turn)["p50_us"] / 1000
                daemon_us = self.stage.daemon.stats()["total_us_sum"] - before
                one.check(turn)
            more.append(took["refd"] - took["hook only"])
            alone.append(more[-1] - daemon_us / 1000)
        return {"hook_ms": statistics.median(more),
                "hook_alone_ms": statistics.median(alone)}

    def check(self, turn):
        pass


def run(bench, rounds):
    seconds = bench.size(full=1.5, quick=1, tiny=0.2)
    connections = bench.size(full=9900, quick=2000, tiny=20)
    for column, delay_us in COLUMNS.items():
        bench.place.renew()
        stage = Stage(bench.place, delay_us,
                      counted=LongestTurn(bench.place))
        point = [{"seconds": seconds}]
        rounds.run(point, [Single(stage, "one update", "refd"),
                           Stall(stage, "ping beside a storm", "refd")],
                   column=column)
    bench.place.renew()
    rounds.run([{"connections": connections}],
               [Starts(Stage(bench.place, COLUMNS[CHEAP]), "starts", "refd")])
