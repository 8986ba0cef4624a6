"""The figures of docs/benchmarks.md, from the JSON of a run: a row for every
goal, with the measured value."""
import json
import re
import sys

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


def block(report):
    flush = [f"{report['flush'][c]['median_ms']:.2f} ms" for c in COLUMNS]
    lines = [
        BEGIN,
        f"{report['date']}: {report['cores']} × {report['cpu']}, Linux "
        f"{report['kernel']}, {report['fs']}; a flush costs {flush[0]}, and "
        f"{flush[1]} in the column *5 ms flush*; Git {report['git']}, "
        f"reftable by {report['newer_git'] or 'none'}; refd "
        f"{report['refd']}; other work on the machine: "
        f"{report['load']:.1f}. `make bench"
        f"{'' if report['size'] == 'full' else ' BENCH=--' + report['size']}`"
        " wrote this.", "",
        "| | what | measured | first bar | goal |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows(report)]
    lines += counted(report)
    return "\n".join(lines + [END])


def main(path, page):
    with open(path) as f:
        report = json.load(f)
    with open(page) as f:
        text = f.read()
    made, nr = re.subn(re.escape(BEGIN) + ".*" + re.escape(END),
                       lambda _: block(report), text, flags=re.S)
    if nr != 1:
        sys.exit(f"{page} has no place for it ({BEGIN} ... {END})")
    with open(page, "w") as f:
        f.write(made)
