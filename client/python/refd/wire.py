"""Messages as bytes (proto/PROTOCOL.md). No input or output happens here.

`Messages` splits the bytes of the server. `hello` and `answer` read a message,
and raise `ProtocolError` for every malformed message. The other functions make
requests, and raise `BadRequest` for a value that the protocol cannot carry.
"""
import dataclasses
import re
from typing import Optional

from .errors import BadRequest, Origin, Outcome, ProtocolError, Status
from .messages import (Change, Hello, Page, Position, Record, Report, Result,
                       process_umask)

VERSION = 2
PAYLOAD_MAX = 65516
REQUESTS_MAX = 256
UPDATES_MAX = 100000
CHANGES_MAX = 1000
REQUEST_BYTES_MAX = 64 << 20
NAME_MAX = 1024
MESSAGE_MAX = 8192
DEADLINE_MAX_MS = 3600000
U32, U64 = (1 << 32) - 1, (1 << 64) - 1
HELLO_BYTES_MAX = 64 << 10
ANSWER_BYTES, RESULT_BYTES, ANSWER_BYTES_MAX = 8 << 20, 10 << 10, 256 << 20
MESSAGE_PACKETS_MAX = 2 * UPDATES_MAX

_NUMBER = re.compile(rb"0|[1-9][0-9]{0,19}")
_HEX = re.compile(rb"[0-9a-f]+")
_LENGTH = re.compile(rb"[0-9a-fA-F]{4}")
_IDENTITY = re.compile(rb"[A-Z_][A-Z0-9_]{0,63}")


def packet(payload):
    """A pkt-line of PAYLOAD, which is bytes."""
    if not 0 < len(payload) <= PAYLOAD_MAX:
        raise BadRequest(f"a packet cannot have {len(payload)} bytes")
    return b"%04x%s" % (len(payload) + 4, payload)


def text(data):
    """Bytes of the protocol as text."""
    return data.decode("utf-8", "surrogateescape")


def data_of(value):
    """Text as bytes of the protocol."""
    return str(value).encode("utf-8", "surrogateescape")


class Messages:
    """Splits what the server sends into messages: lists of payloads. A message
    with more bytes than `longest` is malformed."""

    def __init__(self, longest=HELLO_BYTES_MAX):
        self.longest = longest
        self._buffer = bytearray()
        self._at = 0
        self._message = []
        self._bytes = 0

    def expect(self, updates, alone):
        """A request is sent, whose answer has results for at most UPDATES
        updates. ALONE: no other request is in flight."""
        most = min(ANSWER_BYTES + updates * RESULT_BYTES, ANSWER_BYTES_MAX)
        self.longest = most if alone else max(most, self.longest)

    def feed(self, data):
        """Takes bytes, and yields the messages that are complete."""
        self._buffer += data
        while True:
            length = self._length()
            if length is None or len(self._buffer) - self._at < length:
                break
            payload = bytes(self._buffer[self._at + 4:self._at + length])
            self._at += max(length, 4)
            if length == 0:
                message, self._message, self._bytes = self._message, [], 0
                yield message
                continue
            self._bytes += length
            self._message.append(payload)
            if (self._bytes > self.longest or
                    len(self._message) > MESSAGE_PACKETS_MAX):
                raise ProtocolError("the server's message is too large")
        del self._buffer[:self._at]
        self._at = 0

    def _length(self):
        digits = self._buffer[self._at:self._at + 4]
        if len(digits) < 4:
            return None
        if not _LENGTH.fullmatch(digits):
            raise ProtocolError(f"not a packet: {bytes(digits)!r}")
        length = int(digits, 16)
        if length == 1:
            raise ProtocolError("unexpected delimiter")
        if 0 < length <= 4 or length > PAYLOAD_MAX + 4:
            raise ProtocolError(f"not a packet: {bytes(digits)!r}")
        return length


# ---- requests ----

def _value(value, most=PAYLOAD_MAX):
    data = data_of(value)
    if b"\0" in data:
        raise BadRequest(f"a NUL in {value!r}")
    if len(data) > most:
        raise BadRequest(f"{len(data)} bytes where {most} are the limit")
    return data


def _number(value, least, most):
    if not least <= value <= most:
        raise BadRequest(f"{value} is not between {least} and {most}")
    return b"%d" % value


def _hex(value, length):
    data = data_of(value)
    if len(data) != length or not _HEX.fullmatch(data):
        raise BadRequest(f"{value!r} is not an id of {length} digits")
    return data


class _Packets:
    def __init__(self, verb, request_id):
        self.data = bytearray()
        self._bytes = 0
        self.put(b"%s %d" % (verb.encode(), request_id))

    def put(self, payload):
        self._bytes += len(payload)
        if self._bytes > REQUEST_BYTES_MAX:
            raise BadRequest("the request has more than 64 MiB")
        self.data += packet(payload)

    def header(self, key, value, convert=_value, *limits):
        """Nothing for None and False, the key alone for True."""
        if value is True:
            self.put(key.encode())
        elif value is not None and value is not False:
            self.put(b"%s %s" % (key.encode(), convert(value, *limits)))

    def end(self):
        return bytes(self.data + b"0000")


def simple(verb, request_id, txid=None):
    """A request without a body; `query` and its like have a txid."""
    out = _Packets(verb, request_id)
    out.header("txid", txid, _hex, 32)
    return out.end()


def _path(value):
    if not value.startswith("/"):
        raise BadRequest(f"git-dir {value!r} is not absolute")
    return _value(value, 4095)


def _octal(value):
    _number(value, 0, 0o777)
    return b"%04o" % value


def _common_dir(repository):
    return b"%s %s" % (_number(repository.common_dev, 0, U64),
                       _number(repository.common_ino, 0, U64))


def _put_identity(out, identity):
    if len(identity) > 8:
        raise BadRequest("more than 8 identity variables")
    for name in sorted(identity):
        if not _IDENTITY.fullmatch(data_of(name)) or not identity[name]:
            raise BadRequest(f"bad identity variable {name!r}")
        out.put(b"identity %s=%s" % (data_of(name),
                                     _value(identity[name], 1024)))


def _format_of(txn):
    if txn.repository.object_format:
        return txn.repository.object_format
    for update in txn.updates:
        for oid in (update.oid, update.old_oid):
            if oid:
                return "sha256" if len(oid) == 64 else "sha1"
    return "sha1"


def _put_update(out, update, length):
    def oid(value):
        return _hex(value, length) if value is not None else b""

    def name(value):
        return _value(value, NAME_MAX) if value is not None else b""

    if update.old_target == "":  # on the wire: any target
        raise BadRequest("an empty old target")
    if update.no_deref:
        out.put(b"option no-deref")
    fields = [b"%s %s" % (update.command.encode(), name(update.ref))]
    if update.command in ("update", "create"):
        fields.append(_hex(update.oid, length))
    if update.command in ("update", "delete", "verify"):
        fields.append(oid(update.old_oid))
    if update.command in ("symref-update", "symref-create"):
        fields.append(name(update.target))
    if update.command in ("symref-delete", "symref-verify"):
        fields.append(name(update.old_target))
    elif update.old_target is not None:
        fields += [b"ref", name(update.old_target)]
    elif update.command == "symref-update" and update.old_oid is not None:
        fields += [b"oid", oid(update.old_oid)]
    out.put(b"\0".join(fields))


def transaction(verb, request_id, txn, deadline_ms):
    """VERB is "transaction" or "session"."""
    if len(txn.updates) > UPDATES_MAX:
        raise BadRequest(f"more than {UPDATES_MAX} updates")
    out = _Packets(verb, request_id)
    put = out.header
    object_format = _format_of(txn)
    umask = process_umask() if txn.umask is None else txn.umask
    put("txid", txn.txid, _hex, 32)
    put("git-dir", txn.repository.git_dir, _path)
    put("common-dir", txn.repository, _common_dir)
    put("object-format", object_format)
    put("atomic", txn.atomic)
    put("create-reflog", txn.create_reflog)
    put("push", txn.push)
    put("durability", txn.durability)
    put("level", txn.level)
    put("deadline", deadline_ms, _number, 1, DEADLINE_MAX_MS)
    put("umask", umask, _octal)
    put("message", txn.message, _value, MESSAGE_MAX)
    put("committer", txn.committer, _value, NAME_MAX)
    put("log-all-ref-updates", txn.log_all_ref_updates, _value, NAME_MAX)
    put("shared-repository", txn.shared_repository, _value, NAME_MAX)
    put("ref-lock-timeout", txn.ref_lock_timeout_ms, _number, 0,
        DEADLINE_MAX_MS)
    put("packed-refs-timeout", txn.packed_refs_timeout_ms, _number, 0,
        DEADLINE_MAX_MS)
    put("trace2-sid", txn.trace2_sid, _value, NAME_MAX)
    _put_identity(out, txn.identity)
    out.data += b"0001"
    length = 64 if object_format == "sha256" else 40
    for update in txn.updates:
        _put_update(out, update, length)
    return out.end()


def for_repository(verb, request_id, repository):
    """A `pack` or `look` request for a `Repository`."""
    out = _Packets(verb, request_id)
    out.header("git-dir", repository.git_dir, _path)
    out.header("common-dir", repository, _common_dir)
    return out.end()


def _position(value):
    lsn = _number(value.lsn, 0, U64)
    if value.number:
        lsn += b" " + _number(value.number, 1, U32)
    return lsn


def history(verb, request_id, select):
    """VERB is "log" or "watch"."""
    out = _Packets(verb, request_id)
    put = out.header
    if len(select.refs) > 16:
        raise BadRequest("more than 16 patterns of refs")
    put("txid", select.txid, _hex, 32)
    if select.repository:
        put("git-dir", select.repository.git_dir, _path)
        if select.repository.common_ino:
            put("common-dir", select.repository, _common_dir)
    put("deadline", select.wait_ms, _number, 1, DEADLINE_MAX_MS)
    for pattern in select.refs:
        put("ref", pattern, _value, NAME_MAX)
    put("uid", select.uid, _number, 0, U32)
    put("user", select.user, _value, NAME_MAX)
    put("since", select.since_ms, _number, 1, U64)
    put("until", select.until_ms, _number, 1, U64)
    put("journal", select.journal, _hex, 32)
    put("after", select.after, _position)
    put("before", select.before, _position)
    put("limit", select.limit, _number, 1, CHANGES_MAX)
    put("reverse", select.reverse)
    put("all", select.all)
    put("origin", select.origin)
    return out.end()


# ---- answers ----

def _bad(what):
    return ProtocolError(f"malformed {what}")


def _read_number(data, most=U64, least=0):
    if not _NUMBER.fullmatch(data) or not least <= int(data) <= most:
        raise _bad("number")
    return int(data)


def _read_hex(data, *lengths):
    if len(data) not in lengths or not _HEX.fullmatch(data):
        raise _bad("id")
    return data.decode()


def _read_text(data):
    if b"\0" in data:
        raise _bad("text")
    return text(data)


def _read_enum(kind, data):
    try:
        return kind(data.decode("ascii", "replace"))
    except ValueError:
        raise ProtocolError(f"unknown {kind.__name__} {data!r}") from None


def _cut(data, key):
    """The rest of DATA behind KEY and a space, or None."""
    return data[len(key) + 1:] if data.startswith(key + b" ") else None


def _named(data, *names):
    fields = [field.partition(b"=") for field in data.split(b" ")]
    if [field[0] for field in fields] != list(names):
        raise _bad("hello")
    return [_read_number(field[2]) for field in fields]


def hello(packets):
    """Reads the server's first message."""
    version = packets and _cut(packets[0], b"refd")
    if not version or not version.startswith(b"version="):
        raise ProtocolError("not a refd")
    fields = {"version": _read_number(version[8:], U32, 1)}
    if fields["version"] != VERSION:
        raise ProtocolError(
            f"the daemon speaks version {fields['version']} of refd's "
            f"protocol, this program version {VERSION}")
    words, capabilities = {}, set()
    for line in packets[1:]:
        key, _, value = line.partition(b" ")
        if key == b"capability":
            capabilities.add(_read_text(value))
        elif key in words:
            raise _bad("hello")
        elif key in (b"software", b"state", b"horizon", b"pid", b"limit",
                     b"progress"):
            words[key] = value
    try:
        software, state = words[b"software"], words[b"state"]
        fields["horizon_ms"] = _read_number(words[b"horizon"])
        fields["pid"] = _read_number(words[b"pid"])
        limits = _named(words[b"limit"], b"updates", b"bytes")
    except KeyError:
        raise _bad("hello") from None
    if (len(software) > 63 or max(limits) > U32 or
            state not in (b"recovering", b"serving", b"draining")):
        raise _bad("hello")
    fields["max_updates"], fields["max_bytes"] = limits
    if b"progress" in words:
        fields["progress"] = tuple(_named(words[b"progress"], b"done",
                                          b"total"))
    return Hello(software=_read_text(software), state=text(state),
                 capabilities=frozenset(capabilities), **fields)


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer of any kind; the fields of other kinds are empty."""

    kind: str
    id: int
    txid: Optional[str] = None
    report: Optional[Report] = None  # results, pending, never-seen, expired
    results: tuple = ()  # prepared
    rewrites_packed: bool = False  # prepared
    status: Optional[Status] = None  # refused
    text: str = ""  # refused
    retry_after_ms: Optional[int] = None  # refused
    pairs: tuple = ()
    page: Optional[Page] = None  # records


def _words(fields):
    """The text, or the detail, behind the other fields."""
    if len(fields) == 1:
        if fields[0].startswith(b"\1"):
            raise _bad("text")
        return {"text": text(fields[0])}
    if fields[0] or not fields[1] or b"\1" in b"".join(fields):
        raise _bad("detail")
    return {"detail": tuple(map(text, fields[1:]))}


class _Oids:
    """All ids of an answer, or of a record, have one length."""

    def __init__(self):
        self.lengths = (40, 64)

    def read(self, data):
        if not data:
            return None
        oid = _read_hex(data, *self.lengths)
        self.lengths = (len(oid),)
        return oid


def _result(line, oids):
    head, *fields = line.split(b"\0")
    if len(fields) < 3:
        raise _bad("result")
    if head == b"ok":
        status = Status.OK
    else:
        status = _read_enum(Status, _cut(head, b"ng") or b"")
        if status == Status.OK:
            raise _bad("result")
    return Result(text(fields[0]), status, oids.read(fields[1]),
                  **_words(fields[2:]))


def _results(lines):
    if len(lines) > UPDATES_MAX:
        raise ProtocolError("more results than a transaction has updates")
    oids = _Oids()
    return tuple(_result(line, oids) for line in lines)


def _report(txid, body):
    last = body and _cut(body[-1], b"outcome")
    if not last:
        raise _bad("outcome")
    word, *rest = last.split(b" ")
    outcome = _read_enum(Outcome, word)
    if (outcome in (Outcome.PENDING, Outcome.NEVER_SEEN, Outcome.EXPIRED) or
            len(rest) not in (1, 2)):
        raise _bad("outcome")
    results = _results(body[:-1])
    updates = _read_number(rest[0], UPDATES_MAX, len(results))
    token = None
    if len(rest) == 2:
        log, _, lsn = rest[1].partition(b":")
        token = f"{_read_hex(log, 32)}:{_read_number(lsn, U64, 1)}"
    return Report(txid, outcome, results, updates, token)


def _refused(body):
    fields = {}
    for key in (b"txid", b"status", b"text", b"retry-after"):
        value = _cut(body[0], key) if body else None
        if value is not None:
            fields[key.decode()] = value
            del body[0]
    if body or "status" not in fields:
        raise _bad("refusal")
    status = _read_enum(Status, fields["status"])
    retry = fields.get("retry-after")
    if status == Status.OK or (retry and status != Status.BUSY):
        raise _bad("refusal")
    txid = fields.get("txid")
    if txid is not None and not _read_hex(txid, 32).strip("0"):
        raise _bad("txid")
    return {"status": status, "text": _read_text(fields.get("text", b"")),
            "txid": text(txid) if txid is not None else None,
            "retry_after_ms": None if retry is None else
            _read_number(retry, DEADLINE_MAX_MS, 1)}


def _pair(line):
    key, space, value = (_cut(line, b"pair") or b"").partition(b" ")
    if not key or not space:
        raise _bad("pair")
    return _read_text(key), _read_text(value)


def _change(value, oids):
    head, *fields = value.split(b"\0")
    number, space, code = head.partition(b" ")
    if len(fields) < 5 or not space:
        raise _bad("change")
    target = text(fields[3]) if fields[3] else None
    return Change(_read_number(number, U32, 1), _read_enum(Status, code),
                  text(fields[0]), oids.read(fields[1]), oids.read(fields[2]),
                  target, **_words(fields[4:]))


def _record_head(value):
    fields = value.split(b" ", 5)
    if len(fields) != 6:
        raise _bad("record")
    lsn, time, uid, pid, txid, path = fields
    return {"lsn": _read_number(lsn, U64, 1), "time_ms": _read_number(time),
            "uid": _read_number(uid, U32), "pid": _read_number(pid),
            "txid": _read_hex(txid, 32), "path": _read_text(path)}


def _read_identity(identity, value):
    name, equals, value = value.partition(b"=")
    if (not _IDENTITY.fullmatch(name) or not equals or len(identity) == 8 or
            not 0 < len(value) <= 1024 or
            (identity and text(name) <= max(identity))):
        raise _bad("identity")
    identity[text(name)] = _read_text(value)


class _Lines:
    """The lines of a body, to be taken by their keys."""

    def __init__(self, lines):
        self._lines = lines
        self._at = 0

    def take(self, key):
        """The value if the next line has KEY, or None."""
        if self._at == len(self._lines):
            return None
        value = _cut(self._lines[self._at], key)
        self._at += value is not None
        return value

    def need(self, key):
        value = self.take(key)
        if value is None:
            raise ProtocolError(f"no {key.decode()} in an answer")
        return value

    def rest(self):
        return self._lines[self._at:]


def _record(lines, value):
    fields = _record_head(value)
    voids = lines.take(b"voids")
    if voids is not None:
        fields["voids"] = _read_number(voids, U64, 1)
    origin = lines.take(b"origin")
    if origin is not None:
        fields["origin"] = _read_enum(Origin, origin)
    for key in ("committer", "message"):
        value = lines.take(key.encode())
        if value == b"":
            raise _bad("record")
        fields[key] = _read_text(value or b"")
    identity, changes, oids = {}, [], _Oids()
    while (value := lines.take(b"identity")) is not None:
        _read_identity(identity, value)
    value = lines.need(b"change")
    while value is not None:
        changes.append(_change(value, oids))
        value = lines.take(b"change")
    return Record(identity=identity, changes=tuple(changes), **fields)


def _page(body):
    lines = _Lines(body)
    journal = _read_hex(lines.need(b"journal"), 32)
    gap = lines.take(b"gap")
    records = []
    while (value := lines.take(b"record")) is not None:
        records.append(_record(lines, value))
    if sum(len(record.changes) for record in records) > CHANGES_MAX:
        raise ProtocolError("more changes than an answer holds")
    lsn, space, number = lines.need(b"next").partition(b" ")
    position = Position(_read_number(lsn),
                        _read_number(number, U32, 1) if space else 0)
    if lines.rest() not in ([], [b"more"]):
        raise _bad("page")
    return Page(journal, tuple(records), position, bool(lines.rest()),
                None if gap is None else _read_number(gap))


def answer(packets):
    """Reads an answer. The packets of the list are consumed."""
    head = packets.pop(0).split(b" ") if packets else []
    if len(head) != 3 or head[0] != b"answer":
        raise _bad("answer")
    kind = text(head[2])
    number = _read_number(head[1], U32, 0 if kind == "refused" else 1)
    if kind == "refused":
        return Answer(kind, number, **_refused(packets))
    if kind in ("results", "prepared", "pending", "never-seen", "expired"):
        txid = packets and _cut(packets.pop(0), b"txid")
        if not txid:
            raise _bad("txid")
        txid = _read_hex(txid, 32)
        if kind == "results":
            return Answer(kind, number, txid, _report(txid, packets))
        if kind == "prepared":
            rewrites = packets[-1:] == [b"rewrites-packed"]
            results = _results(packets[:-1] if rewrites else packets)
            return Answer(kind, number, txid, results=results,
                          rewrites_packed=rewrites)
        if not packets:
            return Answer(kind, number, txid, Report(txid, Outcome(kind)))
    elif kind == "pairs":
        return Answer(kind, number, pairs=tuple(map(_pair, packets)))
    elif kind == "records":
        return Answer(kind, number, page=_page(packets))
    elif kind == "pong" and not packets:
        return Answer(kind, number)
    raise ProtocolError(f"an answer of an unknown or malformed kind {kind!r}")
