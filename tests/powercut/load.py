"""Those who work in the repositories until the power goes.

Each actor is a thread that owns its families, so the history of each has one
order; they meet in batches, in packed-refs and on the disk. What was
acknowledged is written down here, outside of what is cut, under the gate: once
that is shut nothing counts as acknowledged any more.
"""
import os
import random
import subprocess
import threading
import time

import ledger
import look
import wire
from ledger import ACKED, REFUSED, SEEN, UNKNOWN

# Codes that may come any time, of a disk that fails or a lock that is held.
MAY_BE = {"locked", "busy", "deadline", "aborted", "io", "nospace", "norepo"}


class Gate:
    """Open while the power is on."""

    def __init__(self):
        self.lock = threading.Lock()
        self.shut = False
        self.stopping = threading.Event()
        self.acked = 0
        self.moment = 0
        self.reached = threading.Event()
        self.findings = []

    def note(self, steps, status):
        with self.lock:
            for step in steps:
                step.family.end(step, UNKNOWN if self.shut else status)
            if not self.shut and status in (ACKED, SEEN):
                self.acked += len(steps)
                if self.acked >= self.moment:
                    self.reached.set()

    def close(self):
        with self.lock:
            self.shut = True
        self.stopping.set()

    def complain(self, text):
        with self.lock:
            if not self.shut:
                self.findings.append(("said", text))


class Actor(threading.Thread):
    """ROUND is the round that it works in."""

    def __init__(self, name, repo, place, seed):
        super().__init__(name=name, daemon=True)
        self.repo = repo
        self.place = place
        self.rng = random.Random("%s %s" % (seed, name))
        self.families = []
        self.wire = None
        self.count = 0
        self.gate = None

    # A thread runs once, an actor works in several rounds.
    def again(self, gate):
        self.gate = gate
        thread = threading.Thread(target=self.work, name=self.name,
                                  daemon=True)
        thread.start()
        return thread

    def work(self):
        try:
            while not self.gate.stopping.is_set() and self.turn():
                pass
        finally:
            if self.wire:
                self.wire.close()
                self.wire = None

    def turn(self):
        """One thing; False when there is nothing more to do."""
        raise NotImplementedError

    def nap(self, low, high):
        self.gate.stopping.wait(self.rng.uniform(low, high))
        return True

    def tag(self):
        self.count += 1
        return "%s.%d" % (self.name, self.count)

    def value(self, *but):
        while True:
            oid = self.rng.choice(self.place.oids)
            if oid not in but:
                return oid

    def open_families(self, most):
        rest = [f for f in self.families if f.is_open()]
        return self.rng.sample(rest, min(len(rest),
                                         self.rng.randint(1, most)))

    def next_state(self, family):
        """What to make of a family: each ref moves, goes, comes or stays."""
        kind = self.rng.random()
        after = {}
        for name in family.names:
            now = family.now[name]
            if now is None:
                after[name] = self.value()
            elif kind < 0.2 and name != "refs/heads/main":
                after[name] = None
            elif kind < 0.35:
                after[name] = now
            elif kind < 0.45 and family.steps:
                # Back to where it was.
                after[name] = family.steps[-1].before[name] or now
            else:
                after[name] = self.value(now)
        if len(family.names) > 1 and self.rng.random() < 0.2:
            # Some go while others stay.
            for name in self.rng.sample(family.names,
                                        len(family.names) // 2):
                after[name] = None if family.now[name] else self.value()
        return after

    def to_the_future(self, families):
        """The clock was ahead when these loose refs were written: whatever
        comes next is older by its time. No writer waits for them, so nobody
        takes this for a change."""
        if look.REFS == "reftable" or self.rng.random() > 0.15:
            return
        then = time.time() + self.rng.choice((3600, 30 * 86400))
        for path in ["%s/%s" % (f.repo, n) for f in families
                     for n in f.names]:
            with self.gate.lock:
                if self.gate.shut:
                    return
                try:
                    os.utime(path, (then, then))
                except OSError:
                    # The ref is packed or absent, or its disk is gone.
                    continue

    # ---- by refd ----

    def transact(self, families_and_states, atomic):
        """One transaction of the protocol; {family: after}."""
        self.to_the_future(f for f, _ in families_and_states)
        tag = self.tag()
        durability = self.place.stronger(self.rng)
        updates = []
        for family, after in families_and_states:
            updates += wire_updates(self.rng, family, after)
        txn = wire.Transaction(self.repo, updates, tag, atomic, durability)
        promised = durability is not None or self.place.promises
        steps = [family.begin(after, tag, False, promised, txn.txid)
                 for family, after in families_and_states]
        try:
            if not self.wire:
                self.wire = wire.Wire(self.place.socket)
            codes = self.wire.transact(txn)
        except (wire.Gone, OSError):
            # The disk that is looked at may be gone, too.
            self.wire = None
            self.gate.note(steps, UNKNOWN)
            return self.nap(0.005, 0.02)
        for step in steps:
            self.answered(step, codes)
        return True

    def answered(self, step, codes):
        if None in codes:
            # All of it was turned away.
            self.gate.note([step], REFUSED)
            if codes[None] not in ("status busy", "status norepo"):
                self.gate.complain("%s: %s" % (step, codes[None]))
            return
        got = {codes.get(n) for n in step.family.names if n in codes}
        if got == {"ok"}:
            self.gate.note([step], ACKED if step.promised else SEEN)
        elif "unknown" in got:
            self.gate.note([step], UNKNOWN)
        else:
            self.gate.note([step], REFUSED)
            if not got <= MAY_BE | may_be_back(step.family) | {"ok"} or \
                    ("ok" in got and len(step.family.names) > 1):
                self.gate.complain("%s was answered %s; %s" % (
                    step, sorted(map(str, got)), step.family.told()))

    # ---- by git, or by refd's own programs ----

    def spawn(self, argv, stdin=None, by_git=False):
        """(status, standard error); a negative status: it was killed."""
        with self.gate.lock:
            if self.gate.shut:
                return -1, "shut"
            process = self.place.popen(argv, by_git)
        out, err = process.communicate((stdin or "").encode())
        return process.returncode, (err + out).decode(errors="replace")

    def settle(self, steps, status, said):
        if status == 0:
            self.gate.note(steps, ACKED if steps[0].promised else SEEN)
        elif "outcome unknown" in said:
            # git push calls this "[remote rejected]" as well.
            self.gate.note(steps, UNKNOWN)
        elif status > 0 and any(w in said for w in (
                "cannot lock ref", "Unable to create", "[remote rejected]",
                "is at ", "not served")):
            self.gate.note(steps, REFUSED)
        else:
            self.gate.note(steps, UNKNOWN)

    def update_ref(self, families_and_states, by_git):
        """git update-ref --stdin, or refd update --stdin."""
        tag = self.tag()
        lines, steps = [], []
        for family, after in families_and_states:
            lines += stdin_lines(self.rng, family, after)
            steps.append(family.begin(
                after, tag, by_git,
                self.place.promises and (not by_git or self.place.plain)))
        program = [self.place.git, "-C", self.repo, "update-ref"] if by_git \
            else [self.place.refd, "update", "-C", self.repo]
        status, said = self.spawn(program + ["-m", tag, "--stdin"],
                                  "\n".join(lines) + "\n", by_git)
        self.settle(steps, status, said)
        return True


def may_be_back(family):
    """Where a disk fails to sync refd writes anew what git had deleted:
    absent may be lost as well."""
    return {"exists"} if any(
        s.by_git and s.status == SEEN and None in s.after.values()
        for s in family.steps) else set()


def wire_updates(rng, family, after):
    for name in sorted(family.names, key=lambda n: family.now[n] is None):
        now, new = family.now[name], after[name]
        old = now if now and rng.random() < 0.7 else ""
        if now is None and new is None:
            continue
        if now is None:
            yield ("create %s\0%s" % (name, new)).encode()
        elif new is None:
            yield ("delete %s\0%s" % (name, old)).encode()
        else:
            yield ("update %s\0%s\0%s" % (name, new, old)).encode()


def stdin_lines(rng, family, after):
    for update in wire_updates(rng, family, after):
        yield update.decode().replace("\0", " ").rstrip()


class Mover(Actor):
    """Refs, each by itself, some dozens of them in one transaction."""

    def __init__(self, name, repo, place, seed):
        super().__init__(name, repo, place, seed)
        for i in range(14):
            self.families.append(ledger.Family(
                repo, ["refs/heads/%s/%d" % (name, i)]))
        for ref in place.packed(repo, name):
            self.families.append(ledger.Family(
                repo, [ref], {ref: place.oids[0]}, {ref: ["old"]}))
        # HEAD points to it, and gets a line as well.
        main = "refs/heads/main"
        self.families.append(ledger.Family(repo, [main],
                                           {main: place.oids[-1]}))

    def turn(self):
        chosen = self.open_families(self.rng.choice((1, 1, 3, 12)))
        if not chosen:
            return False
        work = [(f, self.next_state(f)) for f in chosen]
        work = [(f, s) for f, s in work if s != f.now or
                not all(v is None for v in s.values())]
        if self.place.plain:
            return self.update_ref(work, True)
        return self.transact(work, False)


class Grouper(Actor):
    """Groups that must stay whole, and names in each other's way."""

    def __init__(self, name, repo, place, seed):
        super().__init__(name, repo, place, seed)
        for i in range(3):
            size = self.rng.randint(2, 7)
            self.families.append(ledger.Family(
                repo, ["refs/heads/%s/%d/%d" % (name, i, n)
                       for n in range(size)]))
        if not place.plain:
            base = "refs/heads/%s/way" % name
            self.way = ledger.Family(repo, [base, base + "/in",
                                            base + "/in/deep"])
            self.families.append(self.way)
        else:
            # git update-ref can't make room in one transaction.
            self.way = None

    def turn(self):
        chosen = self.open_families(1)
        if not chosen:
            return False
        family = chosen[0]
        if family is self.way:
            # One of the three, or none of them.
            there = [n for n in family.names if family.now[n]]
            after = dict.fromkeys(family.names)
            choice = self.rng.choice([n for n in family.names
                                      if n not in there])
            after[choice] = self.value()
            if there:
                # Make room first: one transaction can't do both.
                after = dict.fromkeys(family.names)
        else:
            after = self.next_state(family)
        if after == family.now and not any(after.values()):
            return True
        if self.place.plain:
            return self.update_ref([(family, after)], True)
        if self.rng.random() < 0.15:
            return self.update_ref([(family, after)], False)
        return self.transact([(family, after)], True)


class Pusher(Actor):
    """Real pushes of new objects, several refs in one, some atomic."""

    def __init__(self, name, repo, place, seed):
        super().__init__(name, repo, place, seed)
        self.work_tree = place.new_clone(name)
        for i in range(4):
            self.families.append(ledger.Family(
                repo, ["refs/heads/%s/%d" % (name, i)]))
        self.group = ledger.Family(repo, ["refs/heads/%s/all/%d" % (name, n)
                                          for n in range(3)])

    def new_commit(self):
        text = "blob of %s %d\n" % (self.name, self.count) * \
            self.rng.choice((1, 50))
        where = ["-C", self.work_tree]
        self.place.git_output(where + ["read-tree", "--empty"])
        blob = self.place.git_output(
            where + ["hash-object", "-w", "--stdin"], text)
        self.place.git_output(where + [
            "update-index", "--add", "--cacheinfo", "100644,%s,file" % blob])
        tree = self.place.git_output(where + ["write-tree"])
        return self.place.git_output(where + [
            "commit-tree", "-m", self.tag(), tree])

    def turn(self):
        chosen = self.open_families(3)
        if not chosen:
            return False
        new = self.new_commit()
        together = self.group.is_open() and self.rng.random() < 0.3
        if together:
            chosen = [self.group]
        work = []
        for family in chosen:
            gone = all(family.now.values()) and self.rng.random() < 0.25
            work.append((family, dict.fromkeys(family.names,
                                               None if gone else new)))
        specs = ["%s:%s" % (after[n] or "", n) for f, after in work
                 for n in f.names]
        # The line's message is not ours to choose; the value is unique.
        steps = [f.begin(after, "push " + new, self.place.plain,
                         self.place.promises)
                 for f, after in work]
        argv = [self.place.git, "-C", self.work_tree, "push", "-q", "-f"] + \
            (["--atomic"] if together else []) + [self.repo] + specs
        status, said = self.spawn(argv)
        if status > 0 and not together and len(steps) > 1:
            # Some of them may have gone through.
            self.gate.note(steps, UNKNOWN)
        else:
            self.settle(steps, status, said)
        return True


class Both(Actor):
    """The same refs by stock git and by refd in turn: moved, moved back,
    deleted, and confirmed."""

    def __init__(self, name, repo, place, seed):
        super().__init__(name, repo, place, seed)
        for i in range(8):
            self.families.append(ledger.Family(
                repo, ["refs/heads/%s/%d" % (name, i)]))

    def turn(self):
        chosen = self.open_families(1)
        if not chosen:
            return False
        family = chosen[0]
        last = family.steps[-1] if family.steps else None
        state = self.next_state(family)
        if last and last.by_git and self.rng.random() < 0.3:
            # What git has just made of it, which no disk has yet.
            state = dict(family.now)
            if not any(state.values()):
                return True
        way = self.rng.random()
        if way < 0.5:
            if state == family.now:
                return True
            return self.update_ref([(family, state)], True)
        if way < 0.7:
            return self.update_ref([(family, state)], False)
        return self.transact([(family, state)], False)


class Keeper(Actor):
    """git's housekeeping, also as newer versions start it by themselves.
    `pack-refs --auto` reads refs before it locks packed-refs, so only the gate
    keeps it from undoing what refd acknowledged in between."""

    def turn(self):
        task = self.rng.choices(
            (["pack-refs", "--all", "--prune"], ["pack-refs", "--auto"],
             ["-c", "gc.auto=1", "maintenance", "run", "--auto", "--quiet"],
             ["gc", "--quiet"]), (10, 5, 5, 5))[0]
        if task[-1] == "--auto" and not self.place.is_gated(self.repo):
            task = ["pack-refs", "--all", "--prune"]
        self.spawn([self.place.git, "-C", self.repo] + task, by_git=True)
        return self.nap(0.0, 0.3)
