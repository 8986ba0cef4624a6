"""What a contestant asks of the kernel, counted by strace and not timed: the
calls of the command and everything it starts, and of the daemon; and its
flushes, by a hand on each."""
import os
import shutil
import signal
import time

from contestants import GitCommand, RefdCommand, ReftableCommand, Stage
from place import FlushCount, Unavailable
from push import NAMES, Pusher
from rounds import AGE_S

# In which a process does nothing but wait, as often as the clock has it.
IDLE = ("restart_syscall", "exit", "exit_group")


def parse(path):
    """What strace -c wrote: calls by name."""
    calls = {}
    with open(path) as f:
        for line in f:
            words = line.split()
            if len(words) >= 5 and words[3].isdigit() and \
                    words[-1] not in ("total", *IDLE):
                calls[words[-1]] = int(words[3])
    return calls


def add(one, other):
    return {k: one.get(k, 0) + other.get(k, 0) for k in {**one, **other}}


def is_watched(pid, tracer):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            if f"TracerPid:\t{tracer}\n" not in f.read():
                return False
    return True


class Watch:
    """Counts what a process that runs already does, with all its threads."""

    def __init__(self, place, pid):
        self.place = place
        self.path = os.path.join(place.fresh(), "calls")
        self.tracer = place.start("strace", "-f", "-c", "-o", self.path,
                                  "-p", str(pid), name="strace")
        for _ in range(6000):
            if is_watched(pid, self.tracer.pid):
                return
            time.sleep(0.01)
        raise Unavailable("strace may not trace")

    def stop(self):
        self.place.end(self.tracer, signal.SIGINT)
        return parse(self.path)


def count_command(place, command, path):
    """The calls of a command and its children."""
    out = os.path.join(place.fresh(), "calls")
    with open(path) as stdin:
        place.run("strace", "-f", "-c", "-o", out, *command, stdin=stdin)
    return parse(out)


def ready(stage, one, point):
    turn = one.prepare(point)
    time.sleep(AGE_S)
    one.warm(turn)
    stage.place.settle()
    return turn, *one.whole(turn)


def over(stage, one, turn, point):
    turn.parts.append(({"done": 1}, point))
    one.check(turn)
    one.leave(turn)


def count_flushes(stage, flushes, one, point):
    """Not traced, which makes a daemon so slow that a batch has less."""
    turn, command, path = ready(stage, one, point)
    before = flushes.now()
    with open(path) as stdin:
        stage.place.run(*command, env=flushes.environ(stage.place.env),
                        stdin=stdin)
    nr = flushes.now() - before
    over(stage, one, turn, point)
    return nr


def count_calls(stage, one, point):
    turn, command, path = ready(stage, one, point)
    watch = Watch(stage.place, stage.daemon.process.pid) \
        if one.wants_age else None
    client = count_command(stage.place, command, path)
    daemon = watch.stop() if watch else {}
    over(stage, one, turn, point)
    return client, daemon


def count(stage, flushes, one, point):
    nr = count_flushes(stage, flushes, one, point)
    client, daemon = count_calls(stage, one, point)
    both = add(client, daemon)
    return {"flushes": nr, "calls": sum(both.values()),
            "calls_each": sum(both.values()) / point["refs"],
            "daemon_calls": sum(daemon.values()), "by_name": both}


def run(bench, rounds):
    """For B1 and B2, beside their times."""
    if not shutil.which("strace"):
        raise Unavailable("no strace")
    sizes = bench.sizes(full=(1, 100, 1000), quick=(100,), tiny=(3,))
    bench.place.renew()
    flushes = FlushCount(bench.place)
    stage = Stage(bench.place, 0, counted=flushes)
    pushers = [Pusher(stage, name) for name in NAMES]
    commands = [GitCommand(stage, "git", "command", False),
                GitCommand(stage, "git durable", "command", True),
                ReftableCommand(stage, "reftable durable", "command"),
                RefdCommand(stage, "refd", "command")]
    for of, contestants in (("B1", pushers), ("B2", commands)):
        for one in contestants:
            for n in sizes:
                try:
                    got = count(stage, flushes, one, {"refs": n})
                except Unavailable as why:
                    rounds.missing[one.name] = str(why)
                    continue
                rounds.results.append({
                    "workload": "counts", "of": of, "contestant": one.name,
                    "point": {"refs": n}, "runs": [got]})
