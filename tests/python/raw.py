"""Requests as text, also malformed requests, which the package `refd` of
client/python does not send. The package must be in the path."""
import os
import socket

from refd import new_txid, wire  # noqa: F401


class Client:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(path)
        self.file = self.sock.makefile("rb")
        self.last_id = 0
        self.early = {}  # answers that came before they were waited for
        lines = self.read_message()
        if lines[0] != b"refd version=2":
            raise ValueError("not a server of version 2: %r" % lines[0])
        self.hello = [line.decode() for line in lines]

    def read_message(self):
        return read_message(self.file)

    def send(self, verb, headers=(), updates=None):
        """Sends a request without waiting; its id. Headers are texts, updates
        lists of a command with its ref, and the fields that follow it."""
        self.last_id += 1
        packets = ["%s %d" % (verb, self.last_id), *headers]
        wire = b"".join(map(packet, packets))
        if updates is not None:
            wire += b"0001" + b"".join(packet("\0".join(u)) for u in updates)
        self.sock.sendall(wire + b"0000")
        return self.last_id

    def wait(self, request_id):
        """(kind, the other packets) of the answer to that request."""
        while request_id not in self.early:
            first, *rest = self.read_message()
            _, number, kind = first.decode().split(" ")
            self.early[int(number)] = (kind, rest)
        return self.early.pop(request_id)

    def ask(self, verb, headers=(), updates=None):
        return self.wait(self.send(verb, headers, updates))


def read_message(file):
    """The packets up to the flush."""
    packets = []
    while True:
        length = int(file.read(4) or b"-1", 16)
        if length < 0:
            raise EOFError("the server hung up")
        if length == 0:
            return packets
        packets.append(file.read(length - 4))


def packet(text):
    return wire.packet(wire.data_of(text))


def transaction(txid, git_dir, *options, object_format="sha1"):
    """Headers of a transaction; OPTIONS in the order of the protocol, the
    umask among them: it alone is required."""
    git_dir = os.path.realpath(git_dir)
    at = os.stat(git_dir)
    return ["txid " + txid, "git-dir " + git_dir,
            "common-dir %d %d" % (at.st_dev, at.st_ino),
            "object-format " + object_format, *options]
