"""The messages of proto/vectors.json, as the protocol's text has them.
Arguments: that file, the socket of a daemon. What a server says is decoded
here to the fields that stand there, and what a client says is encoded from
them to the same bytes; what is refused there, the daemon refuses, too.
Prints `ok` and `not ok` lines."""
import io
import json
import sys

from refd import Client, read_message

# Of each command: does it have a new oid, a target; and the kind of its old
# value, where it takes one.
COMMANDS = {
    "update": (True, False, "oid"), "create": (True, False, None),
    "delete": (False, False, "oid"), "verify": (False, False, "oid"),
    "symref-update": (False, True, "either"),
    "symref-create": (False, True, None),
    "symref-delete": (False, False, "ref"),
    "symref-verify": (False, False, "ref")}


def packet(text):
    data = text.encode("latin-1")
    return b"%04x%s" % (len(data) + 4, data)


# ---- what a client says ----

def header(key, value):
    if value is True:
        return [key]
    if key == "identity":
        return ["identity %s=%s" % pair for pair in value.items()]
    if key == "level" and "nodes" in value:
        return ["level %(kind)s=%(nodes)d" % value]
    if isinstance(value, dict):
        return [" ".join([key, *map(str, value.values())])]
    if isinstance(value, list):
        return ["%s %s" % (key, one) for one in value]
    return ["%s %s" % (key, value)]


def update(u):
    has_oid, has_target, old = COMMANDS[u["command"]]
    fields = [u["command"] + " " + u["ref"]]
    fields += [u["oid"]] if has_oid else []
    fields += [u["target"]] if has_target else []
    if old == "oid":
        fields.append(u.get("old-oid", ""))
    elif old == "ref":
        fields.append(u.get("old-target", ""))
    elif old and "old-oid" in u:
        fields += ["oid", u["old-oid"]]
    elif old and "old-target" in u:
        fields += ["ref", u["old-target"]]
    option = ["option no-deref"] if "no-deref" in u else []
    return option + ["\0".join(fields)]


def request(fields):
    rest = dict(fields)
    lines = ["%s %d" % (rest.pop("verb"), rest.pop("id"))]
    updates = rest.pop("updates", None)
    for key, value in rest.items():
        lines += header(key, value)
    wire = b"".join(map(packet, lines))
    if updates is not None:
        wire += b"0001" + b"".join(
            packet(line) for u in updates for line in update(u))
    return wire + b"0000"


# ---- what a server says ----

def some(**fields):
    """Those that were given."""
    return {key.replace("_", "-"): value for key, value in fields.items()
            if value not in ("", None)}


def named(words):
    return {key: int(value) for key, value in
            (word.split("=") for word in words.split(" "))}


def hello(lines):
    fields = {"version": int(lines[0].split("=")[1])}
    for key, value in (line.split(" ", 1) for line in lines[1:]):
        if key in ("software", "state"):
            fields[key] = value
        elif key in ("horizon", "pid"):
            fields[key] = int(value)
        elif key in ("limit", "progress"):
            fields[key] = named(value)
    return fields


def words(text, *detail):
    return {"detail": list(detail)} if detail else some(text=text)


def result(line):
    head, ref, oid, *rest = line.split("\0")
    return {"status": head.split(" ")[-1], "ref": ref, **some(oid=oid),
            **words(*rest)}


def results(lines):
    *lines, last = lines
    _, outcome, updates, *token = last.split(" ")
    fields = {"results": [result(line) for line in lines],
              "outcome": outcome, "updates": int(updates)}
    if token:
        log, lsn = token[0].split(":")
        fields["token"] = {"log": log, "lsn": int(lsn)}
    return fields


def prepared(lines):
    fields = {"results": [result(line) for line in lines if "\0" in line]}
    if lines and lines[-1] == "rewrites-packed":
        fields["rewrites-packed"] = True
    return fields


def refused(lines):
    fields = dict(line.split(" ", 1) for line in lines)
    if "retry-after" in fields:
        fields["retry-after"] = int(fields["retry-after"])
    return fields


def change(line):
    head, ref, old, new, target, *rest = line.split("\0")
    number, code = head.split(" ")
    return {"change": int(number), "status": code, "ref": ref,
            **some(old_oid=old, oid=new, target=target), **words(*rest)}


def record(value):
    lsn, time, uid, pid, txid, path = value.split(" ", 5)
    return {"lsn": int(lsn), "time": int(time), "uid": int(uid),
            "pid": int(pid), "txid": txid, "path": path, "changes": []}


def records(lines):
    fields = {"records": []}
    for line in lines:
        key, _, value = line.partition(" ")
        of_record = fields["records"][-1] if fields["records"] else None
        if key == "record":
            fields["records"].append(record(value))
        elif key == "change":
            of_record["changes"].append(change(value))
        elif key == "identity":
            name, _, value = value.partition("=")
            of_record.setdefault("identity", {})[name] = value
        elif key == "next":
            lsn, *number = map(int, value.split(" "))
            fields["next"] = dict(zip(("lsn", "change"), [lsn, *number]))
        elif key in ("committer", "message"):
            of_record[key] = value
        elif key == "voids":
            of_record[key] = int(value)
        elif key == "gap":
            fields[key] = int(value)
        else:
            fields[key] = value or True
    return fields


def pairs(lines):
    return {"pairs": [line.split(" ", 2)[1:] for line in lines]}


def answer(lines):
    _, number, kind = lines.pop(0).split(" ")
    fields = {"kind": kind, "id": int(number)}
    if lines and lines[0].startswith("txid "):
        fields["txid"] = lines.pop(0)[5:]
    bodies = {"results": results, "prepared": prepared, "refused": refused,
              "records": records, "pairs": pairs}
    if kind in bodies:
        fields.update(bodies[kind](lines))
    elif lines:
        raise ValueError("%s has a body" % kind)
    return fields


def main(vectors, path):
    client = Client(path)
    for v in vectors:
        wire = "".join(v["packets"]).encode("latin-1")
        if "request" in v:
            wanted, got = wire, request(v["request"])
        elif "refused" in v:
            client.sock.sendall(wire)
            kind, body = client.wait(v["refused"]["id"])
            status = "status " + v["refused"]["status"]
            wanted = ("refused", True)
            got = (kind, status.encode() in body)
        elif "fatal" not in v:
            decode, wanted = ((hello, v["hello"]) if "hello" in v else
                              (answer, v["answer"]))
            got = decode([p.decode("latin-1")
                          for p in read_message(io.BytesIO(wire))])
        else:
            continue
        if wanted == got:
            print("ok", v["name"])
        else:
            print("not ok %s: wanted %r, got %r" % (v["name"], wanted, got))


with open(sys.argv[1], encoding="ascii") as file:
    main(json.load(file), sys.argv[2])
