"""Where refd is to stand: each claim with the figure that was measured, the
bar that it has to pass and the goal it is meant to reach."""
from place import CHEAP, COLUMNS, DEAR, median
from rounds import middle, values


class Claims:
    def __init__(self, report):
        self.report = report
        self.results = report["results"]
        self.made = []

    def flush_ms(self, column):
        return self.report["flush"][column]["median_ms"]

    def median(self, workload, metric, **wanted):
        return middle(self.results, metric, workload=workload, **wanted)

    def points(self, workload, key):
        return sorted({r["point"][key] for r in self.results
                       if r["workload"] == workload and key in r["point"]})

    def ratio(self, workload, metric, above, below, **wanted):
        a = self.median(workload, metric, contestant=above, **wanted)
        b = self.median(workload, metric, contestant=below, **wanted)
        return a / b if a is not None and b else None

    def add(self, workload, what, value, bar=None, goal=None, column=None,
            most=False):
        """MOST: the figure is to be no more than that, else no less."""
        def judged(limit):
            if limit is None:
                return "", ""
            said = f"{'<=' if most else '>='} {limit:.3g}"
            if value is None:
                return said, "?"
            met = value <= limit if most else value >= limit
            return said, "yes" if met else "NO"

        (bar_text, bar_said), (goal_text, goal_said) = judged(bar), \
            judged(goal)
        self.made.append(dict(
            workload=workload, what=what, column=column, value=value,
            bar=bar_text, bar_said=bar_said, goal=goal_text,
            goal_said=goal_said))


def pushes(c):
    for column, n, bar in ((CHEAP, 100, 1.5), (CHEAP, 1000, 3),
                           (DEAR, 100, 15), (DEAR, 1000, 40)):
        c.add("B1", f"durable git : refd, N={n}",
              c.ratio("B1", "p50_us", "git durable", "refd", refs=n,
                      column=column), bar=bar, column=column)
    for n in (100, 1000):
        c.add("B1", f"unsynced git : refd, N={n}",
              c.ratio("B1", "p50_us", "git", "refd", refs=n, column=CHEAP),
              goal=1, column=CHEAP)
    for column in COLUMNS:
        refd, git = (c.median("B1", "p50_us", contestant=w, refs=1,
                              column=column) for w in ("refd", "git durable"))
        c.add("B1", "refd - durable git, ms, N=1",
              (refd - git) / 1000 if refd and git else None, goal=0,
              most=True, column=column)
    flush_ms = c.flush_ms(DEAR)
    for n in c.points("B1", "refs"):
        refd, hook = (c.median("B1", "p50_us", contestant=w, refs=n,
                               column=DEAR) for w in ("refd", "hook only"))
        c.add("B1", f"flushes that refd takes longer than a hook, N={n}",
              (refd - hook) / 1000 / flush_ms if refd and hook else None,
              goal=1 + 2 / flush_ms if n <= 100 else 2, most=True,
              column=DEAR)
    for column in COLUMNS:
        for n in c.points("B1", "refs"):
            c.add("B1", f"durable reftable : refd, N={n}",
                  c.ratio("B1", "p50_us", "reftable durable", "refd", refs=n,
                          column=column), column=column)
            c.add("B1", f"durable reftable : refd to a reftable, N={n}",
                  c.ratio("B1", "p50_us", "reftable durable", "refd reftable",
                          refs=n, column=column), goal=1, column=column)


def transactions(c):
    for column, n, bar, goal in ((CHEAP, 1000, 4, 8), (DEAR, 100, 30, 50)):
        c.add("B2", f"durable git : refd, N={n}",
              c.ratio("B2", "p50_us", "git durable", "refd", refs=n,
                      column=column), bar=bar, goal=goal, column=column)
    for n in c.points("B2", "refs"):
        if n >= 100:
            c.add("B2", f"unsynced git : refd, N={n}",
                  c.ratio("B2", "p50_us", "git", "refd", refs=n,
                          column=CHEAP), goal=1, column=CHEAP)
    for column in COLUMNS:
        for n in c.points("B2", "refs"):
            c.add("B2", f"durable reftable : refd, N={n}",
                  c.ratio("B2", "p50_us", "reftable durable", "refd", refs=n,
                          column=column), column=column)
            c.add("B2", f"durable reftable : refd to a reftable, N={n}",
                  c.ratio("B2", "p50_us", "reftable durable", "refd reftable",
                          refs=n, column=column),
                  goal=1 if column == CHEAP else 2, column=column)
    if 10000 in c.points("B2", "refs"):
        c.add("B2", "refd to a reftable : unsynced reftable, N=10000",
              c.ratio("B2", "p50_us", "refd reftable", "reftable", refs=10000,
                      column=CHEAP), goal=1.2, most=True, column=CHEAP)


def storms(c):
    for column, bar, goal in ((CHEAP, 5, 10), (DEAR, 4, 6)):
        failed = values(c.results, "failed", workload="B3",
                        contestant="refd", column=column)
        c.add("B3", "failures", sum(failed) if failed else None, bar=0,
              goal=0, most=True, column=column)
        failed = values(c.results, "failed", workload="B3",
                        contestant="refd reftable", column=column)
        c.add("B3", "failures in a reftable", sum(failed) if failed else None,
              goal=0, most=True, column=column)
        c.add("B3", "refd to a reftable : patient reftable, 64 clients",
              c.ratio("B3", "per_second", "refd reftable", "reftable patient",
                      clients=64, column=column), goal=10, column=column)
        c.add("B3", "refd : durable git, 64 clients",
              c.ratio("B3", "per_second", "refd", "git durable", clients=64,
                      column=column), bar=bar, goal=goal, column=column)
        for n in c.points("B3", "clients"):
            c.add("B3", f"refd : kept-alive git, {n} clients",
                  c.ratio("B3", "per_second", "refd", "git kept alive",
                          clients=n, column=column),
                  bar=1 if n == 64 else None, goal=2 if n >= 64 else 1,
                  column=column)


def tails(c):
    most = max(c.points("B3t", "clients"))
    for column in COLUMNS:
        best = c.median("B3t", "per_second", contestant="refd", clients=most,
                        column=column)
        for n in c.points("B3t", "clients"):
            who = f", {n} clients"
            for peer, bar, goal in (("raw log", None, 2),
                                    ("git kept alive", None, 1),
                                    ("git durable", 1, None)):
                c.add("B3t", f"p99 of refd : {peer}{who}",
                      c.ratio("B3t", "p99_ms", "refd", peer, clients=n,
                              column=column), bar=bar, goal=goal, most=True,
                      column=column)
            late = [c.median("B3t", m, contestant="refd", clients=n,
                             column=column)
                    for m in ("p99_ms", "closed_p99_ms")]
            unit = c.flush_ms(column) + n * 1000 / best if best else None
            c.add("B3t", f"p99 : (flush + clients x cost of a ref){who}",
                  max(late) / unit if unit and None not in late else None,
                  goal=3, most=True, column=column)


def one_ref(c):
    for column in COLUMNS:
        lost = values(c.results, "lost", workload="B4", contestant="refd",
                      column=column)
        c.add("B4", "swaps lost", sum(lost) if lost else None, bar=0, goal=0,
              most=True, column=column)
        # In the order of arrival each client is answered once before any is
        # answered again.
        apart = [
            high - low for low, high in zip(
                values(c.results, "least", workload="B4", contestant="refd",
                       column=column),
                values(c.results, "most", workload="B4", contestant="refd",
                       column=column))]
        c.add("B4", "answers to who got most, less those to who got fewest",
              max(apart) if apart else None, goal=1, most=True,
              column=column)
        again, new, rest = (c.median("B4", m, contestant="refd", again=1,
                                     column=column)
                            for m in ("again_ms", "new_ms", "rest_ms"))
        c.add("B4", "an update of one ref again and again : (of a new ref + "
              "the rest), 1 client", again / (new + rest) if new else None,
              goal=1, most=True, column=column)


def tenants(c):
    for column in COLUMNS:
        c.add("B5", "flushes for each repository that gets a ref",
              c.median("B5", "flushes_each", contestant="refd",
                       column=column), goal=0.5, most=True, column=column)
        c.add("B5", "p99 beside a large transaction : alone",
              c.median("B5", "ratio", contestant="refd", column=column),
              goal=5, most=True, column=column)


def dear_flush(c):
    most = max(c.points("B6", "clients"), default=0)
    for delay in (5, 10, 20):
        runs = [r for r in c.results if r["workload"] == "B6" and
                r["contestant"] == "refd" and r.get("delay_ms") == delay and
                r["point"]["clients"] == most]
        each = [run["seconds"] * 1000 / run["flushes"] / (delay + c.flush_ms(
            CHEAP)) for r in runs for run in r["runs"] if run["flushes"]]
        c.add("B6", f"time of a batch : flush, {delay} ms, {most} clients",
              median(each) if each else None, goal=1.5, most=True)
        one, many = (c.median("B6", "per_second", contestant="refd",
                              delay_ms=delay, clients=n) for n in (1, most))
        c.add("B6", f"updates/s, {most} clients : 1, {delay} ms",
              many / one if one and many else None, goal=most / 4)


def packed(c):
    sizes = c.points("B7", "packed")
    for what in ("create", "update"):
        small, large = (c.median("B7", f"{what}_ms", contestant="refd",
                                 packed=n) for n in (sizes[0], sizes[-1]))
        c.add("B7", f"one {what}, {sizes[-1]:,} packed refs : few",
              large / small if small and large else None, goal=1.5, most=True)
    one, ten = (c.median("B7", f"{what}_ms", contestant="refd",
                         packed=sizes[-1])
                for what in ("delete", "ten_deletes"))
    c.add("B7", "ten deletions at once : one",
          ten / one if one and ten else None, goal=1.3, most=True)


def waits(c):
    for column in COLUMNS:
        c.add("B8", "one update when idle, ms above a flush",
              c.median("B8", "above_ms", contestant="one update",
                       column=column), goal=0.3, most=True, column=column)
        for metric, what in (("trip_ms", "of that, a round trip by socket"),
                             ("admit_ms", "of that, admission"),
                             ("lock_ms", "of that, locks and staging"),
                             ("publish_ms", "of that, publishing"),
                             ("command_ms", "the same by the command")):
            c.add("B8", f"{what}, ms", c.median(
                "B8", metric, contestant="one update", column=column),
                column=column)
        for metric, what, goal in (
                ("turn_cpu_max_ms", "longest turn of the loop in a storm, ms "
                 "of processor time", 1),
                ("turn_max_ms", "the same, ms", None)):
            c.add("B8", what, c.median(
                "B8", metric, contestant="ping beside a storm",
                column=column), goal=goal, most=True, column=column)

    def starts(metric):
        return c.median("B8", metric, contestant="starts")

    def mb(kb):
        return kb / 1024 if kb else None

    many = max(c.points("B8", "connections"), default=0)
    c.add("B8", "idle memory, MB", mb(starts("idle_kb")), goal=10, most=True)
    c.add("B8", "of that its own, not the code of libraries, MB",
          mb(starts("own_kb")))
    c.add("B8", f"memory with {many:,} connections, MB",
          mb(starts("held_kb")), goal=100, most=True)
    c.add("B8", "start to ready, ms", starts("ready_ms"))
    c.add("B8", "refd itself, from start to end, ms", starts("client_ms"))
    c.add("B8", "a push's hook and update, ms above a hook that does nothing",
          starts("hook_ms"), goal=2, most=True)
    c.add("B8", "of that, without the daemon's time, ms",
          starts("hook_alone_ms"))


def growth(c):
    sizes = [n for n in c.points("B9", "refs") if n >= 100]
    if len(sizes) > 1:
        few, many = (c.median("B9", "us_each", contestant="refd", refs=n)
                     for n in (sizes[0], sizes[-1]))
        c.add("B9", f"cost of a ref, of {sizes[-1]:,} : of {sizes[0]}",
              many / few if few and many else None, goal=1.3, most=True)
        c.add("B9", f"bytes of memory for a ref, of {sizes[-1]:,}",
              c.median("B9", "bytes_each", contestant="refd",
                       refs=sizes[-1]))
    records = c.points("B9", "records")
    if records:
        none, many = (c.median("B9", "p50_ms", contestant="refd", records=n)
                      for n in (records[0], records[-1]))
        c.add("B9", f"one update, {records[-1]:,} records in the journal : "
              "none", many / none if none and many else None, goal=1.3,
              most=True)
    slices = [s for run in values(c.results, "slices", workload="B9")
              for s in run]
    if len(slices) >= 8:
        quarter = len(slices) // 4
        early, late = slices[quarter:2 * quarter], slices[-quarter:]
        for what, unit in (("p99_ms", "p99"), ("memory_kb", "memory")):
            c.add("B9", f"{unit} in the last quarter of a steady load : in "
                  "the second", median(s[what] for s in late) /
                  (median(s[what] for s in early) or 1), goal=1.3, most=True)


def all_claims(report):
    c = Claims(report)
    for name, make in (("B1", pushes), ("B2", transactions), ("B3", storms), ("B3t", tails),
                       ("B4", one_ref), ("B5", tenants), ("B6", dear_flush),
                       ("B7", packed), ("B8", waits), ("B9", growth)):
        if any(r["workload"] == name for r in report["results"]):
            make(c)
    return c.made
