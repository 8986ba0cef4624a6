"""The tables, for people: medians of all rounds, and in parentheses the
fastest and the slowest."""
from place import COLUMNS, median
from rounds import values

# Workload: what it is, the point's key, the measure, what it is divided by,
# its unit, and ratios of contestants (of more of it to less).
TABLES = [
    ("B1", "git push of N new refs", "refs", "p50_us", 1000, "ms",
     [("git durable", "refd"), ("git", "refd"),
      ("reftable durable", "refd")]),
    ("B2", "one transaction of N new refs, by a command or a connection",
     "refs", "p50_us", 1000, "ms",
     [("git durable", "refd"), ("reftable durable", "refd"),
      ("reftable durable", "refd reftable")]),
    ("B3", "clients, one ref per transaction, as fast as it goes", "clients",
     "per_second", 1, "updates/s",
     [("refd", "git durable"), ("refd", "git kept alive"),
      ("refd reftable", "reftable patient")]),
    ("B3", "transactions that failed", "clients", "failed", 1, "", []),
    ("B3t", "clients at half of their best rate, 99 of 100 answered within",
     "clients", "p99_ms", 1, "ms",
     [("refd", "raw log"), ("refd", "git kept alive")]),
    ("B3t", "the same, median", "clients", "p50_ms", 1, "ms", []),
    ("B4", "all on one ref, compare and swap", "clients", "per_second", 1,
     "swaps/s", [("refd", "git durable")]),
    ("B4", "answered to the client with the fewest", "clients", "least", 1,
     "", []),
    ("B4", "answered to the client with the most", "clients", "most", 1, "",
     []),
    *[("B4", f"one client, {what}", "again", key, 1, "ms an update", [])
      for key, what in (("new_ms", "new refs"),
                        ("again_ms", "one ref again and again"),
                        ("rest_ms", "and the rest of a ref"))],
    ("B5", "repositories, a client for each, all at once", "repos",
     "per_second", 1, "updates/s", [("refd", "git durable")]),
    ("B5", "flushes of that", "repos", "flushes", 1, "", []),
    ("B5", "small updates beside a transaction of N refs, 99 of 100 within",
     "refs", "beside_p99_ms", 1, "ms", []),
    ("B5", "and without it", "refs", "alone_p99_ms", 1, "ms", []),
    *[("B6", f"clients, {ms} ms added to each flush", "clients",
       "per_second", 1, "updates/s", [("refd", "git kept alive")],
       {"delay_ms": ms}) for ms in (0, 5, 10, 20)],
    *[("B7", f"packed refs, {what}", "packed", f"{key}_ms", 1, "ms",
       [("git durable", "refd")]) for key, what in (
           ("create", "one new ref"), ("update", "one ref moved"),
           ("delete", "one deleted"), ("ten_deletes", "ten deleted"))],
    ("B8", "one update, and nobody else, median", "seconds", "p50_ms", 1,
     "ms", []),
    ("B8", "a ping, 99 of 100 within", "seconds", "ping_p99_ms", 1, "ms", []),
    ("B8", "a ping, the longest", "seconds", "ping_max_ms", 1, "ms", []),
    ("B8", "a turn of the daemon's loop, 99 of 100 within", "seconds",
     "turn_p99_ms", 1, "ms", []),
    ("B8", "and the longest", "seconds", "turn_max_ms", 1, "ms", []),
    ("B8", "the longest in processor time", "seconds", "turn_cpu_max_ms", 1,
     "ms", []),
    ("B9", "refs in a transaction, for each", "refs", "us_each", 1, "us", []),
    ("B9", "records in the journal, one update", "records", "p50_ms", 1, "ms",
     []),
    ("B9", "the same, 99 of 100 within", "records", "p99_ms", 1, "ms", []),
    ("B9", "the same, start to ready", "records", "start_s", 1, "s", []),
    *[("counts", f"of {of}: {what}", "refs", key, 1, "", [], {"of": of})
      for of in ("B1", "B2") for key, what in (
          ("flushes", "flushes"), ("calls", "system calls"),
          ("calls_each", "system calls for each ref"))],
]
# What has no columns.
PLAIN = ("B6", "B7", "B9", "counts")


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
    name, _, key, metric, divisor, _, ratios = spec[:7]
    more = spec[7] if len(spec) > 7 else {}
    mine = [r for r in results if r["workload"] == name and
            (not column or r.get("column", column) == column) and
            all(r.get(k) == v for k, v in more.items())]
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
        for column in [None] if spec[0] in PLAIN else COLUMNS:
            lines = table(report["results"], spec, column)
            if lines:
                unit = f", {spec[5]}" if spec[5] else ""
                said = f"; {column}" if column else ""
                text += ["", f"{spec[0]}  {spec[1]}{unit}{said}"] + lines
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
    text.append(f"\n{report['date']}, {report['cores']} x {report['cpu']}, "
                f"Linux {report['kernel']}, git {report['git']}, refd "
                f"{report['refd']}, load {report['load']:.1f}")
    text.append(flush_line(report))
    return "\n".join(text)
