"""A gate on counts, never on time: what a fixed piece of work costs refd in
flushes, system calls and instructions, against tests/bench/limits.

    gate.py DIR [LIMITS]

One line for each, as tests/scenario has them. What is far below its limit is
said too: then the limit wants lowering."""
import os
import shutil
import sys
import time

from contestants import Stage
from counts import Watch, count_command, count_flushes
from place import HELPER, REFD, Daemon, FlushCount, Place, load
from push import Pusher
from rounds import AGE_S

CONFIG = "[checkpoint]\n\tinterval = 1h\n"
LOW = 0.7
# Other work of the daemon can only add to a count, and adds more on a slow
# machine. Therefore the least count of several turns is taken, and more turns
# follow as long as a count is over its limit.
TURNS = 4
WORK_TURNS = 2
MOST_TURNS = 16


def work(stage, daemon, repo, txns, refs, action, prefix):
    """Atomic, so that it is one batch however slow this machine is."""
    got = load(stage.place, "refd",
               {"txns": txns, "refs": refs, "action": action}, 0, "--atomic",
               "--path", daemon.socket, "--repo", repo, "--prefix", prefix,
               *(w for oid in stage.oids[:2] for w in ("--oid", oid)))
    if got["done"] != txns:
        raise RuntimeError(f"{action} of {refs} refs failed")


SHAPES = {"single-creation": (40, 1, "create", "refs/heads/one"),
          "400-creations": (1, 400, "create", "refs/heads/many"),
          "400-moves": (2, 400, "move", "refs/heads/move"),
          "400-deletions": (1, 400, "delete", "refs/heads/many")}


def keep_least(measured, name, value):
    measured[name] = min(value, measured.get(name, value))


def kernel_turn(stage, flushes, turn, measured):
    """One turn: flushes of a batch, then calls for a ref. A daemon under
    strace is slow, so that no run counts both."""
    daemon = stage.daemon
    for way in ("flushes", "calls"):
        repo = stage.repo()
        time.sleep(AGE_S)
        daemon.warm(repo, stage.oids[0])
        for name, shape in SHAPES.items():
            before = flushes.now()
            watch = Watch(stage.place, daemon.process.pid) \
                if way == "calls" else None
            work(stage, daemon, repo, *shape)
            if watch:
                value = sum(watch.stop().values()) / (shape[0] * shape[1])
            else:
                value = (flushes.now() - before) / shape[0]
            keep_least(measured, f"{way}-{name}", value)
    keep_least(measured, "calls-refd-update", sum(count_command(
        stage.place, (REFD, "update", "-C", repo, "--socket", daemon.socket,
                      f"refs/heads/by{turn}", stage.oids[0]),
        "/dev/null").values()))


def push_turn(stage, flushes, measured):
    """A push of one branch and one new commit has more flushes than a push to a
    hook that only says ok."""
    refd, hook = (count_flushes(stage, flushes, Pusher(stage, name),
                                {"refs": 1}) for name in ("refd", "hook only"))
    keep_least(measured, "flushes-push", refd - hook)


def kernel(stage, flushes, limits):
    measured = {}
    for turn in range(MOST_TURNS):
        kernel_turn(stage, flushes, turn, measured)
        push_turn(stage, flushes, measured)
        if turn + 1 >= WORK_TURNS and all(
                value <= limits.get(name, value)
                for name, value in measured.items()):
            break
    return measured


class Grind:
    """A daemon under callgrind, which is asked now and then for what it
    counted since it was asked before."""

    def __init__(self, stage):
        place = stage.place
        path = place.fresh()
        self.place = place
        self.out = os.path.join(path, "out")
        self.pipe = os.path.join(path, "vgdb")
        self.nr = 0
        self.daemon = Daemon.__new__(Daemon)
        self.daemon.place = place
        self.daemon.socket = os.path.join(place.path, f"grind{place.count}")
        self.process = place.start(
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.out}",
            f"--vgdb-prefix={self.pipe}",
            os.path.join(os.path.dirname(REFD), "refd-daemon"), "--socket",
            self.daemon.socket, "--state", os.path.join(path, "state"),
            "--root", place.top, "--config", stage.daemon.config,
            name="callgrind", env=dict(place.env, LD_PRELOAD=os.path.join(
                HELPER, "preload_openat.so")))

    def counted(self):
        self.nr += 1
        self.place.run("vgdb", f"--vgdb-prefix={self.pipe}",
                       f"--pid={self.process.pid}", "dump")
        with open(f"{self.out}.{self.nr}") as f:
            return sum(int(line.split()[1]) for line in f
                       if line.startswith("totals:"))


def instructions(stage, grind, limits):
    grind.daemon.ask("ping", "--wait", "300")
    measured = {}
    for name in ("single-creation", "400-creations"):
        txns, refs, action, prefix = SHAPES[name]
        counts = []
        most = limits.get(f"instructions-{name}", 0)
        for again in range(MOST_TURNS):
            if again >= TURNS and min(counts) <= most:
                break
            # Each turn begins without packed-refs.
            repo = stage.repo()
            time.sleep(AGE_S)
            grind.daemon.warm(repo, stage.oids[0])
            grind.counted()
            work(stage, grind.daemon, repo, txns, refs, action, prefix)
            counts.append(grind.counted() / (txns * refs))
        measured[f"instructions-{name}"] = min(counts)
    return measured


def read_limits(path):
    with open(path) as f:
        rows = (line.split() for line in f if line[0] not in "#\n")
        return {name: float(limit) for name, limit in rows}


def judge(measured, limits):
    good = True
    for name, value in measured.items():
        if name not in limits:
            print(f"not ok {name}: {value:.1f}, and tests/bench/limits has "
                  "none")
            good = False
        elif value > limits[name]:
            print(f"not ok {name}: {value:.1f}, over {limits[name]:g}")
            good = False
        else:
            low = value < LOW * limits[name] and value > 0
            hint = "; the limit wants lowering" if low else ""
            print(f"ok {name}: {value:.1f} of {limits[name]:g}{hint}")
    return good


def main():
    limits = read_limits(sys.argv[2] if len(sys.argv) > 2 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "limits"))
    place = Place(sys.argv[1], "none", 0)
    flushes = FlushCount(place)
    good = True
    try:
        stage = Stage(place, 0, CONFIG, flushes)
        # It takes its time to start.
        grind = Grind(stage) if shutil.which("vgdb") else None
        if shutil.which("strace"):
            good = judge(kernel(stage, flushes, limits), limits)
        else:
            print("skip counts-calls: no strace")
        if grind:
            good = judge(instructions(stage, grind, limits), limits) and good
        else:
            print("skip counts-instructions: no valgrind")
    finally:
        place.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
