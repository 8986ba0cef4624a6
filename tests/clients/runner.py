"""The Python clients as a runner: see tests/clients/README.md. Arguments: the
directory of the package, and `blocking` or `asyncio`."""
import asyncio
import re
import sys

sys.path.insert(0, sys.argv[1])
import refd  # noqa: E402
import refd.aio  # noqa: E402
from refd import wire  # noqa: E402

SAFE = re.compile(rb"[^A-Za-z0-9_./:@-]")


def encoded(value):
    data = value if isinstance(value, bytes) else wire.data_of(value)
    return SAFE.sub(lambda m: b"%%%02X" % m[0][0], data).decode()


def decoded(word):
    return re.sub(rb"%(..)", lambda m: bytes([int(m[1], 16)]), word.encode())


# ---- arguments ----

class Words(dict):
    """The key=value words of a command."""

    def __init__(self, words):
        for word in words:
            key, _, value = word.partition("=")
            self[key] = wire.text(decoded(value))

    def number(self, key, base=10):
        return int(self[key], base) if key in self else None

    def below(self, prefix):
        return {key[len(prefix):]: value for key, value in self.items()
                if key.startswith(prefix)}

    def listed(self, prefix):
        return tuple(self[key] for key in sorted(
            (key for key in self if key.startswith(prefix)),
            key=lambda key: int(key[len(prefix):])))


def repository(words):
    if "repo" in words:
        return refd.Repository.open(words["repo"], words.get("object-format"))
    return refd.Repository(words["git-dir"],
                           words.number("common-dir.dev") or 0,
                           words.number("common-dir.ino") or 0,
                           words.get("object-format"))


def transaction(words):
    level = words.get("level.kind")
    if "level.nodes" in words:
        level += "=" + words["level.nodes"]
    txn = refd.Transaction(
        repository(words), "atomic" in words, words.get("message"),
        words.get("committer"), words.get("durability"), level,
        words.number("deadline"), "create-reflog" in words, "push" in words,
        words.number("umask", 8), words.get("log-all-ref-updates"),
        words.get("shared-repository"), words.number("ref-lock-timeout"),
        words.number("packed-refs-timeout"), words.get("trace2-sid"),
        words.below("identity."), words.get("txid"))
    while u := words.below(f"updates.{len(txn.updates)}."):
        txn.updates.append(refd.Update(
            u["command"], u["ref"], u.get("oid"), u.get("old-oid"),
            u.get("target"), u.get("old-target"), "no-deref" in u))
    return txn


def position(words, key):
    lsn = words.number(key + ".lsn")
    return None if lsn is None else refd.Position(
        lsn, words.number(key + ".change") or 0)


def selection(words):
    return refd.Selection(
        repository(words) if "repo" in words or "git-dir" in words else None,
        words.listed("ref."), words.get("txid"), words.number("uid"),
        words.get("user"), words.number("since"), words.number("until"),
        words.get("journal"), position(words, "after"),
        position(words, "before"), words.number("limit"), "reverse" in words,
        "all" in words, "origin" in words, words.number("deadline"))


def encode(words):
    verb, number = words["verb"], words.number("id")
    if verb in ("transaction", "session"):
        txn = transaction(words)
        return wire.transaction(verb, number, txn, txn.deadline_ms)
    if verb in ("log", "watch"):
        return wire.history(verb, number, selection(words))
    if "git-dir" in words:
        return wire.for_repository(verb, number, repository(words))
    return wire.simple(verb, number, words.get("txid"))


# ---- results ----

def flat(fields, prefix=""):
    """Words for a tree of dictionaries and sequences."""
    if isinstance(fields, dict):
        items = fields.items()
    else:
        items = enumerate(fields)
    for key, value in items:
        if isinstance(value, (dict, list, tuple)):
            yield from flat(value, f"{prefix}{key}.")
        elif value is True:
            yield f"{prefix}{key}=true"
        elif value is not None and value is not False and value != "":
            yield f"{prefix}{key}={encoded(value)}"


def results(found):
    return {"results": [{"status": r.status, "ref": r.ref, "oid": r.found,
                         "text": r.text, "detail": r.detail} for r in found]}


def report(r):
    log, _, lsn = (r.token or "").partition(":")
    fields = {"txid": r.txid}
    if r.outcome in ("committed", "partial", "rejected", "unknown"):
        fields.update(results(r.results), updates=r.updates,
                      token={"log": log, "lsn": lsn})
    return {"outcome": r.outcome, **fields}


def page(p):
    return {"journal": p.journal, "gap": p.gap, "more": p.more,
            "next": {"lsn": p.next.lsn, "change": p.next.number or None},
            "records": [
                {"lsn": r.lsn, "time": r.time_ms, "uid": r.uid, "pid": r.pid,
                 "txid": r.txid, "path": r.path, "voids": r.voids,
                 "origin": r.origin, "committer": r.committer,
                 "message": r.message, "identity": r.identity, "changes": [
                     {"change": c.number, "status": c.status, "ref": c.ref,
                      "old-oid": c.old, "oid": c.new, "target": c.target,
                      "text": c.text, "detail": c.detail}
                     for c in r.changes]} for r in p.records]}


def hello(h):
    progress = h.progress and {"done": h.progress[0], "total": h.progress[1]}
    return {"version": h.version, "software": h.software, "state": h.state,
            "horizon": h.horizon_ms, "pid": h.pid, "progress": progress or {},
            "limit": {"updates": h.max_updates, "bytes": h.max_bytes}}


def answer(a):
    fields = {"kind": a.kind, "id": a.id, "txid": a.txid,
              "rewrites-packed": a.rewrites_packed, "status": a.status,
              "text": a.text, "retry-after": a.retry_after_ms}
    if a.kind == "results":
        fields.update(report(a.report))
    elif a.kind == "prepared":
        fields.update(results(a.results))
    elif a.kind == "pairs":
        fields["pairs"] = a.pairs
    elif a.page:
        fields.update(page(a.page))
    return fields


def decode(data):
    try:
        packets, = wire.Messages(wire.ANSWER_BYTES).feed(data)
        if packets[0].startswith(b"refd "):
            return "hello", hello(wire.hello(packets))
        return "answer", answer(wire.answer(packets))
    except refd.ProtocolError:
        return "fatal", {}


def failure(error):
    if isinstance(error, refd.Unknown):
        return "unknown", {"txid": error.txid, **results(error.results)}
    if isinstance(error, refd.Partial):
        return "partial", results(error.results)
    if isinstance(error, refd.Rejected):
        return "rejected", {"status": error.status, **results(error.results)}
    if isinstance(error, refd.ProtocolError):
        return "protocol", {}
    return "unreachable", {}


# ---- commands ----

class Runner:
    def __init__(self, is_async):
        self.loop = asyncio.new_event_loop() if is_async else None
        self.client = self.txn = self.held = None

    def done(self, what):
        return self.loop.run_until_complete(what) if self.loop else what

    def run(self, command, words):
        timeout = words.number("timeout")
        timeout = timeout / 1000 if timeout else 60
        client = self.client
        if command == "decode":
            return decode(wire.data_of(words["bytes"]))
        if command == "encode":
            return "bytes", {"bytes": encode(words)}
        if command == "connect":
            module = refd.aio if self.loop else refd
            self.client = self.done(module.connect(words["path"], timeout))
            return "hello", {"state": self.client.hello.state}
        if command == "close":
            self.done(client.close())
            return "closed", {}
        if command == "ping":
            self.done(client.ping(timeout))
            return "pong", {}
        if command == "pairs":
            pairs = self.done(client.pairs(words["verb"], timeout))
            return "pairs", {"first": pairs[0][0]}
        if command in ("pack", "look"):
            call = getattr(client, command)
            pairs = self.done(call(repository(words), timeout))
            return "pairs", {"first": pairs[0][0]}
        if command in ("transact", "session"):
            self.txn = transaction(words)
        if command in ("transact", "again"):
            return "report", report(self.done(client.transact(self.txn,
                                                              timeout)))
        if command in ("session", "session-again"):
            self.held = self.done(client.session(self.txn, timeout))
            return "prepared", results(self.held.results)
        if command in ("commit", "abort"):
            return "report", report(self.done(getattr(self.held, command)(
                timeout)))
        if command in ("query", "cancel"):
            return "report", report(self.done(getattr(client, command)(
                words["txid"], timeout)))
        return "page", page(self.done(getattr(client, command)(
            selection(words), timeout)))


def main():
    runner = Runner(sys.argv[2] == "asyncio")
    for line in sys.stdin:
        command, *words = line.split()
        try:
            name, fields = runner.run(command, Words(words))
        except refd.Error as error:
            name, fields = failure(error)
        print(name, *flat(fields), flush=True)


main()
