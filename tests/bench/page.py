"""The figures of docs/benchmarks.md, from the JSON of a run: a row for every
goal, with the measured value, and the plots in docs/benchmarks/."""
import json
import os
import re
import sys
import textwrap

import plots
from place import COLUMNS
from show import short

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def verdict(claim, which):
    if not claim[which]:
        return ""
    said = {"yes": "passed", "NO": "**not passed**"}.get(
        claim[f"{which}_said"], "?")
    return f"{claim[which].replace('<=', '≤').replace('>=', '≥')} {said}"


def rows(report):
    for claim in report["claims"]:
        if claim["value"] is not None:
            what = claim["what"]
            if claim["column"]:
                what += f", {claim['column']}"
            yield (claim["workload"], what, short(claim["value"]),
                   verdict(claim, "bar"), verdict(claim, "goal"))


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


def block(report, folder, drawn):
    flush = [f"{report['flush'][c]['median_ms']:.2f} ms" for c in COLUMNS]
    said = (f"{report['date']}: {report['cores']} × {report['cpu']}, Linux "
            f"{report['kernel']}, {report['fs']}; a flush costs {flush[0]}, "
            f"and {flush[1]} in the column *5 ms flush*; Git "
            f"{report['git']}; refd {report['refd']}; other work on the "
            f"machine: {report['load']:.1f}. `make bench"
            f"{'' if report['size'] == 'full' else ' BENCH=--' + report['size']}`"
            " wrote this.")
    lines = [BEGIN, *textwrap.wrap(said, 80), "",
             "| | what | measured | first bar | goal |",
             "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows(report)]
    lines += counted(report)
    for path in drawn:
        name = os.path.basename(path)
        lines += ["", f"![{name[:-4]}]({folder}/{name})"]
    return "\n".join(lines + [END])


def main(path, page):
    with open(path) as f:
        report = json.load(f)
    with open(page) as f:
        text = f.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{page} has no place for it ({BEGIN} ... {END})")
    folder = os.path.splitext(page)[0]
    os.makedirs(folder, exist_ok=True)
    made = block(report, os.path.basename(folder),
                 plots.draw(report, folder))
    with open(page, "w") as f:
        f.write(re.sub(re.escape(BEGIN) + ".*" + re.escape(END),
                       lambda _: made, text, flags=re.S))
