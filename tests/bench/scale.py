"""B7: repositories with very many packed refs. B9: transactions of any size,
a journal that grows, and minutes under a steady load."""
import os
import time

from contestants import (GitCommand, Refd, RefdCommand, ReftableCommand,
                         Stage)
from place import HELPER, load

PACKED = "refs/tags/packed"


# ---- B7 ----

def large(kind):
    """KIND in one large repository, which stays from turn to turn."""
    class Large(kind):
        def prepare(self, point):
            if not hasattr(self, "kept"):
                self.kept = super().prepare(point)
                self.fill(point["packed"])
                self.nr = 0
            self.kept.point, self.kept.parts = point, []
            return self.kept

        def warm(self, turn):
            # The repository is known from the first time on.
            if self.nr == 0:
                super().warm(turn)

        def fill(self, packed):
            oid = self.stage.oids[0]
            path = os.path.join(self.kept.path, "packed-refs")
            with open(path, "w") as f:
                f.write("# pack-refs with: peeled fully-peeled sorted \n")
                f.writelines(f"{oid} {PACKED}/{i:08d}\n"
                             for i in range(packed))

        def measure(self, turn):
            """A create, an update, a delete, and ten deletes at once."""
            oids, at = self.stage.oids, self.nr * 12
            self.nr += 1
            one = f"{PACKED}/{{:08d}}".format
            before = self.stage.daemon.stats()
            got = {
                "create_ms": self.do(
                    turn, [f"create refs/tags/new/{at} {oids[0]}"]),
                "update_ms": self.do(
                    turn, [f"update {one(at)} {oids[1]} {oids[0]}"]),
                "delete_ms": self.do(turn, [f"delete {one(at + 1)}"]),
                "ten_deletes_ms": self.do(
                    turn, [f"delete {one(at + i)}" for i in range(2, 12)])}
            after = self.stage.daemon.stats()
            got["flushes"] = after["flushes"] - before["flushes"]
            return got

        def do(self, turn, lines):
            path = os.path.join(self.stage.place.fresh(), "input")
            with open(path, "w") as f:
                f.write("\n".join(lines) + "\n")
            got = load(self.stage.place, "command", {"txns": 1},
                       self.stage.delay_us, "--input", path,
                       command=self.words(turn))
            if got["done"] != 1:
                raise RuntimeError(f"{self.name}: {lines[0]}: failed")
            return got["p50_us"] / 1000

        def check(self, turn):
            """Each time eleven were deleted and one made."""
            nr = len(self.stage.place.run(
                "git", "-C", turn.path, "for-each-ref",
                "--format=%(refname)", "refs/tags").splitlines())
            if nr != turn.point["packed"] - 10 * self.nr:
                raise RuntimeError(f"{self.name}: {nr} refs are there")
    return Large


class LargeReftable(large(ReftableCommand)):
    def fill(self, packed):
        turn = self.kept
        self.stage.place.run(
            *turn.command, "-C", turn.path, "update-ref", "--stdin",
            input="".join(
                f"create {PACKED}/{i:08d} {self.stage.oids[0]}\n"
                for i in range(packed)))


def packed(bench, rounds):
    """The one of twelve refs stands for an empty repository."""
    points = [{"packed": n} for n in bench.sizes(
        full=(12 * 25, 1000000), quick=(12 * 25, 50000), tiny=(30,))]
    bench.place.renew()
    stage = Stage(bench.place, 0)
    for point in points:
        rounds.run([point], [
            large(GitCommand)(stage, "git durable", "command", True),
            LargeReftable(stage, "reftable durable", "command"),
            large(RefdCommand)(stage, "refd", "command")])


# ---- B9 ----

class Growing(Refd):
    """Transactions of N refs on one connection."""

    def measure(self, turn):
        refs = turn.point["refs"]
        txns = 20 if refs <= 100 else 2 if refs <= 1000 else 1
        before = self.stage.daemon.memory_kb()
        got = self.load(turn, dict(turn.point, txns=txns))
        grown = self.stage.daemon.memory_kb() - before
        return {"us_each": got["p50_us"] / refs, "ms": got["p50_us"] / 1000,
                "memory_kb": self.stage.daemon.memory_kb(),
                "bytes_each": grown * 1024 / refs}


class Laden(Refd):
    """A daemon whose journal has many records already."""

    def prepare(self, point):
        turn = super().prepare(point)
        daemon = self.stage.daemon
        daemon.warm(turn.path, self.stage.oids[0])
        if getattr(self, "records", 0) < point["records"]:
            daemon.stop()
            self.stage.place.run(
                os.path.join(HELPER, "fill_journal"), daemon.state,
                str(point["records"] - getattr(self, "records", 0)),
                turn.path)
            self.records = point["records"]
            begun = time.monotonic()
            daemon.start()
            self.start_s = time.monotonic() - begun
        return turn

    def measure(self, turn):
        got = self.load(turn, {"clients": 1, "seconds": turn.point["seconds"]})
        return {"p50_ms": got["p50_us"] / 1000,
                "p99_ms": got["p99_us"] / 1000,
                "max_ms": got["max_us"] / 1000,
                "start_s": getattr(self, "start_s", 0)}


class Steady(Refd):
    """Minutes at one rate, a slice after the other."""

    def measure(self, turn):
        slices = []
        point = turn.point
        begun = time.monotonic()
        while time.monotonic() - begun < point["minutes"] * 60:
            got = load(self.stage.place, "refd", {
                "clients": 16, "rate": point["rate"],
                "seconds": point["slice"], "action": "move"},
                self.stage.delay_us, *turn.more, "--oid", self.stage.oids[0],
                "--oid", self.stage.oids[1],
                "--prefix", f"refs/heads/steady{len(slices) % 100}x"
                f"{len(slices) // 100}")
            if got["failed"]:
                raise RuntimeError(f"{got['failed']} updates failed")
            slices.append({
                "at_s": time.monotonic() - begun, "p50_ms":
                got["p50_us"] / 1000, "p99_ms": got["p99_us"] / 1000,
                "done": got["done"],
                "memory_kb": self.stage.daemon.memory_kb()})
        return {"slices": slices}

    def check(self, turn):
        pass


def growth(bench, rounds):
    refs = [{"refs": n} for n in bench.sizes(
        full=(1, 10, 100, 1000, 10000, 100000), quick=(1, 100, 1000, 10000),
        tiny=(1, 10))]
    records = [{"records": n, "seconds": bench.size(full=1, quick=0.5,
                                                    tiny=0.1)}
               for n in bench.sizes(full=(0, 100000, 1000000),
                                    quick=(0, 50000), tiny=(0, 1000))]
    bench.place.renew()
    stage = Stage(bench.place, 0)
    rounds.run(refs, [Growing(stage, "refd", "refd")])
    laden = Laden(stage, "refd", "refd")
    for point in records + [{"records": n, "seconds": 2}
                            for n in bench.more_records]:
        rounds.run([point], [laden])
    bench.place.renew()
    steady = Steady(Stage(bench.place, 0), "refd", "refd")
    rounds.once({"minutes": bench.minutes, "rate": 200,
                 "slice": bench.size(full=2, quick=1, tiny=0.1)}, steady)
