"""The figures of docs/benchmarks.md and of docs/benchmarks/notes.md, from the
JSON of runs. The page has the table of summary.py. The notes have a row for
every goal, with a measured value for each run, and the plots."""
import json
import os
import re
import sys
import textwrap

import plots
import summary
from place import COLUMNS
from show import short

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def key(claim):
    return claim["workload"], claim["what"], claim["column"]


def cell(claim):
    """The value, and the limits that the value does not meet."""
    if claim is None or claim["value"] is None:
        return "-"
    missed = [name for name in ("bar", "goal") if claim[f"{name}_said"] == "NO"]
    value = short(claim["value"])
    return f"**{value}** not {', '.join(missed)}" if missed else value


def limits(claims, which):
    """A limit that depends on the flush differs between file systems."""
    texts = dict.fromkeys(c[which] for c in claims if c and c[which])
    return " / ".join(texts).replace("<=", "≤").replace(">=", "≥")


def rows(reports):
    found = [{key(c): c for c in report["claims"]} for report in reports]
    for name in dict.fromkeys(k for claims in found for k in claims):
        claims = [claims.get(name) for claims in found]
        cells = [cell(claim) for claim in claims]
        if any(text != "-" for text in cells):
            workload, what, column = name
            yield (workload, f"{what}, {column}" if column else what, *cells,
                   limits(claims, "bar"), limits(claims, "goal"))


def counted(report):
    """Flushes and calls of B1 and B2, a line for each size."""
    mine = [r for r in report["results"] if r["workload"] == "counts"]
    for of in ("B1", "B2"):
        who = list(dict.fromkeys(r["contestant"] for r in mine
                                 if r["of"] == of))
        if not who:
            continue
        yield ""
        yield f"| {of}: flushes / system calls | " + " | ".join(who) + " |"
        yield "|---" * (len(who) + 1) + "|"
        for n in dict.fromkeys(r["point"]["refs"] for r in mine):
            cells = []
            for name in who:
                got = [r["runs"][0] for r in mine
                       if r["of"] == of and r["contestant"] == name and
                       r["point"]["refs"] == n]
                cells.append(f"{got[0]['flushes']} / {got[0]['calls']:,}"
                             if got else "-")
            yield f"| N = {n:,} | " + " | ".join(cells) + " |"


def run_of(report):
    """The conditions of a run."""
    flush = [f"{report['flush'][c]['median_ms']:.2f} ms" for c in COLUMNS]
    how = "" if report["size"] == "full" else f" --{report['size']}"
    said = (f"- {report['fs']}, {report['date']}: {report['cores']} × "
            f"{report['cpu']}, Linux {report['kernel']}; a flush costs "
            f"{flush[0]}, and {flush[1]} in the column *5 ms flush*; Git "
            f"{report['git']}; refd {report['refd']}; other work on the "
            f"machine: {report['load']:.1f}. "
            f"`make bench BENCH='--fs {report['fs']}{how}'` wrote this.")
    return textwrap.wrap(said, 80, subsequent_indent="  ",
                         break_on_hyphens=False)


def figures(report):
    """Of the page."""
    yield from run_of(report)
    yield ""
    yield from summary.table(report, {key(c): c for c in report["claims"]})


def block(reports, drawn):
    """Of the notes."""
    names = " | ".join(report["fs"] for report in reports)
    for report in reports:
        yield from run_of(report)
    yield from ("", "A value in bold does not reach the limit after *not*.",
                "", f"| | what | {names} | first bar | goal |",
                "|---" * (len(reports) + 4) + "|")
    for row in rows(reports):
        yield "| " + " | ".join(row) + " |"
    yield from counted(reports[0])
    for path in drawn:
        name = os.path.basename(path)
        yield from ("", f"![{name[:-4]}]({name})")


def load(path):
    with open(path) as f:
        return json.load(f)


def marked(path):
    with open(path) as f:
        text = f.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{path} has no place for it ({BEGIN} ... {END})")
    return text


def put(path, text, lines):
    made = "\n".join((BEGIN, *lines, END))
    with open(path, "w") as f:
        f.write(re.sub(re.escape(BEGIN) + ".*" + re.escape(END),
                       lambda _: made, text, flags=re.S))


def main(paths, page):
    """PAGE has the figures of the first of PATHS. A folder of the same name
    has the notes, and the plots of the first."""
    reports = [load(path) for path in paths]
    folder = os.path.splitext(page)[0]
    notes = os.path.join(folder, "notes.md")
    page_text, notes_text = marked(page), marked(notes)
    put(page, page_text, figures(reports[0]))
    put(notes, notes_text, block(reports, plots.draw(reports[0], folder)))
