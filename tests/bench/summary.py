"""The table of docs/benchmarks.md: the figures that decide, of one run, beside
those of git and the floor. A cell has both columns of flushes. The claims of
goals.py judge a row, so that this table agrees with the long table."""
from collections import namedtuple

from place import COLUMNS
from rounds import middle
from show import short

# POINT selects the size. PEERS are the durable, the kept-alive and the
# unsynced git of the row. FLOOR is a function. GOALS are claims, each with
# words for a reader, and {} for the limit.
Row = namedtuple("Row", "what workload metric divisor point who peers floor "
                 "goals")
FILES = ("git durable", "git kept alive", "git")
NO_GIT = (None, None, None)
# As goals.py has the limits: a flush and 2 ms, or two flushes, above a hook.
FEW, MANY = "the floor + 2 ms", "the floor + a flush"
FASTER = "{} times as fast as durable git"


def measured(report, row, who, column, metric=None):
    value = middle(report["results"], metric or row.metric,
                   workload=row.workload, contestant=who, column=column,
                   **row.point)
    return value / row.divisor if value is not None else None


def raw_log(report, row, column):
    return measured(report, row, "raw log", column)


def hook_and_flush(report, row, column):
    """No push with a hook is durable sooner."""
    hook = measured(report, row, "hook only", column)
    return hook + report["flush"][column]["median_ms"] if hook else None


def round_trip(report, row, column):
    return measured(report, row, row.who, column, "trip_ms")


def refs(n):
    return "1 ref" if n == 1 else f"{n:,} refs"


def clients(n):
    return "1 client" if n == 1 else f"{n} clients"


def push(n, *goals, what="a push of", who="refd", peers=FILES):
    return Row(f"{what} {refs(n)}, ms", "B1", "p50_us", 1000, {"refs": n},
               who, peers, hook_and_flush, goals)


def transaction(n, *goals, what="a transaction of", who="refd", peers=FILES):
    return Row(f"{what} {refs(n)}, ms", "B2", "p50_us", 1000, {"refs": n},
               who, peers, raw_log, goals)


def storm(n, *goals, what="a storm of", who="refd", peers=FILES):
    return Row(f"{what} {clients(n)}, updates/s", "B3", "per_second", 1,
               {"clients": n}, who, peers, raw_log, goals)


def tail(n):
    return Row(f"p99 at half the rate, {clients(n)}, ms", "B3t",
               "p99_ms", 1, {"clients": n}, "refd", FILES, raw_log,
               ((f"p99 of refd : raw log, {n} clients", "{} times the floor"),
                (f"p99 of refd : git kept alive, {n} clients",
                 "kept-alive git"),
                (f"p99 of refd : git durable, {n} clients", "durable git")))


IN_REFTABLES = {"who": "refd reftable", "peers": (
    "reftable durable", "reftable patient", "reftable")}
ROWS = (
    push(1, ("refd - durable git, ms, N=1", "durable git"),
         ("flushes that refd takes longer than a hook, N=1", FEW)),
    push(100, ("durable git : refd, N=100", FASTER),
         ("unsynced git : refd, N=100", "unsynced git"),
         ("flushes that refd takes longer than a hook, N=100", FEW)),
    push(1000, ("durable git : refd, N=1000", FASTER),
         ("unsynced git : refd, N=1000", "unsynced git"),
         ("flushes that refd takes longer than a hook, N=1000", MANY)),
    transaction(1),
    transaction(100, ("durable git : refd, N=100", FASTER),
                ("unsynced git : refd, N=100", "unsynced git")),
    transaction(1000, ("durable git : refd, N=1000", FASTER),
                ("unsynced git : refd, N=1000", "unsynced git")),
    storm(1, ("refd : kept-alive git, 1 clients", "kept-alive git")),
    storm(16, ("refd : kept-alive git, 16 clients", "kept-alive git")),
    storm(64, ("refd : kept-alive git, 64 clients", "{} times kept-alive git"),
          ("refd : durable git, 64 clients", "{} times durable git")),
    storm(256, ("refd : kept-alive git, 256 clients",
                "{} times kept-alive git")),
    tail(1),
    tail(64),
    Row("an update of an idle daemon, ms above a flush", "B8", "above_ms", 1,
        {}, "one update", NO_GIT, round_trip,
        (("one update when idle, ms above a flush", "{}"),)),
    push(1, ("durable reftable : refd to a reftable, N=1", "durable git"),
         what="reftables: a push of", **IN_REFTABLES),
    transaction(1000, ("durable reftable : refd to a reftable, N=1000",
                       FASTER),
                what="reftables: a transaction of", **IN_REFTABLES),
    storm(64, ("refd to a reftable : patient reftable, 64 clients",
               "{} times kept-alive git"),
          what="reftables: a storm of", **IN_REFTABLES),
)


def limit(claim):
    """The goal, or the first bar where there is no goal."""
    return claim["goal"] or claim["bar"]


def is_missed(claim):
    return (claim["goal_said"] or claim["bar_said"]) == "NO"


def judges(row, what, claims):
    """The claim, by the column of flushes."""
    found = ((c, claims.get((row.workload, what, c))) for c in COLUMNS)
    return {c: claim for c, claim in found if claim and limit(claim)}


def goals(row, claims):
    for what, words in row.goals:
        mine = judges(row, what, claims)
        if mine:
            limits = dict.fromkeys(limit(claim).split()[-1]
                                   for claim in mine.values())
            only = "" if len(mine) == len(COLUMNS) else \
                f" ({next(iter(mine)).removesuffix(' flush')})"
            yield words.format(" / ".join(limits)) + only


def figure(value):
    """Three digits, which the spread of the rounds leaves of a value."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else short(value)


def cell(values, missed=()):
    """VALUES by the column of flushes; MISSED are those in bold."""
    if all(value is None for value in values.values()):
        return "-"
    return " / ".join(
        "-" if value is None else
        f"**{figure(value)}**" if column in missed else figure(value)
        for column, value in values.items())


def cells(report, claims, row):
    missed = {column for what, _ in row.goals for column, claim in
              judges(row, what, claims).items() if is_missed(claim)}
    yield row.what
    yield "; ".join(goals(row, claims)) or "-"
    yield cell({c: measured(report, row, row.who, c) for c in COLUMNS}, missed)
    for who in row.peers:
        yield cell({c: measured(report, row, who, c) for c in COLUMNS})
    yield cell({c: row.floor(report, row, c) for c in COLUMNS})


def table(report, claims):
    """CLAIMS by workload, what and column. Rows without a figure of refd are
    left out."""
    yield ("| what | goal | refd | durable git | kept-alive git | "
           "unsynced git | floor |")
    yield "|---" * 7 + "|"
    for row in ROWS:
        if any(measured(report, row, row.who, c) is not None
               for c in COLUMNS):
            yield "| " + " | ".join(cells(report, claims, row)) + " |"
