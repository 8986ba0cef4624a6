"""Users of refd for half an hour. Each worker owns some refs, so the worker
knows their values, and counts the answers. No worker stops for an error that a
restart of the daemon explains."""
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path[:0] = [ROOT + "/client/python", ROOT + "/tests/python"]
from raw import Client, new_txid, packet, transaction  # noqa: E402

GONE = (OSError, EOFError, ValueError)


def ids_of(kind):
    return kind.split("-")[1]


class Worker(threading.Thread):
    """Works in one repository until place.over(); what should not be goes to
    self.wrong."""

    def __init__(self, place, name, number=0):
        super().__init__(name=name + str(number), daemon=True)
        self.place, self.random = place, random.Random(self.name)
        self.repo = place.repos[number % len(place.repos)]
        self.kind = place.kinds[number % len(place.kinds)]
        self.oids = place.oids_of(self.kind)
        self.null = "0" * len(self.oids[0])
        self.wrong, self.turns, self.asks = [], 0, 0
        self.client = None
        self.picked = self.random.randrange(len(self.oids))

    def value(self):
        """One that comes back after all the others. `git pack-refs --prune`
        removes a ref that was deleted meanwhile and made anew with the value
        that it had, as of anybody's."""
        self.picked = (self.picked + 1) % len(self.oids)
        return self.oids[self.picked]

    def run(self):
        try:
            while not self.place.over():
                self.turn()
                self.turns += 1
            self.finish()
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append("%s ended by %r" % (self.name, error))

    def finish(self):
        pass

    def connected(self):
        """A client, however long it takes."""
        while self.client is None:
            try:
                self.client = Client(self.place.socket)
                if "state serving" not in self.client.hello:
                    self.client = None
            except GONE:
                pass
            if self.client is None:
                time.sleep(0.02)
        return self.client

    def headers(self, txid, *options):
        return transaction(txid, self.repo, *options,
                           object_format=ids_of(self.kind))

    def settled(self, verb, headers, updates, txid):
        """The answer of a transaction, over as many connections as it takes;
        None: it never happened and is not to be sent again."""
        sent = False
        while True:
            try:
                client = self.connected()
                if sent:
                    self.asks += 1
                    answer = client.ask("query", ["txid " + txid])
                    if answer[0] == "never-seen":
                        sent = False
                        if verb == "session":
                            return None
                        continue
                    if answer[0] == "pending":
                        time.sleep(0.02)
                        continue
                else:
                    sent = True
                    answer = client.ask(verb, headers, updates)
                if answer[0] == "refused" and b"status busy" in answer[1]:
                    sent = False
                    time.sleep(0.05)
                    continue
                if "unknown" in codes(answer):
                    time.sleep(0.2)
                    continue
                if answer[0] == "results" and "busy" in codes(answer):
                    sent = False  # a daemon that stops
                    time.sleep(0.05)
                    continue
                return answer
            except GONE:
                self.client = None


def results(answer):
    """What became of each ref that there is a result of: (ref, code)."""
    for line in answer[1]:
        if line.startswith((b"ok\0", b"ng ")):
            word, ref = line.decode().split("\0")[:2]
            yield ref, word.split(" ")[-1]


def codes(answer):
    return [code for _, code in results(answer)]


class Updater(Worker):
    """Creates, moves and deletes some refs, several at a time, with old
    values; half of it atomic. Its logs have a line for each change."""

    def __init__(self, place, number):
        super().__init__(place, "updater", number)
        self.refs = ["refs/heads/%s/%d" % (self.name, i) for i in range(8)]
        self.at = dict.fromkeys(self.refs, self.null)
        self.lines = dict.fromkeys(self.refs, 0)

    def turn(self):
        chosen = self.random.sample(self.refs, self.random.randint(1, 5))
        wanted, updates = {}, []
        for ref in chosen:
            old, new = self.at[ref], self.value()
            if old != self.null and self.random.random() < 0.1:
                new = self.null
            wanted[ref] = new
            updates.append(("update " + ref, new, old))
        options = ["umask 0022", "message soak",
                   "committer C <c@example.com> %d +0000" % time.time(),
                   "log-all-ref-updates always"]
        if self.random.random() < 0.5:
            options.insert(0, "atomic")
        txid = new_txid()
        answer = self.settled(
            "transaction", self.headers(txid, *options), updates, txid)
        for ref, code in results(answer):
            if code == "ok":
                self.lines[ref] = 0 if wanted[ref] == self.null else \
                    self.lines[ref] + 1
                self.at[ref] = wanted[ref]
            elif code not in ("aborted", "locked", "deadline", "busy"):
                self.wrong.append("%s %s: %r" % (self.name, ref, answer))
        if answer[0] != "results":
            self.wrong.append("%s: %r" % (self.name, answer))


class Session(Worker):
    """Prepares, holds, and commits, aborts or hangs up."""

    def __init__(self, place, number):
        super().__init__(place, "session", number)
        self.ref = "refs/tags/" + self.name
        self.may, self.committed = {self.null}, 0

    def turn(self):
        txid, new = new_txid(), self.value()
        try:
            client = self.connected()
            answer = client.ask("session", self.headers(txid, "umask 0022"),
                                [("update " + self.ref, new, "")])
            time.sleep(self.random.random() / 20)
            end = self.random.choice(("commit", "commit", "abort", "hang up"))
            if end == "hang up":
                client.sock.close()
                self.client = None
            elif answer[0] == "prepared":
                if end == "commit":
                    self.may.add(new)
                answer = client.ask(end, ["txid " + txid])
                if codes(answer) == ["ok"]:
                    self.may = {new}
                    self.committed += 1
        except GONE:
            self.client = None

    def finish(self):
        """A commit whose answer was lost is told by what is there."""
        if self.committed == 0:
            self.wrong.append("%s: nothing was committed" % self.name)


class Pusher(Worker):
    """git push of new branches, changed ones and deletions."""

    def __init__(self, place, number):
        super().__init__(place, "pusher", number)
        self.refs = ["refs/heads/%s/%d" % (self.name, i) for i in range(6)]
        self.may = {ref: {self.null} for ref in self.refs}
        self.pushed = 0

    def turn(self):
        chosen = self.random.sample(self.refs, self.random.randint(1, 6))
        wanted = {}
        for ref in chosen:
            wanted[ref] = self.null if self.random.random() < 0.1 else \
                self.value()
        said = subprocess.run(
            ["git", "-C", self.place.work_of(self.kind), "push", "--porcelain",
             "--force", self.repo] + [
                 ("" if new == self.null else new) + ":" + ref
                 for ref, new in wanted.items()],
            env=self.place.env, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, check=False).stdout
        told = {}
        for line in said.split("\n"):
            words = line.split("\t")
            if len(words) == 3:
                told[words[1].split(":")[1]] = words[0]
        for ref, new in wanted.items():
            flag = told.get(ref)
            if flag in (" ", "+", "-", "*", "="):
                self.may[ref] = {new}
                self.pushed += 1
            else:  # a lost answer: it may be either
                self.may[ref].add(new)

    def finish(self):
        if self.pushed == 0:
            self.wrong.append("%s: nothing was pushed" % self.name)


class Hostile(Worker):
    """Says nonsense, half of something, or nothing; often, or slowly."""

    def turn(self):
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(1)
                sock.connect(self.place.socket)
                kind = self.random.randrange(5)
                if kind == 0:
                    sock.sendall(self.random.randbytes(
                        self.random.randint(1, 70000)))
                elif kind == 1:
                    sock.sendall(packet("transaction 1") +
                                 packet("txid " + new_txid()))
                elif kind == 2:
                    for byte in packet("ping 1") * 3:
                        sock.sendall(bytes([byte]))
                        time.sleep(0.001)
                elif kind == 3:
                    sock.sendall(b"".join(packet("query %d" % i) + packet(
                        "txid " + new_txid()) + b"0000"
                        for i in range(1, 200)))
                else:
                    others = [socket.socket(socket.AF_UNIX)
                              for _ in range(50)]
                    for other in others:
                        other.connect(self.place.socket)
                    for other in others:
                        other.close()
                time.sleep(self.random.random() / 10)
        except OSError:
            time.sleep(0.1)


class Keeper(Worker):
    """git's own housekeeping."""

    def broken(self, repo, args):
        done = subprocess.run(["git", "-C", repo] + args, env=self.place.env,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        return {line for line in done.stderr.decode(
            errors="replace").splitlines() if any(
                word in line for word in ("broken", "bad ref",
                                          "invalid sha1"))}

    def turn(self):
        repo = self.random.choice(self.place.repos)
        choice = [["repack", "-q", "-d"], ["for-each-ref"],
                  ["fsck", "--connectivity-only"], ["pack-refs", "--all"],
                  ["gc", "-q", "--prune=never"],
                  ["pack-refs", "--all", "--prune"]]
        args = self.random.choice(choice)
        said = self.broken(repo, args)
        if said:
            # git lists a directory, then reads the files, and takes a file
            # that was deleted meanwhile for a broken ref; beside git, too.
            said &= self.broken(repo, args)
        if said:
            self.wrong.append("git %s: %s" % (args[0], said))
        time.sleep(0.2)


class Mover(Worker):
    """Repositories that are made, moved and removed under the daemon."""

    def turn(self):
        here = "%s/moved-%d.git" % (self.place.top, self.turns)
        number = self.turns % len(self.place.kinds)
        kind = self.place.kinds[number]
        self.place.clone(kind, here)
        for n in range(3):
            txid = new_txid()
            answer = self.settled("transaction", transaction(
                txid, here, "umask 0022", object_format=ids_of(kind)),
                [("create refs/heads/x%d" % n, self.place.oids_of(kind)[0])],
                txid)
            if codes(answer) != ["ok"]:
                self.wrong.append("%s: %r" % (here, answer))
            there = "%s/moved-%d-%d.git" % (self.place.top, self.turns, n)
            os.rename(here, there)
            here = there
        # The daemon may be writing its note there.
        while os.path.lexists(here):
            shutil.rmtree(here, ignore_errors=True)
        time.sleep(3)  # what is idle for a minute is closed: so many are open


class Probe(Worker):
    """An update of one ref is due twice a second; how long it takes counts from
    then, also where the one before was not answered yet."""

    def __init__(self, place, number):
        super().__init__(place, "probe", number)
        self.waited = []  # when it was due, and how long it took
        self.ref, self.due = "refs/heads/probe", time.monotonic()

    def turn(self):
        time.sleep(max(0.0, self.due - time.monotonic()))
        txid = new_txid()
        answer = self.settled(
            "transaction", self.headers(txid, "umask 0022"),
            [("update " + self.ref, self.random.choice(self.oids), "")], txid)
        if codes(answer) not in (["ok"], ["locked"]):
            self.wrong.append("probe: %r" % (answer,))
        now = time.monotonic()
        self.waited.append((self.due, now - self.due))
        self.due = max(self.due + 0.5, now - 5)
