"""The tables, for people: medians of all rounds, and in parentheses the
fastest and the slowest."""
from place import COLUMNS, median
from rounds import values

# Workload: what it is, the point's key, the measure, what it is divided by,
# its unit, and ratios of contestants (of more of it to less).
TABLES = [
    ("B1", "git push of N new refs", "refs", "p50_us", 1000, "ms",
     [("git durable", "refd"), ("git", "refd")]),
    ("B2", "one transaction of N new refs, by a command or a connection",
     "refs", "p50_us", 1000, "ms",
     [("git durable", "refd"), ("reftable durable", "refd")]),
    ("B3", "clients, one ref per transaction, as fast as it goes", "clients",
     "per_second", 1, "updates/s",
     [("refd", "git durable"), ("refd", "git kept alive")]),
    ("B3", "the same, 99 of 100 answered within, at half that rate",
     "clients", "p99_ms", 1, "ms", []),
    ("B3", "transactions that failed", "clients", "failed", 1, "", []),
    ("B4", "all on one ref, compare and swap", "clients", "per_second", 1,
     "swaps/s", [("refd", "git durable")]),
    ("B4", "answered to the client with the fewest", "clients", "least", 1,
     "", []),
    ("B4", "answered to the client with the most", "clients", "most", 1, "",
     []),
]


def short(value):
    if value == int(value) and value < 1000:
        return str(int(value))
    if value < 10:
        return f"{value:.2f}"
    if value < 100:
        return f"{value:.1f}"
    return f"{value:.0f}"


def cell(found):
    if not found:
        return "-"
    text = short(median(found))
    if len(found) > 1:
        text += f" ({short(min(found))}-{short(max(found))})"
    return text


def lines_of(head, rows):
    rows = [head] + rows
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return ["  ".join(text.rjust(width)
                      for text, width in zip(row, widths)).rstrip()
            for row in rows]


def in_order(items):
    return list(dict.fromkeys(items))


def table(results, spec, column):
    name, _, key, metric, divisor, _, ratios = spec
    mine = [r for r in results if r["workload"] == name and
            r.get("column", column) == column]
    who = in_order(r["contestant"] for r in mine)
    points = in_order(r["point"][key] for r in mine if key in r["point"])
    got = {(p, w): [v / divisor for v in
                    values(mine, metric, contestant=w, **{key: p})]
           for p in points for w in who}
    who = [w for w in who if any(got[p, w] for p in points)]
    ratios = [(a, b) for a, b in ratios if a in who and b in who]
    rows = []
    for p in points:
        row = [f"{p:,}"] + [cell(got[p, w]) for w in who]
        row += [f"{median(got[p, a]) / (median(got[p, b]) or 1):.2f}"
                if got[p, a] and got[p, b] else "-" for a, b in ratios]
        rows.append(row)
    head = ["N" if key == "refs" else key] + who + \
        [f"{a} : {b}" for a, b in ratios]
    return lines_of(head, rows) if rows and who else []


def tables(report):
    text = []
    for spec in TABLES:
        for column in COLUMNS:
            lines = table(report["results"], spec, column)
            if lines:
                unit = f", {spec[5]}" if spec[5] else ""
                text += ["", f"{spec[0]}  {spec[1]}{unit}; {column}"] + lines
    return "\n".join(text)


def flush_line(report):
    flush = report["flush"]
    said = [f"{flush[c]['median_ms']:.2f} ms (99 of 100 under "
            f"{flush[c]['p99_ms']:.2f})" for c in COLUMNS if c in flush]
    return (f"a flush costs {said[0]} here, on {report['fs']}" +
            (f", and {said[1]} with 5 ms added" if len(said) > 1 else ""))


def claims(report):
    rows = [[c["workload"], c["column"] or "", c["what"],
             "not measured" if c["value"] is None else short(c["value"]),
             c["bar"], c["bar_said"], c["goal"], c["goal_said"]]
            for c in report["claims"]]
    head = ["", "", "", "measured", "bar", "", "goal", ""]
    return "\n".join(lines_of(head, rows))


def whole(report):
    text = [tables(report), "", claims(report)]
    for name, why in report["missing"].items():
        text.append(f"without {name}: {why}")
    newer = report["newer_git"] or "none"
    text.append(f"\n{report['date']}, {report['cores']} x {report['cpu']}, "
                f"Linux {report['kernel']}, git {report['git']} (reftable: "
                f"{newer}), refd {report['refd']}, load {report['load']:.1f}")
    text.append(flush_line(report))
    return "\n".join(text)
