"""Writers of refs of every kind, and random changes for them.

A change is (ref, old, new), where NULL is no ref. A writer gets a repository
and a batch of changes. It returns the program that wrote, refd or git, and the
refs that were changed as requested."""
import os
import random
import re
import subprocess
import threading

NULL = "0" * 40
GROUPS = 8
GROUP = 250


def run(*argv, text=""):
    return subprocess.run(argv, input=text, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)


class Changes:
    """Random changes of the refs of a group, from the values of the moment.
    Sometimes a name is the directory of another name.

    A value comes back after all others: `git pack-refs --prune` removes a ref
    that has left and regained its value meanwhile."""

    def __init__(self, seed, values):
        self.random = random.Random(seed)
        self.values = values

    def batch(self, repo, most):
        group = "refs/heads/g%d" % self.random.randrange(GROUPS)
        said = run("git", "-C", repo, "for-each-ref",
                   "--format=%(refname) %(objectname)", group + "/")
        there = dict(line.split() for line in said.stdout.splitlines())
        # Batches of all sizes, most of them large.
        count = int(most ** self.random.random() ** 0.5)
        names = ["%s/r%d" % (group, i) for i in range(GROUP)]
        chosen = self.random.sample(names, count)
        if self.random.random() < 0.1:
            chosen.append(group + self.random.choice(("/d", "/d/d", "/d/d/d")))
        return [self.change(ref, there.get(ref, NULL)) for ref in chosen]

    def change(self, ref, old):
        if old != NULL and self.random.random() < 0.15:
            return ref, old, NULL
        new = next(self.values)
        return ref, old, new if new != old else next(self.values)


def push(place, repo, batch, luck):
    specs = ["+%s:%s" % ("" if new == NULL else new, ref)
             for ref, old, new in batch]
    options = ["--atomic"] if luck < 0.3 else []
    said = run("git", "-C", place.work, "push", "--porcelain", *options, repo,
               *specs)
    who = "git" if "git updates the refs itself" in said.stderr else "refd"
    return who, [line.split("\t")[1].split(":")[1]
                 for line in said.stdout.splitlines()
                 if re.match("[ +*-]\t", line)]


def update_ref(place, repo, batch, luck):
    """Without old values in a third of the batches."""
    text = ""
    for ref, old, new in batch:
        check = "" if luck < 0.3 else " " + old
        if new == NULL:
            text += "delete %s%s\n" % (ref, check)
        else:
            text += "update %s %s%s\n" % (ref, new, check)
    said = run("git", "-C", repo, "update-ref", "--stdin", text=text)
    return "git", [c[0] for c in batch] if said.returncode == 0 else []


def fetch(place, repo, batch, luck):
    """Git makes a transaction for each ref, or with --atomic one for all."""
    batch = [c for c in batch if c[2] != NULL]
    if luck < 0.7:
        options = ["--atomic"]
    else:
        options, batch = [], batch[:20]
    said = run("git", "-C", repo, "fetch", "--no-write-fetch-head", "--no-tags",
               *options, place.work, *["+%s:%s" % (new, ref)
                                       for ref, old, new in batch])
    if options and said.returncode != 0:
        return "git", []
    words = {ref[len("refs/heads/"):]: ref for ref, _, _ in batch}
    return "git", [words[word] for word in re.findall(
        r"^ [ +*] .* -> (\S+)(?:  \(forced update\))?$", said.stderr, re.M)]


def refd(place, repo, batch, luck):
    text = "".join(
        "delete %s %s\n" % (ref, old) if new == NULL else
        "update %s %s %s\n" % (ref, new, old) for ref, old, new in batch)
    options = ["--batch-updates"] if luck < 0.5 else []
    said = run(place.refd, "update", "--git-dir", repo, "--stdin",
               "--porcelain", *options, text=text)
    return "refd", [line.split()[1] for line in said.stdout.splitlines()
                    if line.startswith("ok ")]


class Program:
    """A long-lived program that changes refs without hooks."""

    def __init__(self, *argv):
        self.lock = threading.Lock()
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            argv, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, place, repo, batch, luck):
        done = []
        with self.lock:
            self.process.stdin.write("".join(
                "%s %s %s %s\n" % (repo, *c) for c in batch) + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                words = line.split()
                if not words:
                    return "git", done
                if words[0] == "ok":
                    done.append(words[1])
        raise EOFError("a writer has ended")


def kinds(jgit):
    """JGIT is the command of the program that uses JGit."""
    pygit2 = os.path.join(os.path.dirname(__file__), "pygit2_writer.py")
    return {"push": push, "update-ref": update_ref, "fetch": fetch,
            "refd": refd, "pygit2": Program("/usr/bin/python3", pygit2),
            "jgit": Program(*jgit.split())}


def keep_house(place, repo, luck):
    """No change of a ref."""
    tidy = (["git", "-C", repo, "gc", "--quiet", "--prune=never"],
            ["git", "-C", repo, "pack-refs"],
            ["git", "-C", repo, "pack-refs", "--all"],
            ["git", "-C", repo, "pack-refs", "--all", "--no-prune"],
            [place.refd, "pack", repo])
    run(*tidy[int(luck * len(tidy))])
