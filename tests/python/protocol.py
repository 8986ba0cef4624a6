"""The protocol's promises, asked of a daemon by a second implementation of
the client. Arguments: socket, a bare repository with no refs, two commits in
it, proto/vectors.json. Prints `ok` and `not ok` lines."""
import json
import os
import re
import socket
import sys

from raw import Client, new_txid, packet, transaction

path, repo, one, two, vectors = sys.argv[1:]
NULL = "0" * 40
c = Client(path)


def shows(name, wanted, got):
    if wanted == got:
        print("ok", name)
    else:
        print("not ok %s: wanted %r, got %r" % (name, wanted, got))


def results(answer):
    """Codes, and the outcome's first word."""
    kind, body = answer
    if kind != "results":
        return kind, [p.decode() for p in body]
    words = [p.split(b"\0")[0].decode() for p in body[1:-1]]
    return [w.split(" ")[-1] for w in words], body[-1].decode().split()[1]


def update(updates, *options, txid=None, verb="transaction"):
    options = options or ("umask 0022",)
    return c.ask(verb, transaction(txid or new_txid(), repo, *options),
                 updates)


def status(answer):
    kind, body = answer
    return kind, body[-2 if body[-1].startswith(b"text ") else -1].decode()


words = [line.split(" ")[0] for line in c.hello]
for word in "refd software state horizon pid limit".split():
    shows("hello has " + word, 1, words.count(word))
have = {line.split(" ")[1] for line in c.hello if "capability" in line}
with open(os.path.join(os.path.dirname(vectors), "PROTOCOL.md"),
          encoding="utf-8") as f:
    shows("capabilities", set(re.search(
        r"capabilities of version 2 are `([^`]+)`", f.read())[1].split()), have)
shows("ping", ("pong", []), c.ask("ping"))
shows("status is pairs", "pairs", c.ask("status")[0])
shows("stats is pairs", "pairs", c.ask("stats")[0])

# A transaction, and what becomes of its refs.
txid = new_txid()
shows("create", (["ok"], "committed"),
      results(update([("create refs/heads/a", one)], txid=txid)))
first = c.ask("query", ["txid " + txid])
shows("query tells the same", (["ok"], "committed"), results(first))
again = update([("create refs/heads/a", one)], txid=txid)
token = first[1][-1].decode().split(" ")[3]
at = c.ask("log", ["txid " + txid])[1]
shows("the token is the place in the log", token, "%s:%s" % (
    at[0].decode().split(" ")[1], at[1].decode().split(" ")[1]))
shows("sent again: the same answer", first[1], again[1])
shows("the id with another level", (["badrequest"], "rejected"),
      results(update([("create refs/heads/a", one)], "level local",
                     "umask 0022", txid=txid)))
other = update([("create refs/heads/b", one)], txid=txid)
shows("the id with other content", (["badrequest"], "rejected"),
      results(other))
shows("which has no token", b"outcome rejected 1", other[1][-1])
shows("the id with the other verb", (["badrequest"], "rejected"),
      results(update([("create refs/heads/a", one)], txid=txid,
                     verb="session")))
shows("never seen", "never-seen", c.ask("query", ["txid " + new_txid()])[0])
shows("expired", "expired", c.ask("query", ["txid " + "0" * 31 + "1"])[0])
shows("expired, and sent", (["unknown"], "unknown"), results(
    update([("create refs/heads/b", one)], txid="0" * 31 + "1")))
shows("cancel of what was never seen", "never-seen",
      c.ask("cancel", ["txid " + new_txid()])[0])
shows("each ref by itself", (["stale", "ok", "missing", "badname", "ok"],
                             "partial"),
      results(update([("update refs/heads/a", two, two),
                      ("update refs/heads/c", two, ""),
                      ("delete refs/heads/none", one),
                      ("create refs/heads/x..y", one),
                      ("create refs/heads/c2", one)])))
shows("two of one name", (["duplicate", "duplicate", "ok"], "partial"),
      results(update([("delete refs/heads/c2", ""),
                      ("update refs/heads/c2", two, ""),
                      ("delete refs/heads/c", "")])))
shows("atomic", (["aborted", "stale"], "rejected"),
      results(update([("create refs/heads/d", one),
                      ("update refs/heads/a", two, two)],
                     "atomic", "umask 0022")))
shows("verify, and a null oid for none", (["ok", "ok"], "committed"),
      results(update([("verify refs/heads/a", one),
                      ("verify refs/heads/d", NULL)])))
shows("symbolic refs", (["ok", "ok"], "committed"),
      results(update([("symref-create refs/heads/s", "refs/heads/a"),
                      ("option no-deref",),
                      ("symref-verify HEAD", "refs/heads/main")])))
shows("a symbolic ref that leads nowhere is followed", (["missing"], "rejected"),
      results(update([("symref-verify HEAD", "refs/heads/main")])))
shows("and created over with no-deref alone", (["exists"], "rejected"),
      results(update([("option no-deref",), ("create HEAD", one)])))
shows("option no-deref", (["ok"], "committed"),
      results(update([("option no-deref",), ("delete refs/heads/s", "")])))
shows("any name is answered", [b"ng badname\0refs/a b\n\xff\0"],
      [p[:22] for p in update([("create refs/a b\n\udcff", one)])[1][1:-1]])
shows("no updates", ([], "committed"), results(update([])))

# Sessions.
for end, wanted, codes in (("commit", "committed", ["ok"]),
                           ("abort", "rejected", ["aborted"])):
    txid = new_txid()
    shows("prepared, to " + end, "prepared",
          update([("create refs/heads/" + end, one)], txid=txid,
                 verb="session")[0])
    shows("pending", "pending", c.ask("query", ["txid " + txid])[0])
    shows("others find it locked", ["locked"],
          results(update([("create refs/heads/" + end, two)],
                         "umask 0022", "ref-lock-timeout 50"))[0])
    shows(end, (codes, wanted), results(c.ask(end, ["txid " + txid])))

# Many at once; the answers come in any order.
ids = [c.send("transaction", transaction(new_txid(), repo, "umask 0022"),
              [("create refs/tags/t%d" % n, one)]) for n in range(200)]
shows("200 in flight", 200, sum(
    results(c.wait(i)) == (["ok"], "committed") for i in reversed(ids)))
txid = new_txid()
update([("create refs/heads/e", one)], txid=txid, verb="session")
cancelled = c.ask("cancel", ["txid " + txid])
while cancelled[0] == "pending":
    cancelled = c.ask("query", ["txid " + txid])
shows("cancel", (["aborted"], "rejected"), results(cancelled))

# History.
kind, body = c.ask("log", ["ref refs/heads/a", "limit 1"])
shows("log", ("records", 1),
      (kind, sum(p.startswith(b"change ") for p in body)))
at = next(p for p in body if p.startswith(b"next ")).decode()[5:]
# From AT on, since the update may overtake a watch from "now" on.
waits = c.send("watch", ["ref refs/heads/w", "after " + at])
update([("create refs/heads/w", two)])


def with_change(answer):
    """The first page with a change, since a page may be empty."""
    kind, body = answer
    while kind == "records" and \
            not any(p.startswith(b"change ") for p in body):
        after = next(p for p in body if p.startswith(b"next ")).decode()[5:]
        kind, body = c.ask("watch", ["ref refs/heads/w", "after " + after])
    return kind, body


kind, body = with_change(c.wait(waits))
shows("watch", [("refs/heads/w", two)],
      [(p.split(b"\0")[1].decode(), p.split(b"\0")[3].decode())
       for p in body if p.startswith(b"change ")])
kind, body = with_change(
    c.ask("watch", ["ref refs/heads/w", "after " + at]))
shows("from a place on", 1, sum(p.startswith(b"change ") for p in body))
shows("checkpoint", ("pairs", b"pair lsn"), (lambda a: (
    a[0], a[1][0][:8]))(c.ask("checkpoint")))

# What can't be taken costs that request alone.
shows("an unknown verb", ("refused", "status badrequest"),
      status(c.ask("frobnicate")))
shows("an unknown header", ("refused", "status badrequest"),
      status(update([], "umask 0022", "colour red")))
shows("headers out of order", ("refused", "status badrequest"),
      status(update([], "umask 0022", "atomic")))
shows("an unknown update", ("refused", "status badrequest"),
      status(update([("move refs/heads/a", one)])))
shows("too long a message", ("refused", "status limit"),
      status(update([], "umask 0022", "message " + "m" * 8193)))
shows("another object format", ["unsupported"], results(c.ask(
    "transaction", [
        h.replace("sha1", "sha256")
        for h in transaction(new_txid(), repo, "umask 0022")],
    [("create refs/heads/a", one + 24 * "0")]))[0])
for level in "logged", "held=1", "applied=2":
    shows("without a group, level " + level,
          ("refused", "status unsupported"),
          status(update([("create refs/heads/a", one)], "level " + level,
                        "umask 0022")))
shows("level local", (["ok"], "committed"),
      results(update([("verify refs/heads/a", one)], "level local",
                     "umask 0022")))
# A client of version 1 knows no object formats. The refusal says so, whatever
# the length of the ids.
for oid in one, one + 24 * "0":
    kind, body = c.ask("transaction", [
        h for h in transaction(new_txid(), repo, "umask 0022")
        if not h.startswith("object-format")],
        [("create refs/heads/a", oid)])
    shows("a request of version 1", ("refused", "status badrequest"),
          status((kind, body)))
    shows("and the reason", True, any(
        b"older version of the protocol" in p and b"same release" in p
        for p in body))
shows("no repository", ["norepo"], results(c.ask(
    "transaction", transaction(new_txid(), "/", "umask 0022"),
    [("create refs/heads/a", one)]))[0])
shows("and the next is served", ("pong", []), c.ask("ping"))
with open(vectors, encoding="ascii") as file:
    for v in json.load(file):
        if "refused" in v:
            c.sock.sendall("".join(v["packets"]).encode("latin-1"))
            kind, body = c.wait(v["refused"]["id"])
            shows(v["name"], (kind, True), ("refused", (
                "status " + v["refused"]["status"]).encode() in body))

# Descriptors that ride on a request are refused by the kernel (Linux 6.16) or
# closed, and change nothing.
pid = next(line for line in c.hello if line.startswith("pid ")).split(" ")[1]
held = len(os.listdir("/proc/%s/fd" % pid))  # and some of its own
for number in range(100, 110):
    ping = packet("ping %d" % number) + b"0000"
    try:
        socket.send_fds(c.sock, [ping], [0, 1, 2])
    except PermissionError:
        c.sock.sendall(ping)
    shows("a request with descriptors", ("pong", []), c.wait(number))
shows("which are closed", True,
      len(os.listdir("/proc/%s/fd" % pid)) < held + 10)

# Out of step: it says why, and hangs up.
d = Client(path)
d.sock.sendall(b"0000")
shows("a flush where a request begins", ("refused", "status badrequest"),
      status(d.wait(0)))
shows("is the end of it", b"", d.file.read())

# Byte by byte is a request like any other, and half a one is none.
d = Client(path)
for byte in packet("ping 7") + b"0000":
    d.sock.sendall(bytes([byte]))
shows("byte by byte", ("pong", []), d.wait(7))
d.sock.sendall(packet("transaction 8") + packet("txid " + txid))
d.sock.shutdown(socket.SHUT_WR)
shows("half a request is never answered", b"", d.file.read())
shows("the daemon stands", ("pong", []), Client(path).ask("ping"))
os._exit(0)
