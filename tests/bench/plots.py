"""Plots as SVG files: a file for each, with a picture for each column."""
import html
import math
import os

from place import COLUMNS, median
from rounds import values
from show import in_order, short

# File, workload, the point's key and its name, the measure, what it is
# divided by and its name.
PLOTS = [
    ("push", "B1", "refs", "new refs in a push", "p50_us", 1000, "ms"),
    ("transaction", "B2", "refs", "new refs in a transaction", "p50_us", 1000,
     "ms"),
    ("storm", "B3", "clients", "clients", "per_second", 1,
     "updates a second"),
    ("latency", "B3t", "clients", "clients", "p99_ms", 1,
     "ms, 99 of 100 within, at half the rate"),
]
WIDTH, HEIGHT = 560, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 548, 32, 290
COLOURS = ("#777", "#b5651d", "#2a9d2a", "#8a2be2", "#d62728", "#17a2b8",
           "#c71585", "#9a9a00", "#000080")
STYLE = ("text{font:12px sans-serif}path,line{fill:none}.grid{stroke:#ddd}"
         ".axis{stroke:#000}.end{text-anchor:end}.middle{text-anchor:middle}")


class Axis:
    """From values to places; ticks at 1, 10, 100, or at round numbers."""

    def __init__(self, found, low, high, is_log):
        self.low, self.high, self.is_log = low, high, is_log
        if is_log:
            self.least = math.floor(math.log10(min(found)))
            self.most = max(math.ceil(math.log10(max(found))), self.least + 1)
            self.ticks = [10.0 ** i
                          for i in range(self.least, self.most + 1)]
        else:
            step = 10.0 ** math.floor(math.log10(max(found) or 1))
            self.least, nr = 0, math.ceil(max(found) / step) or 1
            self.most = nr * step
            self.ticks = [i * step for i in range(nr + 1)]

    def at(self, value):
        if self.is_log:
            value = math.log10(value)
        part = (value - self.least) / (self.most - self.least)
        return round(self.low + part * (self.high - self.low), 1)


def text(x, y, words, kind="", more=""):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{kind}{more}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, more):
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {more}/>'


def frame(x, y, title, x_name, y_name):
    yield text((LEFT + RIGHT) / 2, 20, title, "middle")
    for tick in x.ticks:
        at = x.at(tick)
        yield line(at, TOP, at, BOTTOM, 'class="grid"')
        yield text(at, BOTTOM + 16, f"{tick:,g}", "middle")
    for tick in y.ticks:
        at = y.at(tick)
        yield line(LEFT, at, RIGHT, at, 'class="grid"')
        yield text(LEFT - 4, at + 4, f"{tick:,g}", "end")
    yield line(LEFT, BOTTOM, RIGHT, BOTTOM, 'class="axis"')
    yield line(LEFT, TOP, LEFT, BOTTOM, 'class="axis"')
    yield text((LEFT + RIGHT) / 2, BOTTOM + 32, x_name, "middle")
    middle = (TOP + BOTTOM) / 2
    yield text(14, middle, y_name, "middle",
               f' transform="rotate(-90 14 {middle})"')


def curve(x, y, rows, colour, is_bold):
    """The medians, and the spread of the rounds."""
    points = [(x.at(row[0]), y.at(row[1])) for row in rows]
    stroke = f'stroke="{colour}" stroke-width="{3 if is_bold else 1.5}"'
    path = "L".join(f"{a} {b}" for a, b in points)
    yield f'<path d="M{path}" {stroke}/>'
    if len(points) > 50:
        return
    for (at, mid), row in zip(points, rows):
        yield f'<circle cx="{at}" cy="{mid}" r="3" fill="{colour}"/>'
        if row[3] > row[2] > 0:
            yield line(at, y.at(row[2]), at, y.at(row[3]),
                       f'stroke="{colour}"')


def picture(lines, title, x_name, y_name, is_log=True):
    """LINES: rows of x, median, least and most, by name."""
    rows = [row for rows in lines.values() for row in rows]
    x = Axis([row[0] for row in rows], LEFT, RIGHT, is_log)
    y = Axis([value for row in rows for value in row[1:]
              if value > 0 or not is_log], BOTTOM, TOP, is_log)
    parts = list(frame(x, y, title, x_name, y_name))
    for i, (name, rows) in enumerate(lines.items()):
        is_bold = name == "refd"
        colour = "#0050d0" if is_bold else COLOURS[i % len(COLOURS)]
        parts += curve(x, y, rows, colour, is_bold)
        left, top = LEFT + i % 3 * 165, BOTTOM + 56 + i // 3 * 18
        parts.append(line(left, top - 4, left + 20, top - 4,
                          f'stroke="{colour}" stroke-width="3"'))
        parts.append(text(left + 26, top, name))
    return parts


def whole(pictures):
    width = WIDTH * len(pictures)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}">',
           f"<style>{STYLE}</style>",
           f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>']
    for i, parts in enumerate(pictures):
        out += [f'<g transform="translate({i * WIDTH})">', *parts, "</g>"]
    return "\n".join(out + ["</svg>", ""])


def series(results, name, key, metric, divisor, column):
    """For each contestant its points: x, median, least, most."""
    mine = [r for r in results if r["workload"] == name and
            r.get("column") == column]
    lines = {}
    for who in in_order(r["contestant"] for r in mine):
        for x in in_order(r["point"][key] for r in mine):
            found = [v / divisor for v in values(
                mine, metric, contestant=who, **{key: x})]
            if found and median(found) > 0:
                lines.setdefault(who, []).append(
                    (x, median(found), min(found), max(found)))
    return lines


def by_column(report, plot):
    _, name, key, x_name, metric, divisor, y_name = plot
    for column in COLUMNS:
        lines = series(report["results"], name, key, metric, divisor, column)
        if lines:
            cost = short(report["flush"][column]["median_ms"])
            yield picture(lines, f"{name}, a flush costs {cost} ms", x_name,
                          y_name)


def dear_flush(report):
    lines = {}
    for r in report["results"]:
        if r["workload"] == "B6" and r["contestant"] == "refd":
            found = [run["per_second"] for run in r["runs"]]
            lines.setdefault(f"{r['delay_ms']} ms added", []).append(
                (r["point"]["clients"], median(found), min(found),
                 max(found)))
    return [picture(lines, "B6, refd with slower flushes", "clients",
                    "updates a second")] if lines else []


def steady(report):
    slices = [s for run in values(report["results"], "slices", workload="B9")
              for s in run]
    if not slices:
        return []

    def curve_of(key, divisor=1):
        return [(s["at_s"], *[s[key] / divisor] * 3) for s in slices]

    return [picture({"median": curve_of("p50_ms"),
                     "99 of 100 within": curve_of("p99_ms")},
                    "B9, under a steady load", "s", "ms", False),
            picture({"memory": curve_of("memory_kb", 1024)},
                    "B9, under a steady load", "s", "MB", False)]


def draw(report, folder):
    """The files that were written."""
    os.makedirs(folder, exist_ok=True)
    todo = {plot[0]: list(by_column(report, plot)) for plot in PLOTS}
    todo.update(flush=dear_flush(report), steady=steady(report))
    written = []
    for name, pictures in todo.items():
        if pictures:
            written.append(os.path.join(folder, f"{name}.svg"))
            with open(written[-1], "w") as f:
                f.write(whole(pictures))
    return written
