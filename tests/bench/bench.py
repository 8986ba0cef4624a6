"""How fast refd is on this machine, beside others in the same minutes.

Every workload of tests/bench/README.md, by everybody who is there: turn by
turn, each in a fresh directory of a file system of its own, once with flushes
as this disk has them and once with 5 ms added to every flush of everybody.
Writes all figures to DIR/FS.json, the tables to DIR/FS.txt and the plots to
DIR/FS."""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time

import counts
import goals
import plots
import push
import scale
import show
import storms
import tenants
import transactions
import waits
from place import (BUILD, COLUMNS, HELPER, LOAD, REFD, ROOT, NewestGit, Place,
                   Unavailable, probe_flush)
from rounds import Progress, Rounds

# Workload: who runs it, its seconds in a full run and a quick one, and in how
# many parts these are divided.
WORKLOADS = {
    "B1": (push.run, 140, 24, 2),
    "B2": (transactions.run, 100, 20, 2),
    "B3": (storms.storm, 110, 24, 2),
    "B3t": (storms.tails, 160, 24, 2),
    "B4": (storms.one_ref, 40, 8, 2),
    "B5": (tenants.run, 60, 12, 4),
    "B6": (storms.dear_flush, 60, 12, 3),
    "B7": (scale.packed, 60, 10, 2),
    "B8": (waits.run, 50, 14, 3),
    "B9": (scale.growth, 80, 12, 4),
    "counts": (counts.run, 40, 15, 1),
}


class Bench:
    def __init__(self, options):
        self.size_name = ("tiny" if options.tiny else
                          "quick" if options.quick else "full")
        self.least_rounds = 3 if self.size_name == "full" else 1
        self.names = options.only or list(WORKLOADS)
        share = {"full": 1, "quick": 2, "tiny": None}[self.size_name]
        plan = {n: WORKLOADS[n][share] if share else 0 for n in self.names}
        self.progress = Progress(plan)
        self.plan = plan
        self.missing = {}
        self.results = []
        self.minutes = options.minutes or self.size(full=0.5, quick=0.05,
                                                    tiny=0.005)
        self.more_records = [options.records] if options.records else []

    def sizes(self, **of):
        return of[self.size_name]

    size = sizes

    def run(self):
        for name in self.names:
            run, _, _, parts = WORKLOADS[name]
            self.progress.show(name, 0)
            rounds = Rounds(self, name, self.plan[name], parts)
            begun = time.monotonic()
            try:
                run(self, rounds)
            except Unavailable as why:
                self.missing[name] = str(why)
            self.results += rounds.results
            self.missing.update(rounds.missing)
            self.took(name, time.monotonic() - begun)
        self.progress.clear()

    def took(self, name, seconds):
        if os.environ.get("BENCH_TIMES"):
            print(f"{name}: {seconds:.1f} s", file=sys.stderr)


def options():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true",
                     help="in about three minutes, one turn for most")
    how.add_argument("--tiny", action="store_true",
                     help="a second for each: shows that it works, no more")
    parser.add_argument("--only", action="append", choices=WORKLOADS,
                        help="this workload, and others named like it")
    parser.add_argument("--minutes", type=float,
                        help="of steady load, in B9 (0.5)")
    parser.add_argument("--records", type=int,
                        help="in a journal, in B9, beside the others")
    parser.add_argument("--fs", default=None,
                        choices=("ext4", "xfs", "btrfs", "none"),
                        help="on a new file system of that kind (ext4), or "
                        "on DIR's own")
    parser.add_argument("--dir", default=os.path.join(BUILD, "bench"),
                        help="where it is done and its results stay")
    parser.add_argument("--size", type=int, default=12,
                        help="of the file system, GB; it is sparse")
    return parser.parse_args()


def in_own_mounts():
    """What is mounted here nobody else sees, and it goes with us."""
    if os.environ.get("BENCH_MOUNTS") == "own":
        return
    os.environ["BENCH_MOUNTS"] = "own"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])


def expect_built():
    wanted = [REFD, LOAD] + [os.path.join(HELPER, name) for name in (
        "hook_ok", "launch_git", "many_conns", "fill_journal",
        "preload_flush.so", "preload_turn.so")]
    missing = [path for path in wanted if not os.path.exists(path)]
    if missing:
        sys.exit(f"{missing[0]} is not built; make bench does that")


def machine(place):
    with open("/proc/cpuinfo") as f:
        models = [line.split(":")[1].strip() for line in f
                  if line.startswith("model name")]
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short",
                             "HEAD"], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL).stdout.strip()
    return {"cpu": models[0] if models else platform.machine(),
            "cores": os.cpu_count(), "kernel": platform.release(),
            "git": place.git.name or place.run("git", "--version").split()[-1],
            "refd": commit,
            "load": os.getloadavg()[0],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M")}


def write(opt, report, text):
    path = os.path.join(opt.dir, report["fs"])
    with open(f"{path}.json", "w") as f:
        json.dump(report, f, indent=1)
    with open(f"{path}.txt", "w") as f:
        f.write(text + "\n")


def main():
    opt = options()
    fs = opt.fs or ("none" if opt.tiny or os.geteuid() != 0 else "ext4")
    if fs != "none":
        in_own_mounts()
    expect_built()
    if not opt.tiny:
        NewestGit.fetch()
    bench = Bench(opt)
    place = bench.place = Place(opt.dir, fs, opt.size << 30)
    begun = time.monotonic()
    try:
        report = {"size": bench.size_name, "fs": fs, **machine(place)}
        report["flush"] = {c: probe_flush(place, us)
                           for c, us in COLUMNS.items()}
        print(show.flush_line(report), flush=True)
        bench.run()
    finally:
        place.close()
    report["results"] = bench.results
    report["missing"] = bench.missing
    report["seconds"] = time.monotonic() - begun
    report["claims"] = goals.all_claims(report)
    drawn = plots.draw(report, os.path.join(opt.dir, fs))
    text = show.whole(report)
    print(text)
    write(opt, report, text)
    print(f"\nall rounds are in {opt.dir}/{fs}.json")
    if drawn:
        print("plots: " + ", ".join(drawn))
    return 0
