"""B3, B3t, B4, B6: many clients, one ref each time, one repository."""
import os

from contestants import (Git, Raw, RedisPeer, Refd, Reftable, Sqlite, Stage)
from place import COLUMNS, load


def stormy(kind):
    """KIND, as fast as it goes."""
    class Stormy(kind):
        def measure(self, turn):
            seconds = turn.point["seconds"]
            shape = {"clients": turn.point["clients"], "seconds": seconds}
            before = self.stage.daemon.stats()
            full = self.load(turn, shape)
            after = self.stage.daemon.stats()
            got = {
                "per_second": full["done"] / full["seconds"],
                "failed": full["failed"], "seconds": full["seconds"],
                "closed_p50_ms": full["p50_us"] / 1000,
                "closed_p99_ms": full["p99_us"] / 1000,
                "batches": after["store_batches"] - before["store_batches"],
                "flushes": after["flushes"] - before["flushes"],
            }
            return got
    return Stormy


def tail(kind):
    """KIND by two loads: as fast as it goes, and then, to see how long one
    takes, at half of that, by a clock that does not wait for the answers."""
    class Tail(stormy(kind)):
        def enters(self, point, labels):
            return self.on != "git" or point["clients"] <= 64

        def measure(self, turn):
            got = super().measure(turn)
            if got["per_second"] == 0:
                return got
            got["rate"] = got["per_second"] / 2
            part = self.load(
                turn, {"clients": turn.point["clients"],
                       "seconds": turn.point["open_seconds"],
                       "rate": f"{got['rate']:.3f}"},
                prefix="refs/heads/load/open")
            got["failed"] += part["failed"]
            if part["done"]:
                got.update(p50_ms=part["p50_us"] / 1000,
                           p99_ms=part["p99_us"] / 1000)
            return got
    return Tail


def contestants(stage):
    return [
        stormy(Git)(stage, "git durable", "git", True),
        stormy(Git)(stage, "git kept alive", "kept", True),
        stormy(Reftable)(stage, "reftable kept alive", "kept"),
        stormy(Reftable)(stage, "reftable patient", "kept",
                         ("reftable.lockTimeout", "-1")),
        stormy(Refd)(stage, "refd", "refd"),
        stormy(Refd)(stage, "refd reftable", "refd"),
        stormy(RedisPeer)(stage, "redis", "redis"),
        stormy(Sqlite)(stage, "sqlite", "sqlite"),
        stormy(Raw)(stage, "raw log", "raw"),
    ]


def storm(bench, rounds):
    seconds = bench.size(full=0.4, quick=0.3, tiny=0.1)
    points = [{"clients": n, "seconds": seconds} for n in bench.sizes(
        full=(1, 16, 64, 256), quick=(1, 16, 64), tiny=(1, 3))]
    for column, delay_us in COLUMNS.items():
        bench.place.renew()
        rounds.run(points, contestants(Stage(bench.place, delay_us)),
                   column=column)


def tails(bench, rounds):
    """Long enough for some checkpoints."""
    points = [{"clients": n, "seconds": bench.size(full=0.3, quick=0.3,
                                                   tiny=0.1),
               "open_seconds": bench.size(full=1.5, quick=0.6, tiny=0.2)}
              for n in bench.sizes(full=(1, 16, 64, 256),
                                   quick=(1, 16, 64), tiny=(1, 3))]
    for column, delay_us in COLUMNS.items():
        bench.place.renew()
        stage = Stage(bench.place, delay_us)
        rounds.run(points, [tail(Git)(stage, "git durable", "git", True),
                            tail(Git)(stage, "git kept alive", "kept", True),
                            tail(Refd)(stage, "refd", "refd"),
                            tail(Raw)(stage, "raw log", "raw")],
                   column=column)


# ---- B4 ----

def swapping(kind):
    class Swapping(kind):
        def measure(self, turn):
            turn.got = load(
                self.stage.place, self.on,
                {"clients": turn.point["clients"],
                 "seconds": turn.point["seconds"], "action": "swap"},
                self.stage.delay_us, *turn.more,
                *(w for oid in self.stage.oids for w in ("--oid", oid)),
                command=turn.command)
            got = turn.got
            return {"per_second": got["done"] / got["seconds"],
                    "answered": (got["done"] + got["beaten"]) /
                    got["seconds"], "failed": got["failed"],
                    "least": got["least"], "most": got["most"],
                    "max_ms": got["max_us"] / 1000, "lost": self.lost(turn)}

        def lost(self, turn):
            """Each swap that was answered moved the ref by one."""
            oids = self.stage.oids
            _, found = self.there(turn)
            at = oids.index(found.pop()) + 1 if found else 0
            return (turn.got["done"] - at) % len(oids)

        def check(self, turn):
            if self.lost(turn):
                raise RuntimeError(f"{self.name}: swaps were lost")
    return Swapping


class Again(Refd):
    """One client, first new refs, then one ref again and again. After an
    update, refd leaves the ref alone for as long as the ref was locked; at
    most this rest is added to the time of an update."""

    def spent_us(self):
        stats = self.stage.daemon.stats()
        return (sum(stats[f"{stage}_us_sum"]
                    for stage in ("lock", "flush", "publish")),
                stats["batches"])

    def measure(self, turn):
        shape = {"clients": 1, "seconds": turn.point["seconds"]}
        before, batches = self.spent_us()
        new = self.load(turn, shape)
        after, more = self.spent_us()
        again = load(self.stage.place, self.on, dict(shape, action="move"),
                     self.stage.delay_us, *turn.more,
                     "--prefix", "refs/heads/again",
                     *(w for oid in self.stage.oids[:2]
                       for w in ("--oid", oid)))
        if not new["done"] or not again["done"] or again["failed"]:
            raise RuntimeError("one ref again and again: updates failed")
        return {"new_ms": new["seconds"] * 1000 / new["done"],
                "again_ms": again["seconds"] * 1000 / again["done"],
                "rest_ms": (after - before) / (more - batches) / 1000}


def one_ref(bench, rounds):
    seconds = bench.size(full=0.5, quick=0.5, tiny=0.1)
    points = [{"clients": n, "seconds": seconds} for n in bench.sizes(
        full=(1, 16, 64), quick=(1, 16, 64), tiny=(1, 3))]
    for column, delay_us in COLUMNS.items():
        bench.place.renew()
        stage = Stage(bench.place, delay_us)
        rounds.run(points, [swapping(Git)(stage, "git durable", "git", True),
                            swapping(Refd)(stage, "refd", "refd")],
                   column=column)
        rounds.run([{"again": 1, "seconds": seconds}],
                   [Again(stage, "refd", "refd")], column=column)


# ---- B6 ----

def dear_flush(bench, rounds):
    """B3 has the flush of the disk without a delay."""
    seconds = bench.size(full=0.5, quick=0.3, tiny=0.1)
    points = [{"clients": n, "seconds": seconds}
              for n in bench.sizes(full=(1, 16, 256), quick=(1, 16, 64),
                                   tiny=(1, 3))]
    for delay_ms in bench.sizes(full=(5, 10, 20), quick=(5, 20), tiny=(0, 5)):
        bench.place.renew()
        stage = Stage(bench.place, delay_ms * 1000)
        rounds.run(points, [
            stormy(Git)(stage, "git kept alive", "kept", True),
            stormy(Refd)(stage, "refd", "refd"),
            stormy(RedisPeer)(stage, "redis", "redis")], delay_ms=delay_ms)
