"""A daemon that sends bytes which a terminal obeys, wherever the protocol has
a text. Argument: the path of the socket; ".admin" is appended for the other.
A file "refuses" beside the socket makes the daemon refuse each request."""
import os
import socketserver
import sys
import threading

from refd import wire

EVIL = (b"e\x1b]2;pwned\x07\x1b[2J\r\x9b31m\xc2\x9b31m\xe2\x80\xae\xe2\x80\x8f"
        b"\xe2\x81\xa6\xd8\x9c\xff\x7f")
OID = b"1" * 40
TXID = b"01" * 16


def pairs():
    """All keys that a command looks for; numbers where it needs one."""
    texts = ("role", "group_leader", "state", "flush_hangs_on", "fatal",
             "packed", "left", "durability_weakest", "progress",
             "root.path", "stall.text", "log.level", "log.text",
             "repo.name", "slow.repo", "slow.ref", "slow.outcome",
             "slow.txn", "slow.sid", "lock.file", "lock.kind", "lock.txn")
    numbers = ("group_lag_ms", "group_lsn", "flush_hangs_s", "limit_ms",
               "log.time_ms", "repo.span_ms", "slow.total_us", "lock.age_ms")
    yield "refs-format", b"files"
    for key in texts:
        yield key, EVIL
    for key in numbers:
        yield key, b"1"
    yield "client.name", b"0 " + EVIL


def read_message(file):
    """The packets up to the flush; a delimiter is no packet."""
    packets = []
    while length := int(file.read(4) or b"-1", 16):
        if length < 0:
            raise EOFError("the client hung up")
        packets += [file.read(length - 4)] if length > 1 else []
    return packets


def results(lines):
    """The fate of the refs of a transaction, or of two that no ref can be. A
    client shows nothing of an answer that does not fit its request."""
    refs = [line.split(b" ", 1)[1].split(b"\0")[0] for line in lines
            if line.split(b" ")[0] in (b"update", b"create", b"verify")]
    if not refs:
        yield b"ok\0" + EVIL + b"\0\0"
    for ref in refs or [EVIL]:
        yield b"ng stale\0" + ref + b"\0" + OID + b"\0" + EVIL
    yield b"outcome rejected %d" % len(refs) if refs else b"outcome partial 2"


def records():
    yield b"journal " + TXID
    yield b"record 1 1 0 1 " + TXID + b" /" + EVIL
    yield b"committer " + EVIL
    yield b"message " + EVIL
    yield b"identity GL_USER=" + EVIL
    yield b"identity SSH_CONNECTION=" + EVIL
    yield (b"change 1 stale\0refs/heads/" + EVIL + b"\0" + OID + b"\0\0\0"
           + EVIL)
    yield b"change 2 ok\0HEAD\0\0\0refs/heads/" + EVIL + b"\0"
    yield b"next 1 2"


class Session(socketserver.StreamRequestHandler):
    def tell(self, packets):
        self.wfile.write(b"".join(map(wire.packet, packets)) + b"0000")

    def handle(self):
        self.tell([b"refd version=2", b"software " + EVIL[-30:],
                   b"state serving", b"horizon 0", b"pid 1",
                   b"limit updates=100 bytes=100000"]
                  + [b"capability " + word for word in
                     b"transaction session query cancel ping status stats "
                     b"checkpoint log watch metrics gate pack look".split()])
        try:
            while True:
                self.answer(read_message(self.rfile))
        except (EOFError, ConnectionError):
            pass

    def answer(self, lines):
        verb, number = lines[0].split(b" ")
        head = b"answer " + number + b" "
        txid = [line for line in lines if line.startswith(b"txid ")]
        if os.path.exists(os.path.join(os.path.dirname(sys.argv[1]),
                                       "refuses")):
            self.tell([head + b"refused", *txid, b"status denied",
                       b"text " + EVIL])
        elif verb in (b"transaction", b"query"):
            self.tell([head + b"results", *txid, *results(lines)])
        elif verb in (b"log", b"watch"):
            self.tell([head + b"records", *records()])
        elif verb == b"ping":
            self.tell([head + b"pong"])
        else:
            self.tell([head + b"pairs"] + [
                b"pair " + key.encode() + b" " + text
                for key, text in pairs()])


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


servers = [Server(sys.argv[1] + end, Session) for end in (".admin", "")]
threading.Thread(target=servers[0].serve_forever, daemon=True).start()
servers[1].serve_forever()
