"""Turns: everybody does the same thing once, in a fresh directory, then
everybody again, until the time for it is used up."""
import sys
import time

from place import Unavailable, median

# Files that are younger than this may count as not yet flushed.
AGE_S = 0.15
# Who takes longer than this gets no second turn at that point.
LONG_S = 4.0
MOST_ROUNDS = 25


class Progress:
    """One line on a terminal: how far, and how much longer."""

    def __init__(self, plan):
        self.plan = dict(plan)
        self.total = sum(self.plan.values()) or 1
        self.begun = time.monotonic()
        self.seen = sys.stderr.isatty()

    def show(self, name, part):
        if not self.seen:
            return
        names = list(self.plan)
        done = sum(self.plan[n] for n in names[:names.index(name)])
        done += self.plan[name] * min(part, 1)
        filled = int(30 * done / self.total)
        left = max(self.total - done, 0)
        sys.stderr.write(f"\r\033[K[{'#' * filled}{'.' * (30 - filled)}] "
                         f"{name}, {left // 60:.0f}:{left % 60:02.0f} left")
        sys.stderr.flush()

    def clear(self):
        if self.seen:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


class Rounds:
    """What a workload is run by. SECONDS are for all its columns together."""

    def __init__(self, bench, name, seconds, parts):
        self.bench, self.name = bench, name
        self.seconds, self.parts = seconds / parts, parts
        self.part = 0
        self.results = []
        self.missing = {}

    def run(self, points, contestants, **labels):
        """POINTS are dictionaries; CONTESTANTS have a name, and prepare(),
        measure() and check() of a turn."""
        begun = time.monotonic()
        kept = {}
        took = {}
        number = 0
        while self.goes_on(begun, number):
            for at, point in enumerate(points):
                order = contestants[number % len(contestants):] + \
                    contestants[:number % len(contestants)]
                self.round(at, point, order, number, kept, took, labels)
                self.show(begun)
            number += 1
        self.part += 1
        for (at, name), values in kept.items():
            self.results.append(dict(labels, workload=self.name,
                                     contestant=name, point=points[at],
                                     runs=values))

    def once(self, point, one, **labels):
        """For what has a length of its own."""
        least, self.seconds = self.bench.least_rounds, 0
        self.bench.least_rounds = 1
        self.run([point], [one], **labels)
        self.bench.least_rounds = least

    def goes_on(self, begun, number):
        if number < self.bench.least_rounds:
            return True
        spent = time.monotonic() - begun
        return number < MOST_ROUNDS and \
            spent + spent / number < self.seconds

    def show(self, begun):
        spent = (time.monotonic() - begun) / (self.seconds or 1)
        self.bench.progress.show(self.name,
                                 (self.part + min(spent, 1)) / self.parts)

    def round(self, at, point, contestants, number, kept, took, labels):
        turns = []
        for one in contestants:
            key = (at, one.name)
            if one.name in self.missing or not one.enters(point, labels):
                continue
            if number and took.get(key, 0) > LONG_S:
                continue
            try:
                turns.append((one, key, one.prepare(point)))
            except Unavailable as why:
                self.missing[one.name] = str(why)
        if any(one.wants_age for one, _, _ in turns):
            time.sleep(AGE_S)
        for one, key, turn in turns:
            one.warm(turn)
            one.stage.place.settle()
            begun = time.monotonic()
            kept.setdefault(key, []).append(one.measure(turn))
            took[key] = time.monotonic() - begun
            one.check(turn)
            one.leave(turn)


def values(results, metric, **wanted):
    """All rounds' METRIC where labels and point say WANTED."""
    found = []
    for r in results:
        has = dict(r["point"], **{k: v for k, v in r.items()
                                  if k not in ("point", "runs")})
        if all(has.get(k) == v for k, v in wanted.items()):
            found += [run[metric] for run in r["runs"] if metric in run]
    return found


def middle(results, metric, **wanted):
    found = values(results, metric, **wanted)
    return median(found) if found else None
