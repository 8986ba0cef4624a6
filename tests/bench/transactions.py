"""B2: one client, one transaction of N new refs."""
from contestants import (GitCommand, Raw, RedisPeer, Refd, RefdCommand,
                         ReftableCommand, Rename, Sqlite, Stage)
from place import COLUMNS

# A command is measured once in a turn; who has a connection goes on, so that
# its first transaction doesn't stand for all.
COMMANDS = ("git", "git durable", "reftable", "reftable durable", "refd",
            "refd reftable")
CONNECTED = ("refd connected", "refd connected reftable", "redis", "sqlite",
             "raw log", "rename floor")
# More refs are a comparison of the formats alone.
MANY = 100_000


def several(kind):
    """KIND, with as many transactions in a turn as are soon done."""
    class Several(kind):
        def enters(self, point, labels):
            return point["refs"] < MANY or "reftable" in self.name

        def measure(self, turn):
            refs = turn.point["refs"]
            txns = 20 if refs < 10 else 5 if refs < 1000 else 2
            return self.load(turn, dict(turn.point, txns=txns))
    return Several


def contestants(stage):
    return [
        GitCommand(stage, "git", "command", False),
        GitCommand(stage, "git durable", "command", True),
        ReftableCommand(stage, "reftable", "command", ("core.fsync", "none")),
        ReftableCommand(stage, "reftable durable", "command"),
        RefdCommand(stage, "refd", "command"),
        RefdCommand(stage, "refd reftable", "command"),
        several(Refd)(stage, "refd connected", "refd"),
        several(Refd)(stage, "refd connected reftable", "refd"),
        several(RedisPeer)(stage, "redis", "redis"),
        several(Sqlite)(stage, "sqlite", "sqlite"),
        several(Raw)(stage, "raw log", "raw"),
        several(Rename)(stage, "rename floor", "rename"),
    ]


def run(bench, rounds):
    points = [{"refs": n} for n in bench.sizes(
        full=(1, 10, 100, 1000, 10000, MANY), quick=(1, 100, 1000),
        tiny=(1, 3))]
    for column, delay_us in COLUMNS.items():
        bench.place.renew()
        rounds.run(points, contestants(Stage(bench.place, delay_us)),
                   column=column)
