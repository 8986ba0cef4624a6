"""Plots, by gnuplot: a file for each, with a picture for each column."""
import os
import shutil
import subprocess

from place import COLUMNS, median
from rounds import values
from show import in_order

# File, workload, the point's key and its name, the measure, what it is
# divided by and its name.
PLOTS = [
    ("push", "B1", "refs", "new refs in a push", "p50_us", 1000, "ms"),
    ("transaction", "B2", "refs", "new refs in a transaction", "p50_us", 1000,
     "ms"),
    ("storm", "B3", "clients", "clients", "per_second", 1,
     "updates a second"),
    ("latency", "B3", "clients", "clients", "p99_ms", 1,
     "ms, 99 of 100 within, at half the rate"),
]
HEAD = """set terminal svg size {width},480 font 'sans,12' background 'white'
set output '{path}'
set grid
set key outside below
"""


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


def block(name, rows):
    text = "\n".join(" ".join(f"{v:g}" for v in row) for row in rows)
    return f"${name} << EOD\n{text}\nEOD\n"


def picture(lines, title, x, y, tag):
    """All contestants' lines, with the spread of their rounds."""
    text, parts = "", []
    for i, (who, rows) in enumerate(lines.items()):
        text += block(f"{tag}{i}", rows)
        parts.append(f"${tag}{i} using 1:2:3:4 with yerrorlines lc {i + 1} "
                     f"pt {i + 1} lw {3 if who == 'refd' else 1} "
                     f"title '{who}'")
    return (text + f"set title '{title}'\nset xlabel '{x}'\n"
            f"set ylabel '{y}'\nset logscale xy\nplot " + ", ".join(parts) +
            "\n")


def two_columns(report, path, plot):
    _, name, key, x, metric, divisor, y = plot
    pictures = []
    for i, column in enumerate(COLUMNS):
        lines = series(report["results"], name, key, metric, divisor, column)
        if lines:
            pictures.append(picture(lines, f"{name}, {column}", x, y,
                                    "abcd"[i]))
    if not pictures:
        return None
    return (HEAD.format(width=620 * len(pictures), path=path) +
            f"set multiplot layout 1,{len(pictures)}\n" +
            "".join(pictures) + "unset multiplot\n")


def dear_flush(report, path):
    lines = {}
    for r in report["results"]:
        if r["workload"] == "B6" and r["contestant"] == "refd":
            found = [run["per_second"] for run in r["runs"]]
            lines.setdefault(f"refd, {r['delay_ms']} ms added", []).append(
                (r["point"]["clients"], median(found), min(found),
                 max(found)))
    if not lines:
        return None
    return HEAD.format(width=620, path=path) + picture(
        lines, "B6, flushes that are dearer", "clients", "updates a second",
        "a")


def steady(report, path):
    slices = [s for run in values(report["results"], "slices", workload="B9")
              for s in run]
    if not slices:
        return None
    rows = [(s["at_s"], s["p50_ms"], s["p99_ms"], s["memory_kb"] / 1024)
            for s in slices]
    return (HEAD.format(width=900, path=path) + block("a", rows) +
            "set title 'B9, under a steady load'\nset xlabel 's'\n"
            "set ylabel 'ms'\nset yrange [0:]\nset y2label 'MB'\n"
            "set y2tics\nset y2range [0:]\n"
            "plot $a using 1:2 with lines title 'median', "
            "$a using 1:3 with lines title '99 of 100 within', "
            "$a using 1:4 axes x1y2 with lines title 'memory, MB'\n")


def draw(report, folder):
    """The files that were written."""
    if not shutil.which("gnuplot"):
        report["missing"]["plots"] = "no gnuplot"
        return []
    todo = [(plot[0], lambda path, plot=plot: two_columns(report, path, plot))
            for plot in PLOTS]
    todo += [("flush", lambda path: dear_flush(report, path)),
             ("steady", lambda path: steady(report, path))]
    written = []
    for name, make in todo:
        path = os.path.join(folder, f"{name}.svg")
        script = make(path)
        if script:
            subprocess.run(["gnuplot"], input=script, text=True, check=True)
            written.append(path)
    return written
