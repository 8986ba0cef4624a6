#!/usr/bin/env python3
"""Lets writers of every kind change random refs, and compares the feed with
the refs on disk whenever all writers pause.

	everybody.py REFD WORK CHANGES SEED JGIT REPO...

WORK is a repository whose commits are the values. Every REPO has these commits,
is served by the daemon, and has the gate. CHANGES is the number of changes that
succeed. JGIT is the command of the program that uses JGit. WRITERS in the
environment selects kinds of writers.

Looks for changes by writers without hooks, meanwhile and at each
quiescent point.

At every quiescent point:
	refs	following the feed from its beginning leads to the refs on disk
	acks	the feed has every change that refd acknowledged
	chain	the old value of a change is the new value of the change before,
		or was written by git itself a moment before. A deletion may be
		told twice (docs/decisions/020-gate.md, Known limits). libgit2
		reads packed-refs before it locks the file, and so brings
		deleted refs back

Prints lines "ok NAME", "not ok NAME: WHY", and counts ("# ..."). Standard error
has the writes and the changes of a ref that differs."""
import collections
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time

import writers
from writers import NULL, run

REFD, WORK, CHANGES, SEED, JGIT, *REPOS = sys.argv[1:]
THREADS = 6
MOST = 250  # changes in a batch
BUSY = 75  # the exit status: try again later
MARKER = "refs/marker/0"
SYMBOLIC = "refs/marker/symbolic"


class Feed(threading.Thread):
    """Follows `refd watch` from the beginning. The state of a ref is its id, or
    "ref: TARGET"."""

    def __init__(self):
        super().__init__(daemon=True)
        self.at = {repo: {} for repo in REPOS}
        self.deleted = {}
        self.count = self.seen = self.twice = 0
        self.moved = threading.Condition()
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [REFD, "watch", "--since", "0", "--json"], text=True,
            stdout=subprocess.PIPE)
        self.begin()

    def begin(self):
        """Of a round."""
        self.told = collections.Counter()
        self.changes, self.breaks, self.gaps = [], [], []

    def run(self):
        for line in self.process.stdout:
            self.take(json.loads(line))

    def take(self, change):
        if "gap" in change:
            self.gaps.append(change)
            return
        repo, ref = change["repo"], change["ref"]
        old, new = change.get("old", ""), change.get("new", NULL)
        if "target" in change:
            new = "ref: " + change["target"]
        self.count += 1
        self.seen += change.get("origin") == "seen"
        self.changes.append((change["lsn"], repo, ref, old, new))
        self.told[repo, ref, new] += 1
        before = self.at[repo].pop(ref, NULL)
        if before == NULL and old == self.deleted.get((repo, ref)):
            self.twice += new == NULL
        elif old != before and not before.startswith("ref:"):
            self.breaks.append((repo, ref, old))
        if new == NULL:
            self.deleted[repo, ref] = old
        else:
            self.at[repo][ref] = new
        if ref == MARKER:
            with self.moved:
                self.moved.notify()

    def reaches(self, repo, value):
        with self.moved:
            return self.moved.wait_for(
                lambda: self.at[repo].get(MARKER) == value, 60)


class Everybody:
    """The writers, their counts, and the notes of a round."""

    def __init__(self):
        self.refd, self.work = REFD, WORK
        said = run("git", "-C", WORK, "rev-list", "--all")
        self.values = itertools.cycle(said.stdout.split())
        self.kinds = writers.kinds(JGIT)
        self.names = os.environ.get("WRITERS", " ".join(self.kinds)).split()
        self.lock = threading.Lock()
        self.wanted, self.done = collections.Counter(), collections.Counter()
        self.housekeeping = 0
        self.begin()

    def begin(self):
        """Of a round."""
        self.acked, self.by_git = collections.Counter(), set()
        self.writes, self.errors = [], []

    def work_until(self, target, seed):
        changes = writers.Changes(seed, self.values)
        luck = random.Random(seed + "luck")
        while self.done.total() < target:
            repo = luck.choice(REPOS)
            if luck.random() < 0.02:
                writers.keep_house(self, repo, luck.random())
                with self.lock:
                    self.housekeeping += 1
                continue
            name = luck.choice(self.names)
            batch = changes.batch(repo, MOST)
            began = time.time()
            who, done = self.kinds[name](self, repo, batch, luck.random())
            with self.lock:
                self.note(name, repo, batch, who, set(done))
                self.writes += [(began, time.time(), name, repo, *change,
                                 change[0] in done) for change in batch]

    def note(self, name, repo, batch, who, done):
        self.wanted[name] += len(batch)
        self.done[name] += len(done)
        new = [(repo, c[0], c[2]) for c in batch if c[0] in done]
        if who == "git" or name in ("pygit2", "jgit"):
            # Both may report an error for a change that took place.
            self.by_git.update((repo, c[0], c[2]) for c in batch)
        elif name == "push":
            # A push may delete a ref that is already deleted.
            self.acked.update(n for n in new if n[2] != NULL)
        else:
            self.acked.update(new)

    def round(self, number, target):
        def body(seed):
            try:
                self.work_until(target, seed)
            except Exception as error:  # pylint: disable=broad-except
                self.errors.append(repr(error))
                raise
        threads = [threading.Thread(
            target=body, args=("%s %d %d" % (SEED, number, i),))
                   for i in range(THREADS)]
        for thread in threads:
            thread.start()
        over = threading.Event()
        looking = threading.Thread(target=self.look_meanwhile, args=(over,))
        looking.start()
        for thread in threads:
            thread.join()
        over.set()
        looking.join()

    def look_meanwhile(self, over):
        for repo in itertools.cycle(REPOS):
            if over.wait(0.3):
                return
            self.look(repo)

    def look(self, repo):
        """The daemon looks for changes by writers without hooks. The first look
        records nothing. Looks that the gate has started can keep this one out
        for a while, on a slow machine most of all."""
        for _ in range(100):
            said = run(REFD, "look", repo)
            if said.returncode != BUSY:
                break
            time.sleep(0.1)
        if said.returncode != 0:
            self.errors.append(said.stderr)

    def mark(self, repo, number):
        """The last changes before a comparison: through refd, so that the feed
        has them behind all others."""
        value = next(self.values)
        text = "option no-deref\nsymref-update %s refs/keep/%d\n" \
            "update %s %s\n" % (SYMBOLIC, number % 2, MARKER, value)
        said = run(REFD, "update", "--git-dir", repo, "--stdin", text=text)
        if said.returncode != 0:
            self.errors.append(said.stderr)
        return value


def on_disk(repo):
    said = run("git", "-C", repo, "for-each-ref",
               "--format=%(refname) %(objectname) %(symref)")
    found = {}
    for line in said.stdout.splitlines():
        ref, value, *target = line.split()
        found[ref] = "ref: " + target[0] if target else value
    return found


def explain(place, feed, repo, ref):
    for write in place.writes:
        if write[3:5] == (repo, ref):
            print("write %.3f-%.3f %s %s %s %s %s %s" % write, file=sys.stderr)
    for change in feed.changes:
        if change[1:3] == (repo, ref):
            print("change %d %s %s %s %s" % change, file=sys.stderr)


def compare(place, feed, number):
    """Reports about a quiescent point. Returns the number of refs, and of
    values of git that were overtaken."""
    differ, compared = [], 0
    for repo in REPOS:
        place.look(repo)
        if not feed.reaches(repo, place.mark(repo, number)):
            place.errors.append("the feed stays behind")
        disk, fed = on_disk(repo), feed.at[repo]
        compared += len(disk)
        differ += [(repo, ref, disk.get(ref), fed.get(ref))
                   for ref in disk.keys() | fed.keys()
                   if disk.get(ref) != fed.get(ref)]
    lacking = list(place.acked - feed.told)
    broken = [b for b in feed.breaks if b not in place.by_git]
    for name, wrong in (
            ("the feed leads to the refs", differ),
            ("the feed has all that refd acknowledged", lacking),
            ("a change begins where the last one ended", broken),
            ("no gap in the feed", feed.gaps),
            ("no error", place.errors)):
        name = "point %d: %s" % (number, name)
        print("not ok %s: %s" % (name, wrong[:5]) if wrong else "ok " + name,
              flush=True)
    for wrong in (differ + lacking + broken)[:1]:
        explain(place, feed, *wrong[:2])
    return compared, len(feed.breaks)


def main():
    began = time.time()
    total = int(CHANGES)
    rounds = min(40, max(10, total // 10000))
    feed, place = Feed(), Everybody()
    feed.start()
    for repo in REPOS:
        place.look(repo)
    compared = overtaken = 0
    for number in range(1, rounds + 1):
        place.round(number, total * number // rounds)
        refs, breaks = compare(place, feed, number)
        compared += refs
        overtaken += breaks
        place.begin()
        feed.begin()
    for name in place.names:
        print("# %-10s %7d changes of %7d requested" % (
            name, place.done[name], place.wanted[name]))
    print("# %-10s %7d changes of %7d requested, %d times housekeeping" % (
        "all", place.done.total(), place.wanted.total(), place.housekeeping))
    print("# %d changes in the feed, %d of them seen; %d begin at values that "
          "the feed lacks, %d deletions told twice" % (
              feed.count, feed.seen, overtaken, feed.twice))
    print("# %d refs compared at %d points, %d s" % (
        compared, rounds, time.time() - began))
    # A watch waits for a daemon that has gone.
    feed.process.terminate()
    feed.process.wait()


main()
