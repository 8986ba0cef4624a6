#!/usr/bin/env python3
"""Is every answer of refd and of git explained by one order of all changes,
also if the daemon is killed again and again?

    linear.py --top DIR --refd PROGRAM [--git PROGRAM] [--kills N] [--seed N]
    linear.py --self-test

Clients change a few refs through refd's socket and by git, with and without
the old value, and read them by git. Each change has a value of its own. A
change without an answer is asked for by its transaction id after the next
start; without an answer there, too, it may take effect at any later time or
never. Then each ref is checked by itself: is there an order of its changes and
reads, each somewhere between its call and its answer, in which every read sees
the last change, and every change with an old value sees this value?
"""
import argparse
import itertools
import os
import random
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "powercut"))
import wire  # noqa: E402

ANY = "any"  # no old value was given
NEVER = float("inf")
REFS = ["refs/heads/a", "refs/heads/b", "refs/heads/deep/c"]


class Op:
    """A change from OLD to NEW, or a read of NEW. None is an absent ref."""

    def __init__(self, who, ref, old, new, is_read=False):
        self.who, self.ref, self.old, self.new = who, ref, old, new
        self.is_read = is_read
        self.txid = None
        self.call = time.monotonic()
        self.answer = NEVER
        self.is_certain = True

    def fits(self, value):
        if self.is_read:
            return value == self.new
        return self.old == ANY or self.old == value

    def after(self, value):
        return value if self.is_read else self.new

    def __str__(self):
        def short(value):
            return "absent" if value is None else value[:8]
        what = "reads " + short(self.new) if self.is_read else "%s -> %s" % (
            short(self.old), short(self.new))
        return "%s %.6f..%.6f %s %s%s" % (
            self.ref, self.call, self.answer, self.who, what,
            "" if self.is_certain else " (no answer)")


# ---- the check ----

def grown(configs, begun):
    """All (value, operations that have happened) that can be reached."""
    todo = list(configs)
    while todo:
        value, done = todo.pop()
        for op in begun - done:
            if op.fits(value):
                config = op.after(value), done | {op}
                if config not in configs:
                    configs.add(config)
                    todo.append(config)
    return configs


def first_wrong(ops, start=None):
    """The first operation whose answer no order explains, or None. Each
    operation happens between its call and its answer; an uncertain one may
    also not happen."""
    events = sorted(itertools.chain(
        ((op.call, 0, i) for i, op in enumerate(ops)),
        ((op.answer, 1, i) for i, op in enumerate(ops)
         if op.is_certain)))
    configs, begun = {(start, frozenset())}, frozenset()
    for _, is_answer, i in events:
        op = ops[i]
        if not is_answer:
            begun |= {op}
            continue
        configs = {(value, done - {op})
                   for value, done in grown(configs, begun) if op in done}
        begun -= {op}
        if not configs:
            return op
    return None


def self_test():
    def history(*rows):
        ops = []
        for who, old, new, call, answer, kind in rows:
            op = Op(who, "r", old, new, kind == "read")
            op.call, op.answer = call, answer
            op.is_certain = kind != "lost"
            ops.append(op)
        return ops

    cases = (
        ("one after the other", None, history(
            ("a", None, "1", 0, 1, ""), ("b", "1", "2", 2, 3, ""),
            ("c", None, "2", 4, 5, "read"))),
        ("side by side", None, history(
            ("a", ANY, "1", 0, 9, ""), ("b", ANY, "2", 0, 9, ""),
            ("c", None, "2", 1, 2, "read"), ("c", None, "1", 3, 4, "read"))),
        ("without an answer, seen later", None, history(
            ("a", ANY, "1", 0, NEVER, "lost"), ("b", None, None, 1, 2, "read"),
            ("c", None, "1", 3, 4, "read"))),
        ("without an answer, never seen", None, history(
            ("a", ANY, "1", 0, NEVER, "lost"),
            ("b", None, "2", 1, 2, ""), ("c", None, "2", 3, 4, "read"))),
        ("a lost change", 2, history(
            ("a", ANY, "1", 0, 1, ""), ("b", ANY, "2", 2, 3, ""),
            ("c", None, "1", 4, 5, "read"))),
        ("two from one value", 1, history(
            ("a", None, "1", 0, 1, ""), ("b", None, "2", 2, 3, ""))),
        ("back and forth", 3, history(
            ("a", ANY, "1", 0, 1, ""), ("b", ANY, "2", 2, 9, ""),
            ("c", None, "2", 3, 4, "read"), ("c", None, "1", 5, 6, "read"))),
        ("a value of nobody", 0, history(("c", None, "7", 4, 5, "read"))),
        ("undone", 2, history(
            ("a", ANY, "1", 0, 1, ""), ("b", "1", None, 2, 3, ""),
            ("c", None, "1", 4, 5, "read"))),
    )
    for name, wrong, ops in cases:
        found = first_wrong(ops)
        wanted = None if wrong is None else ops[wrong]
        if found is not wanted:
            print("%s: found %s, not %s" % (name, found, wanted))
            return 1
    print("%d histories" % len(cases))
    return 0


# ---- the load ----

class Run:
    def __init__(self, options):
        self.options = options
        self.top = options.top
        self.repo = self.top + "/linear.git"
        self.socket = self.top + "/linear.sock"
        self.lock = threading.Lock()
        self.ops = []
        self.stopping = threading.Event()
        self.daemon = None
        self.oids = self.make_repository()
        self.next_oid = itertools.cycle(self.oids)

    def git(self, *args, stdin="", check=True):
        return subprocess.run(
            [self.options.git, "-C", self.repo] + list(args), check=check,
            input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8")

    def make_repository(self):
        subprocess.run([self.options.git, "init", "-q", "--bare", self.repo],
                       check=True)
        marks = self.top + "/linear.marks"
        self.git("fast-import", "--quiet", "--export-marks=" + marks,
                 stdin="".join(
                     "commit refs/heads/keep\nmark :%d\ncommitter C <c@e> %d "
                     "+0000\ndata 0\n" % (i, i) for i in range(1, 20001)))
        subprocess.run([self.options.refd, "enable", "--socket", self.socket,
                        self.repo], check=True, stdout=subprocess.DEVNULL)
        with open(marks, encoding="utf-8") as file:
            return [line.split()[1] for line in file]

    def start(self):
        with open(self.top + "/linear.log", "ab") as log:
            self.daemon = subprocess.Popen(
                [self.options.refd, "daemon", "--socket", self.socket,
                 "--state", self.top + "/linear.state", "--root", self.top],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not wire.wait_until_served(
                self.socket, lambda: self.daemon.poll() is None):
            raise SystemExit("the daemon does not serve")

    def kill(self):
        self.daemon.kill()
        self.daemon.wait()

    def end(self, op, happened):
        """HAPPENED: True, False, or None without an answer."""
        op.answer = time.monotonic() if happened else NEVER
        op.is_certain = happened is not None
        if happened is not False:
            with self.lock:
                self.ops.append(op)

    def value_of(self, ref):
        done = self.git("rev-parse", "-q", "--verify", ref, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit("git cannot read %s: %s" % (ref, done.stderr))
        return done.stdout.strip() or None

    def choose(self, rng, known):
        """(ref, old, new) of a change by someone who saw KNOWN."""
        ref = rng.choice(REFS)
        now = known.get(ref)
        with self.lock:
            new = next(self.next_oid)
        if now is not None and rng.random() < 0.3:
            new = None
        # Without an old value git refuses no deletion of an absent ref.
        old = ANY if new and rng.random() < 0.3 else now
        return (ref, old, new) if old or new else (ref, old, next(
            self.next_oid))

    def by_refd(self, name, rng):
        conn, known = None, {}
        while not self.stopping.is_set():
            ref, old, new = self.choose(rng, known)
            words = {ANY: ""}.get(old, old)
            if old is None:
                update = "create %s\0%s" % (ref, new)
            elif new is None:
                update = "delete %s\0%s" % (ref, words)
            else:
                update = "update %s\0%s\0%s" % (ref, new, words)
            txn = wire.Transaction(self.repo, [update.encode()], name)
            op = Op(name, ref, old, new)
            op.txid = txn.txid
            try:
                conn = conn or wire.Wire(self.socket)
                code = conn.transact(txn).get(ref)
            except wire.Gone:
                conn = None
                self.ask_again(op)
                continue
            happened = {"ok": True, "unknown": None}.get(code, False)
            self.end(op, happened)
            known[ref] = new if happened else self.read(name, ref)

    def ask_again(self, op):
        while not self.stopping.is_set():
            try:
                conn = wire.Wire(self.socket)
                answer = conn.query(op.txid)
                conn.close()
            except wire.Gone:
                time.sleep(0.01)
                continue
            if isinstance(answer, dict):
                code = answer.get(op.ref)
                return self.end(op, {"ok": True, "unknown": None}.get(
                    code, False))
            if answer == "never-seen":
                return self.end(op, False)
            time.sleep(0.01)
        return self.end(op, None)

    def by_git(self, name, rng):
        known = {}
        while not self.stopping.is_set():
            ref, old, new = self.choose(rng, known)
            if old is None:
                line = "create %s %s\n" % (ref, new)
            elif new is None:
                line = "delete %s %s\n" % (ref, old)
            else:
                line = "update %s %s %s\n" % (
                    ref, new, "" if old == ANY else old)
            op = Op(name, ref, old, new)
            done = self.git("update-ref", "--stdin", stdin=line, check=False)
            self.end(op, done.returncode == 0)
            known[ref] = new if done.returncode == 0 else \
                self.read(name, ref)
            time.sleep(rng.uniform(0, 0.01))

    def read(self, name, ref):
        op = Op(name, ref, None, None, True)
        op.new = self.value_of(ref)
        self.end(op, True)
        return op.new

    def reader(self, name, rng):
        while not self.stopping.is_set():
            self.read(name, rng.choice(REFS))
            if rng.random() < 0.1:
                self.git("pack-refs", "--all", "--prune", check=False)

    def go(self):
        seed = self.options.seed
        rng = random.Random(seed)
        self.start()
        jobs = [(self.by_refd, "refd%d" % i) for i in range(4)] + [
            (self.by_git, "git%d" % i) for i in range(2)] + [
            (self.reader, "reader")]
        threads = [threading.Thread(target=job, args=(
            name, random.Random("%s %s" % (seed, name))))
            for job, name in jobs]
        for thread in threads:
            thread.start()
        try:
            for _ in range(self.options.kills):
                time.sleep(rng.uniform(0.05, 0.6))
                self.kill()
                self.start()
            time.sleep(0.3)
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()
        for ref in REFS:
            self.read("the end", ref)
        self.daemon.terminate()
        return self.judge()

    def judge(self):
        wrong = 0
        for ref in REFS:
            ops = [op for op in self.ops if op.ref == ref]
            op = first_wrong(ops)
            if op:
                wrong += 1
                print("no order explains: %s" % op)
                around = [o for o in ops if o.call < op.answer and
                          (o.answer > op.call - 0.5)]
                print("\n".join("  %s" % o for o in sorted(
                    around, key=lambda o: o.call)))
        changes = [op for op in self.ops if not op.is_read]
        print("# seed %s: %d kills, %d changes by refd (%d without an answer),"
              " %d by git, %d reads, %d wrong" % (
                  self.options.seed, self.options.kills,
                  sum(op.txid is not None for op in changes),
                  sum(not op.is_certain for op in changes),
                  sum(op.txid is None for op in changes),
                  len(self.ops) - len(changes), wrong))
        # Without both kinds of changes nothing was shown.
        kinds = {op.txid is None for op in changes}
        return 1 if wrong or len(kinds) < 2 else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--top")
    parser.add_argument("--refd")
    parser.add_argument("--git", default="git")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int,
                        default=random.SystemRandom().randrange(10 ** 6))
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    return self_test() if options.self_test else Run(options).go()


if __name__ == "__main__":
    sys.exit(main())
