"""What the rig says to the daemon: proto/PROTOCOL.md in a few lines."""
import os
import secrets
import socket
import time

from look import FORMAT


class Gone(Exception):
    """The daemon is away, or hung up before it answered."""


def packet(payload):
    return b"%04x" % (len(payload) + 4) + payload


def new_txid():
    return "%012x%s" % (int(time.time() * 1000), secrets.token_hex(10))


class Transaction:
    """Updates are bytes as the protocol has them."""

    def __init__(self, git_dir, updates, message, atomic=False,
                 durability=None):
        self.txid = new_txid()
        self.git_dir = git_dir
        self.updates = updates
        self.message = message
        self.atomic = atomic
        self.durability = durability

    def headers(self):
        there = os.stat(self.git_dir)
        yield "txid " + self.txid
        yield "git-dir " + self.git_dir
        yield "common-dir %d %d" % (there.st_dev, there.st_ino)
        yield "object-format " + FORMAT
        if self.atomic:
            yield "atomic"
        if self.durability:
            yield "durability " + self.durability
        yield "umask 0022"
        yield "message " + self.message
        yield "committer C O Mitter <committer@example.com> %d +0000" % (
            time.time())
        yield "log-all-ref-updates always"


class Wire:
    """One connection; one request at a time."""

    def __init__(self, path, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.read = b""
        self.last_id = 0
        try:
            self.socket.connect(path)
            self.hello = self.message()
        except OSError as error:
            self.socket.close()
            raise Gone(str(error)) from error

    def close(self):
        self.socket.close()

    def state(self):
        for line in self.hello:
            if line.startswith(b"state "):
                return line[6:].decode()
        return None

    def take(self, size):
        while len(self.read) < size:
            try:
                more = self.socket.recv(65536)
            except OSError as error:
                raise Gone(str(error)) from error
            if not more:
                raise Gone("hung up")
            self.read += more
        taken, self.read = self.read[:size], self.read[size:]
        return taken

    def message(self):
        """The packets up to a flush."""
        packets = []
        while True:
            size = int(self.take(4), 16)
            if size == 0:
                return packets
            packets.append(self.take(size - 4) if size > 4 else b"")

    def ask(self, verb, headers, updates=None):
        """(kind, body) of the answer."""
        self.last_id += 1
        request = packet(b"%s %d" % (verb.encode(), self.last_id))
        request += b"".join(packet(line.encode()) for line in headers)
        if updates is not None:
            request += b"0001" + b"".join(map(packet, updates))
        try:
            self.socket.sendall(request + b"0000")
        except OSError as error:
            raise Gone(str(error)) from error
        answer = self.message()
        first = answer[0].decode().split(" ")
        if int(first[1]) != self.last_id:
            raise Gone("refused: %r" % answer)
        body = answer[1:]
        if body and body[0].startswith(b"txid "):
            body = body[1:]
        return first[2], body

    def transact(self, txn):
        """{ref: code}; raises Gone where there is no answer. A request that
        was refused is {None: code}."""
        return self.results(*self.ask("transaction", txn.headers(),
                                      txn.updates))

    def query(self, txid):
        """What transact() would have said, or the kind of the answer."""
        kind, body = self.ask("query", ["txid " + txid])
        return self.results(kind, body) if kind == "results" else kind

    @staticmethod
    def results(kind, body):
        if kind != "results":
            return {None: body[0].decode() if body else kind}
        codes = {}
        for line in body[:-1]:
            words = line.split(b"\0")
            codes[words[1].decode()] = words[0].decode().split(" ")[-1]
        return codes


def wait_until_served(path, alive, seconds=60):
    """Until the daemon says that it serves. ALIVE() tells whether there is
    still one to wait for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        try:
            wire = Wire(path)
            state = wire.state()
            wire.close()
            if state == "serving":
                return True
        except (Gone, ValueError):
            pass
        time.sleep(0.003)
    return False
