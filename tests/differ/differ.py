#!/usr/bin/env python3
"""git update-ref in one repository, refd update in its copy: must be alike.

    differ.py [--seconds S | --seeds A-B | --seed N] [--workers N]
              [--git PATH] [--dir DIR] [--shrink N]
              [--seen-only TEXT]

Random transactions, with random things in their way, are done by both, and
after each everything that can be seen is compared: status and output, every
file that has to do with refs, its mode, reflogs to the byte. README.md here
says more.

--seed N     that one case, with all it does
--seeds A-B  those
--seconds S  as many as can be had, from a random one on, which is printed
--git PATH   another git to compare with
--shrink N   how many differences are made small and printed as a script
"""
import argparse
import multiprocessing
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import case as cs
import excuses
import shrink
from objects import REFS, Objects
from pair import Pair

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
STEPS = 30


class Arena:
    """The programs, the place and the daemon that all pairs share."""

    def __init__(self, opt):
        parent = opt.dir or ("/dev/shm" if os.access("/dev/shm", os.W_OK)
                             else None)
        self.path = tempfile.mkdtemp(prefix="differ.", dir=parent)
        os.mkdir(self.path + "/home")
        self.git = opt.git
        self.refd = os.path.join(BUILD, "bin/refd")
        self.env = self.environment(opt)
        version = subprocess.run((opt.git, "version"), check=True,
                                 stdout=subprocess.PIPE).stdout.decode()
        self.version = version.strip()
        self.git_version = tuple(map(int, re.findall(
            r"\d+", self.version)[:2]))
        # What calls itself so is the development head after 2.55.
        if re.search(r"2\.53\.0\.\d", version):
            self.git_version = (2, 56)
        self.features = cs.Features(self.git_version)
        # refd has the words of 2.39 and of 2.55.
        self.words = not (2, 46) <= self.git_version < (2, 55) and \
            REFS == "files"
        self.options = ["--compat=2.39"] \
            if self.git_version < (2, 46) else []
        self.objects = Objects(opt.git, self.env, self.path + "/objects")
        self.daemon = None

    def environment(self, opt):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("GIT_", "REFD_", "XDG_"))}
        path = env.get("PATH", "/usr/bin:/bin")
        if os.sep in opt.git:
            path = os.path.dirname(os.path.abspath(opt.git)) + ":" + path
        env.update(HOME=self.path + "/home", LC_ALL="C", TZ="UTC", PATH=path,
                   GIT_CONFIG_NOSYSTEM="1",
                   REFD_SOCKET=self.path + "/refd.sock",
                   GIT_AUTHOR_NAME="A U Thor",
                   GIT_AUTHOR_EMAIL="author@example.com",
                   GIT_COMMITTER_NAME="C O Mitter",
                   GIT_COMMITTER_EMAIL="committer@example.com",
                   GIT_COMMITTER_DATE="1600000000 +0000")
        return env

    def start(self):
        with open(self.path + "/daemon.log", "ab") as log:
            self.daemon = subprocess.Popen(
                [self.refd, "daemon", "--socket", self.path + "/refd.sock",
                 "--state", self.path + "/state", "--root", self.path],
                env=self.env, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL)
        subprocess.run([self.refd, "ping", "--wait", "120"], env=self.env,
                       check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        """Its status, and what it complained of."""
        if not self.daemon:
            return 0, []
        status = self.daemon.poll()
        if status is None:
            self.daemon.terminate()
            status = self.daemon.wait(60)
        with open(self.path + "/daemon.log", encoding="utf-8",
                  errors="replace") as log:
            lines = [line for line in log
                     if re.search(r" error: |Sanitizer|runtime error", line)]
        return status, lines[-20:]

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


# ---- one case ----

def random_case(seed, arena):
    """A setup and a function that makes the next step."""
    rng = random.Random(seed)
    setup = cs.make_setup(rng, arena.objects)
    chooser = cs.Chooser(rng, arena.objects, arena.features, setup)
    return setup, chooser.step


def run_case(arena, root, setup, next_step, until, on_step=None):
    """Steps until NEXT_STEP has none left, or UNTIL says of the differences
    of one that it is enough. Returns (steps, differences)."""
    pair = Pair(arena, root, setup)
    steps, found = [], []
    try:
        while True:
            step = next_step(pair.state)
            if step is None:
                break
            steps.append(step)
            diffs = pair.perform(step)
            for diff in diffs:
                diff.excuse = excuses.excuse(diff, pair, diffs)
            differs = any(d.in_files for d in diffs)
            diffs = collapse(diffs)
            for diff in diffs:
                diff.described = indent(shrink.describe(step) + "\n" +
                                        diff.text)
            if on_step:
                on_step(pair, step, diffs)
            if differs:
                pair.align()
            found += diffs
            if until(diffs):
                return steps, found
        for diff in pair.health():
            diff.described = indent(diff.text)
            found.append(diff)
    finally:
        pair.remove()
    return steps, found


def collapse(diffs):
    """What differs in one step has one cause: the first names it."""
    excused = list({d.excuse: d for d in diffs if d.excuse}.values())
    rest = [d for d in diffs if not d.excuse]
    for other in rest[1:]:
        rest[0].text += "\n" + other.text
        rest[0].in_files |= other.in_files
    return excused + rest[:1]


def indent(text):
    return "\n".join("\t" + line[:300] for line in text.split("\n")[:12])


def run_seed(arena, root, seed, on_step=None):
    """What is left after excuses; the case ends where files differ."""
    setup, choose = random_case(seed, arena)
    left = [STEPS]

    def next_step(state):
        left[0] -= 1
        return choose(state) if left[0] >= 0 else None

    def until(diffs):
        return any(d.in_files and not d.excuse for d in diffs)

    steps, found = run_case(arena, root, setup, next_step, until, on_step)
    return setup, steps, found


# ---- many ----

def work(arena, number, seeds, deadline, out):
    done = steps = 0
    for i, seed in enumerate(seeds):
        if deadline and time.monotonic() > deadline:
            break
        # A few names, used again and again by other repositories.
        root = "%s/w%d.%d" % (arena.path, number, i % 4)
        try:
            _, made, found = run_seed(arena, root, seed)
        except Exception as error:  # a fault of this program
            out.put(("broken", seed, repr(error)))
            raise
        done += 1
        steps += len(made)
        for diff in found:
            if diff.excuse:
                out.put(("excused", seed, diff.excuse))
            else:
                out.put(("found", (seed, diff.described), diff.kind))
    out.put(("done", done, steps))


class Tally:
    def __init__(self):
        self.found = {}
        self.excused = {}
        self.cases = self.steps = 0
        self.broken = []

    def take(self, what, a, b):
        if what == "found":
            seed, text = a
            if b not in self.found:
                print("seed %d: %s\n%s" % (seed, b, text), flush=True)
            self.found.setdefault(b, []).append(seed)
        elif what == "excused":
            self.excused[b] = self.excused.get(b, 0) + 1
        elif what == "broken":
            self.broken.append((a, b))
        else:
            self.cases += a
            self.steps += b

    def print(self, seconds):
        for kind, seeds in sorted(self.found.items(),
                                  key=lambda item: -len(item[1])):
            print("%5d times, seed %d: %s" % (len(seeds), seeds[0], kind))
        for reason, times in sorted(self.excused.items()):
            print("%5d times on purpose: %s" % (times, reason))
        for seed, error in self.broken:
            print("seed %d broke this program: %s" % (seed, error))
        print("%d cases, %d steps, %.0f steps a second; %d differences of "
              "%d kinds" % (self.cases, self.steps,
                            self.steps / max(seconds, 0.001),
                            sum(map(len, self.found.values())),
                            len(self.found)))


def run_many(arena, opt, seeds):
    out = multiprocessing.Queue()
    begun = time.monotonic()
    deadline = begun + opt.seconds if opt.seconds else None
    workers = [multiprocessing.Process(
        target=work, args=(arena, n, seeds[n::opt.workers], deadline, out))
        for n in range(opt.workers)]
    for worker in workers:
        worker.start()
    tally = Tally()
    while any(w.is_alive() for w in workers) or not out.empty():
        try:
            tally.take(*out.get(timeout=0.2))
        except queue.Empty:
            pass
        if arena.daemon.poll() is not None:
            print("the daemon ended with %d" % arena.daemon.returncode)
            for worker in workers:
                worker.terminate()
            break
    for worker in workers:
        worker.join()
    tally.print(time.monotonic() - begun)
    return tally


def run_one(arena, seed):
    def on_step(pair, step, diffs):
        print(shrink.describe(step))
        for diff in diffs:
            print("    " + ("on purpose: %s" % diff.excuse if diff.excuse
                            else "DIFFERENT: " + diff.kind))
            print(indent(diff.text))

    _, _, found = run_seed(arena, arena.path + "/one", seed, on_step)
    return sorted({d.kind for d in found if not d.excuse})


def options():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--git", default="git")
    parser.add_argument("--dir")
    parser.add_argument("--shrink", type=int, default=5)
    return parser.parse_args()


def main():
    opt = options()
    arena = Arena(opt)
    print("# compared with %s%s" % (arena.version, "" if arena.words else
        ", but for its words"))
    bad = True
    try:
        arena.start()
        if opt.seed is not None:
            found = {kind: [opt.seed] for kind in run_one(arena, opt.seed)}
            bad = bool(found)
        else:
            if opt.seeds:
                first, last = map(int, opt.seeds.split("-"))
            else:
                first = random.SystemRandom().randrange(10 ** 9)
                last = first + 10 ** 7
                print("# from seed %d on" % first)
            tally = run_many(arena, opt, range(first, last + 1))
            found, bad = tally.found, bool(tally.found or tally.broken)
        for kind, seeds in list(found.items())[:opt.shrink]:
            shrink.shrink_and_print(arena, seeds[0], kind, run_case, run_seed)
    finally:
        status, complaints = arena.stop()
        arena.remove()
    for line in complaints:
        print("daemon: " + line.rstrip())
    if status != 0:
        print("the daemon ended with %d" % status)
    return 1 if bad or status != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
