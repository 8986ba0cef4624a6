#!/usr/bin/env python3
"""Clients that go on through an upgrade, and what became of their updates.

    upgrade.py load REFD SECONDS REPO...    until the file `enough` is there
    upgrade.py check REFD REPO...

In the current directory: REPO.oids has the values of a repository, one to a
line. `acked` gets a line of JSON for each update once it is acknowledged.
`said` gets whatever else a client was told, with the number of times.

Eight clients each run `refd update`: every other time for a new ref, otherwise
for a ref that moves. A client repeats a failed call under the same id for
SECONDS at most. REFD is replaced meanwhile."""
import collections
import json
import os
import random
import secrets
import subprocess
import sys
import threading
import time

CLIENTS = 8
RESENT = 400
NULL = "0" * 40


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def send(refd, update):
    """The whole call: what is repeated is the same request."""
    return run(refd, "update", "-C", update["repo"], "--json", "--timeout",
               "5000", "--txid", update["txn"], "-m", "load", update["ref"],
               update["new"], update["old"])


class Load:
    def __init__(self, refd, seconds, repos):
        self.refd, self.seconds, self.repos = refd, seconds, repos
        self.oids = {r: open(r + ".oids").read().split() for r in repos}
        self.said = collections.Counter()
        self.lock = threading.Lock()
        self.acked = open("acked", "w")
        self.unfinished = set(range(CLIENTS))

    def until_acknowledged(self, update):
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            done = send(self.refd, update)
            if done.returncode == 0:
                update["refs"] = json.loads(done.stdout)["refs"]
                with self.lock:
                    self.acked.write(json.dumps(update) + "\n")
                return True
            with self.lock:
                self.said[done.stderr.strip()] += 1
            time.sleep(0.02)
        return False

    def client(self, number):
        values = {}
        n = 0
        while not os.path.exists("enough"):
            n += 1
            repo = self.repos[(n + number) % len(self.repos)]
            new = self.oids[repo][n % len(self.oids[repo])]
            ref, old = "refs/heads/%d/%d" % (number, n), NULL
            if n % 2 == 0:
                ref = "refs/heads/moves/%d" % number
                old = values.get(repo, NULL)
                values[repo] = new
            if new == old:
                continue
            txn = "%012x%s" % (int(time.time() * 1000), secrets.token_hex(10))
            if not self.until_acknowledged(
                    {"txn": txn, "repo": repo, "ref": ref, "old": old,
                     "new": new}):
                return
        self.unfinished.discard(number)

    def run(self):
        threads = [threading.Thread(target=self.client, args=(i,))
                   for i in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.acked.close()
        with open("said", "w") as said:
            for text, times in self.said.most_common():
                said.write("%d %s\n" % (times, text))
        return ["client %d gave up" % n for n in self.unfinished]


def refs_of(repo):
    lines = run("git", "-C", repo, "for-each-ref",
                "--format=%(refname) %(objectname)", "refs/heads").stdout
    return dict(line.split(" ") for line in lines.splitlines())


def log_of(refd, repo):
    lines = run(refd, "log", "--repo", repo, "--json", "-n", "1000000").stdout
    return collections.Counter(
        (row["txn"], row["ref"], row["new"])
        for row in map(json.loads, lines.splitlines()) if "txn" in row)


def check(refd, repos):
    """What is wrong, one line each."""
    acked = [json.loads(line) for line in open("acked")]
    wanted = {repo: {} for repo in repos}
    logged = {repo: log_of(refd, repo) for repo in repos}
    for update in acked:
        wanted[update["repo"]][update["ref"]] = update["new"]
        times = logged[update["repo"]][
            update["txn"], update["ref"], update["new"]]
        if times != 1:
            yield "%s is %d times in the log" % (update["txn"], times)
    for repo in repos:
        for ref, oid in set(refs_of(repo).items()) ^ set(wanted[repo].items()):
            yield "%s differs: %s, %s" % (repo, ref, oid)
    for update in random.sample(acked, min(RESENT, len(acked))):
        again = send(refd, update)
        if again.returncode != 0 or \
                json.loads(again.stdout)["refs"] != update["refs"]:
            yield "sent again, %s: %s" % (update["txn"],
                                          again.stderr or again.stdout)
    for repo in repos:
        if set(refs_of(repo).items()) != set(wanted[repo].items()):
            yield "%s was changed by what was sent again" % repo


if sys.argv[1] == "load":
    bad = Load(sys.argv[2], float(sys.argv[3]), sys.argv[4:]).run()
else:
    bad = list(check(sys.argv[2], sys.argv[3:]))
for line in bad[:5]:
    print(line)
sys.exit(len(bad) > 0)
