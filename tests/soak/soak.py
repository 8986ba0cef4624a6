"""Mixed load for a long time, side by side in a repository of each kind:
updates, pushes, deletions, sessions, nonsense, git's housekeeping, repositories
that come, move and go. For the first two
thirds the daemon runs undisturbed, and its memory, descriptors and latency must
not grow. Then the daemon is stopped, restarted and killed again and again. In
the end every ref must have a value that its writers were told.

Arguments: the build directory, a directory to work in, seconds, and the kinds
of repositories: REFS-IDS, for example reftable-sha256. Prints `ok` and `not ok`
lines, and the measurements."""
import os
import signal
import subprocess
import sys
import time

from workers import (Hostile, Keeper, Mover, Probe, Pusher, Session, Updater,
                     ids_of)

build, top, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
refd = build + "/bin/refd"


class Place:
    def __init__(self):
        self.top, self.socket = top, top + "/soak.sock"
        self.state, self.kinds = top + "/soak-state", sys.argv[4:]
        self.log = open(top + "/soak.log", "ab")
        self.env = dict(os.environ, REFD_SOCKET=self.socket,
                        REFD_STATE=self.state)
        self.begun = time.monotonic()
        self.daemon, self.repos, self.oids = None, [], {}

    def over(self):
        return time.monotonic() > self.begun + seconds

    def git(self, *args, stdin=None):
        return subprocess.run(("git",) + args, env=self.env, check=True,
                              input=stdin, stdout=subprocess.PIPE,
                              text=True).stdout.strip()

    def work_of(self, kind):
        return "%s/work-%s" % (top, ids_of(kind))

    def oids_of(self, kind):
        return self.oids[ids_of(kind)]

    def clone(self, kind, where):
        subprocess.run(["git", "clone", "-q", "--bare", self.work_of(kind),
                        where], check=True, env=dict(
                            self.env, GIT_DEFAULT_REF_FORMAT=kind.split(
                                "-", maxsplit=1)[0]))

    def make_work(self, ids):
        work = "%s/work-%s" % (top, ids)
        self.git("init", "-q", "--object-format=" + ids, work)
        self.git("-C", work, "fast-import", "--quiet", stdin="".join(
            "commit refs/heads/main\ncommitter C <c@example.com> %d +0000\n"
            "data 5\n%05d\n" % (1600000000 + i, i) for i in range(20000)))
        self.oids[ids] = self.git("-C", work, "log", "--format=%H",
                                  "main").split()

    def make(self):
        for ids in sorted(set(map(ids_of, self.kinds))):
            self.make_work(ids)
        for kind in self.kinds:
            repo = "%s/%s.git" % (top, kind)
            self.clone(kind, repo)
            # git loses updates beside its own pack-refs where packed-refs
            # has less than 32 KiB; so it has more.
            self.git("-C", repo, "update-ref", "--stdin", stdin="".join(
                "create refs/tags/much/%04d %s\n" % (i, self.oids_of(kind)[0])
                for i in range(1000)))
            self.git("-C", repo, "pack-refs", "--all", "--prune")
            for key, value in (("core.logAllRefUpdates", "always"),
                               ("gc.reflogExpire", "never"),
                               ("gc.reflogExpireUnreachable", "never"),
                               ("core.filesRefLockTimeout", "2000"),
                               ("reftable.lockTimeout", "2000"),
                               ("refd.fallback", "refuse")):
                self.git("-C", repo, "config", key, value)
            self.repos.append(os.path.realpath(repo))

    def start(self):
        self.daemon = subprocess.Popen(
            [refd, "daemon", "--socket", self.socket, "--state", self.state,
             "--root", top], stdout=self.log, stderr=self.log,
            stdin=subprocess.DEVNULL, env=self.env)
        subprocess.run([refd, "ping", "--wait", "30"], env=self.env,
                       check=True, stdout=self.log, stderr=self.log)

    def end(self, sig):
        self.daemon.send_signal(sig)
        return self.daemon.wait(60)


def shows(name, good, seen=""):
    print("%s %s%s" % ("ok" if good else "not ok", name,
                       ": " + str(seen) if seen != "" else ""), flush=True)


def sample(pid):
    """Resident KiB, descriptors, threads."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        words = dict(line.split(":", 1) for line in file)
    return (int(words["VmRSS"].split()[0]),
            len(os.listdir("/proc/%d/fd" % pid)), int(words["Threads"]))


def median(values):
    return sorted(values)[len(values) // 2]


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]


def undisturbed(place, probes):
    """Of what is sampled the last third is compared with the second one: what
    grows for ever is larger then."""
    samples, until = [], place.begun + seconds * 2 / 3
    while time.monotonic() < until:
        samples.append(sample(place.daemon.pid))
        time.sleep(0.5)
    third = len(samples) // 3
    # The cache of history's index grows to 16 MiB in the first minutes.
    cache = 16384 if seconds < 1800 else 8
    for i, (name, slack, room) in enumerate((("resident KiB", 1.15, cache),
                                             ("descriptors", 1.5, 8),
                                             ("threads", 1, 8))):
        early = median([s[i] for s in samples[third:2 * third]])
        late = median([s[i] for s in samples[2 * third:]])
        shows("%s stay as they are" % name, late <= early * slack + room,
              "%d, then %d; most %d" % (early, late,
                                        max(s[i] for s in samples)))
    for probe in probes:
        waits = [w for due, w in list(probe.waited) if due < until - 5]
        third = len(waits) // 3
        early, late = (quantile(waits[third:2 * third], 0.5),
                       quantile(waits[2 * third:], 0.5))
        shows("latency of %s stays as it is" % probe.kind,
              late <= early * 3 + 0.02,
              "median %.1f ms, then %.1f ms; p99 %.1f ms" % (
                  early * 1e3, late * 1e3, quantile(waits, 0.99) * 1e3))


def disturbed(place):
    ends, bad = 0, []
    while not place.over():
        kind = (signal.SIGKILL, signal.SIGTERM)[ends % 2]
        time.sleep(1 + ends % 4)
        status = place.end(kind)
        if status not in (0, -signal.SIGKILL):
            bad.append(status)
        place.start()
        ends += 1
    shows("restarts and kills", ends > 0 and not bad, "%d %s" % (
        ends, bad or ""))


def refs_of(place, repo):
    return dict(reversed(line.split(" ")) for line in place.git(
        "-C", repo, "for-each-ref",
        "--format=%(objectname) %(refname)").split("\n"))


def compare(place, workers):
    refs = {repo: refs_of(place, repo) for repo in place.repos}
    wrong, compared = [], 0
    for w in workers:
        if isinstance(w, Updater):
            may = {ref: {at} for ref, at in w.at.items()}
        elif isinstance(w, Pusher):
            may = w.may
        elif isinstance(w, Session):
            may = {w.ref: w.may}
        else:
            continue
        for ref, values in may.items():
            compared += 1
            if refs[w.repo].get(ref, w.null) not in values:
                wrong.append("%s %s" % (w.repo, ref))
    shows("each ref is where it was said to be", not wrong,
          wrong[:5] or "%d refs" % compared)
    wrong, lines = [], 0
    for w in workers:
        for ref, nr in w.lines.items() if isinstance(w, Updater) else ():
            there = len(subprocess.run(
                ["git", "-C", w.repo, "reflog", "show", "--format=%H", ref,
                 "--"], env=place.env, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, check=False).stdout.splitlines())
            lines += nr
            if there != nr:
                wrong.append("%s %s: %d for %d" % (w.repo, ref, there, nr))
    shows("each change has its line", not wrong,
          wrong[:5] or "%d lines" % lines)


def main():
    place = Place()
    place.make()
    place.start()
    for repo in place.repos:
        subprocess.run([refd, "enable", repo], env=place.env, check=True,
                       stdout=subprocess.DEVNULL)
    nr = len(place.kinds)
    probes = [Probe(place, n) for n in range(nr)]
    workers = [Updater(place, n) for n in range(2 * nr)] + \
        [Session(place, n) for n in range(nr)] + \
        [Pusher(place, n) for n in range(nr)] + \
        [Hostile(place, "hostile", n) for n in range(2)] + \
        [Keeper(place, "keeper"), Mover(place, "mover")] + probes
    place.begun = time.monotonic()
    for w in workers:
        w.start()
    undisturbed(place, probes)
    disturbed(place)
    for w in workers:
        w.join(120)
        shows("%s comes to its end" % w.name, not w.is_alive() and
              w.turns > 0, "%d turns, %d asked by id" % (w.turns, w.asks))
        for wrong in w.wrong[:3]:
            shows(w.name, False, wrong)
    shows("a clean stop", place.end(signal.SIGTERM) == 0)
    compare(place, workers)
    left = [f for repo in place.repos for f in subprocess.run(
        ["find", repo, "-name", "*.lock"], stdout=subprocess.PIPE, text=True,
        check=True).stdout.split()]
    shows("no lock is left", not left, left or "")
    said = subprocess.run([refd, "verify"] + place.repos, env=place.env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    shows("refd verify finds nothing", said.returncode == 0,
          said.stdout[-300:] if said.returncode else "")


main()
