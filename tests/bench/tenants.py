"""B5: many repositories at once, and one very large transaction beside small
ones of others."""
import os
import shutil
import subprocess
import time
from types import SimpleNamespace

from contestants import Contestant, Refd, RefdCommand, Stage
from place import COLUMNS, load


class Tenants(Contestant):
    """A client for each repository, and each makes one ref."""

    def prepare(self, point):
        path = self.stage.place.fresh()
        for i in range(point["repos"]):
            to = os.path.join(path, f"{i}.git")
            shutil.copytree(self.stage.template, to)
            if self.name == "git durable":
                with open(os.path.join(to, "config"), "a") as f:
                    f.write("[core]\n\tfsync = objects,reference\n")
        return SimpleNamespace(
            point=point, path=path, parts=[],
            command=self.stage.place.git.command if self.on == "git" else (),
            more=(*(("--path", self.stage.daemon.socket)
                    if self.on == "refd" else ()),
                  "--repo", path, "--repos", str(point["repos"])))

    def warm(self, turn):
        """The second ref of each is measured, too: nobody's first is."""
        turn.first = self.once(turn, "refs/heads/load/first")

    def once(self, turn, prefix):
        before = self.stage.daemon.stats()
        got = self.load(turn, {"clients": turn.point["repos"], "txns": 1},
                        prefix=prefix)
        after = self.stage.daemon.stats()
        said = {"seconds": got["seconds"], "failed": got["failed"],
                "max_ms": got["max_us"] / 1000}
        if self.on == "refd":
            said["flushes"] = after["flushes"] - before["flushes"]
            said["flushes_each"] = said["flushes"] / turn.point["repos"]
        return said

    def measure(self, turn):
        got = self.once(turn, "refs/heads/load/second")
        got.update(first=turn.first,
                   per_second=turn.point["repos"] / got["seconds"])
        return got

    def there(self, turn):
        nr = 0
        for folder, _, names in os.walk(turn.path):
            if "/refs/heads/load" in folder:
                nr += len(names)
        return nr, set()

    def leave(self, turn):
        if self.on == "refd":
            self.stage.daemon.checkpoint()


class Beside(RefdCommand):
    """Small transactions come at a steady rate, first alone, then while a
    large one goes to another repository."""
    RATE = 100

    def prepare(self, point):
        turn = super().prepare(point)
        turn.small = Refd.prepare(self, point)
        return turn

    def warm(self, turn):
        super().warm(turn)
        super().warm(turn.small)

    def small_load(self, turn, seconds, prefix):
        return load(self.stage.place, "refd",
                    {"clients": 8, "rate": self.RATE,
                     "seconds": f"{seconds:.2f}", "action": "move"},
                    self.stage.delay_us, *turn.small.more, "--prefix", prefix,
                    "--oid", self.stage.oids[0], "--oid", self.stage.oids[1])

    def measure(self, turn):
        command, path = self.whole(turn)
        begun = time.monotonic()
        with open(path) as stdin:
            self.stage.place.run(*command, stdin=stdin)
        took = time.monotonic() - begun
        turn.parts.append(({"done": 1}, turn.point))
        self.stage.daemon.checkpoint()
        alone = self.small_load(turn, max(took, 0.5), "refs/heads/alone")
        beside = self.both(turn, command, path, max(0.9 * took, 0.2))
        return {"large_seconds": took, "alone_p99_ms": alone["p99_us"] / 1000,
                "beside_p99_ms": beside["p99_us"] / 1000,
                "ratio": beside["p99_us"] / (alone["p99_us"] or 1),
                "failed": alone["failed"] + beside["failed"]}

    def both(self, turn, command, path, seconds):
        """The same refs again, moved to where they are: as much to do."""
        again = path + ".again"
        with open(path) as old, open(again, "w") as new:
            for line in old:
                _, name, oid = line.split()
                new.write(f"update {name} {self.stage.oids[1]} {oid}\n")
        with open(again) as stdin:
            large = subprocess.Popen(command, stdin=stdin,
                                     env=self.stage.place.env)
        try:
            return self.small_load(turn, seconds, "refs/heads/beside")
        finally:
            if large.wait() != 0:
                raise RuntimeError("the large transaction failed")


def run(bench, rounds):
    repos = [{"repos": n} for n in bench.sizes(full=(400,), quick=(200,),
                                               tiny=(4,))]
    large = [{"refs": n} for n in bench.sizes(full=(100000,), quick=(10000,),
                                              tiny=(50,))]
    for column, delay_us in COLUMNS.items():
        bench.place.renew()
        stage = Stage(bench.place, delay_us)
        rounds.run(repos, [Tenants(stage, "git durable", "git"),
                           Tenants(stage, "refd", "refd")], column=column)
        rounds.run(large, [Beside(stage, "refd", "refd")], column=column)
