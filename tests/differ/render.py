"""A step's standard input as bytes."""

FIELDS = {"update": 3, "create": 2, "delete": 2, "verify": 2,
          "symref-update": 4, "symref-create": 2, "symref-delete": 2,
          "symref-verify": 2}


def encode(text):
    return text.encode("utf-8", "surrogateescape")


def c_quote(raw):
    out = b""
    for byte in raw:
        if byte in b"\"\\" or byte < 32 or byte >= 127:
            out += b"\\%03o" % byte
        else:
            out += bytes([byte])
    return b'"' + out + b'"'


def needs_quotes(raw):
    return raw[:1] == b'"' or any(c in raw for c in b" \t\n")


def input_bytes(step, resolve):
    """RESOLVE makes a string of a value."""
    out = b""
    for line in step["lines"]:
        fields = [encode(resolve(f)) for f in line]
        if step["z"]:
            out += z_line(fields)
            continue
        # An empty old value has to be written as one.
        fields = fields[:1] + [c_quote(f) if needs_quotes(f) or
                               not f and i == 3 else f
                               for i, f in enumerate(fields[1:], 1)]
        out += b" ".join(fields) + b"\n"
    return mangled(out, step.get("mangle"))


def z_line(fields):
    command, rest = fields[0], fields[1:]
    wanted = FIELDS.get(command.decode("utf-8", "surrogateescape"))
    if wanted is None or not rest:
        return b" ".join(fields) + b"\0"
    if command != b"symref-update":
        rest += [b""] * (wanted - len(rest))
    return command + b" " + b"\0".join(rest) + b"\0"


def mangled(raw, how):
    if how is None or not raw:
        return raw
    at, kind = how % len(raw), how // 7919 % 5
    if kind == 0:
        return raw[:at]
    if kind == 1:
        return raw[:at] + raw[at + 1:]
    if kind == 2:
        return raw[:at] + raw[at:at + 1] * 2 + raw[at + 1:]
    insert = [b" ", b'"', b"\n", b"\0", b"\\", b"\t"][how // 31 % 6]
    if kind == 3:
        return raw[:at] + insert + raw[at:]
    return raw[:at] + insert + raw[at + 1:]
