"""Clients that mean no good, or know no better: slow, huge, half-closed, out of
order, deaf, thousands at once. Each kind runs until its time is over and says
how often it came round; what the daemon does about it is looked at by others.

Arguments: kind, socket, a repository that it may write, a commit in it, one
that it may not, seconds, how many connections at once."""
import array
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from raw import Client, new_txid, packet, transaction  # noqa: E402

kind, path, repo, oid, foreign = sys.argv[1:6]
seconds, many = float(sys.argv[6]), int(sys.argv[7])
until = time.monotonic() + seconds
rand = random.Random(kind)
turns = 0
NAME = "refs/heads/hostile/" + kind


def dial():
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(2)
    sock.connect(path)
    return sock


def over():
    return time.monotonic() > until


def wire(verb, number, headers, updates=None):
    """A request as bytes."""
    out = b"".join(map(packet, ["%s %d" % (verb, number), *headers]))
    if updates is not None:
        out += b"0001" + b"".join(packet("\0".join(u)) for u in updates)
    return out + b"0000"


def update(ref, *options, where=repo, verb="transaction", number=1):
    return wire(verb, number, transaction(new_txid(), where, *(
        options or ("umask 0022",))), [("update " + ref, oid, "")])


def drain(sock):
    """What it says, until it is done or hangs up."""
    try:
        while sock.recv(65536):
            pass
    except OSError:
        pass


def slow():
    """Byte by byte, all at the same time; some stop in the middle."""
    socks = [(dial(), update("%s/%d" % (NAME, n))) for n in range(many)]
    for at in range(max(len(data) for _, data in socks)):
        for n, (sock, data) in enumerate(socks):
            if at < len(data) and (n % 3 or at < len(data) // 2):
                sock.send(data[at:at + 1])
        if over():
            break
        time.sleep(0.002)
    for sock, _ in socks:
        sock.close()


def huge():
    """More than it takes: updates, headers, bytes, lengths."""
    which = rand.randrange(5)
    with dial() as sock:
        try:
            if which == 0:
                sock.sendall(packet("transaction 1") * 70000)
            elif which == 1:
                sock.sendall(b"".join(packet(line) for line in [
                    "transaction 1", *transaction(new_txid(), repo)]) +
                    packet("message " + "x" * 65000) * 1100)
            elif which == 2:
                head = wire("transaction", 1, transaction(
                    new_txid(), repo, "umask 0022"), [])[:-4]
                sock.sendall(head)
                line = packet("create %s/%s\0%s" % (NAME, "x" * 900, oid))
                for _ in range(90):
                    sock.sendall(line * 1000)
                sock.sendall(b"0000")
            elif which == 3:
                sock.sendall(wire("transaction", 1, transaction(
                    new_txid(), repo, "atomic", "umask 0022"), [
                        ("create %s/many/%d" % (NAME, n), oid)
                        for n in range(5000)]))
            else:
                sock.sendall(b"fff0" + rand.randbytes(65516) * 100)
        except OSError:
            pass
        drain(sock)


def half():
    """One side closed, or both, before, in or after a request."""
    for _ in range(10):
        with dial() as sock:
            data = update(NAME + "/%d" % rand.randrange(20))
            data = data[:rand.choice((len(data), rand.randrange(len(data))))]
            try:
                sock.sendall(data)
                how = rand.randrange(4)
                if how == 0:
                    sock.shutdown(socket.SHUT_WR)
                    drain(sock)
                elif how == 1:
                    sock.shutdown(socket.SHUT_RD)
                elif how == 2:
                    sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def disorder():
    """Requests that are whole, in an order that makes no sense."""
    txid, other = new_txid(), new_txid()
    words = [wire(verb, number, ["txid " + which])
             for verb in ("commit", "abort", "cancel", "query")
             for number in (1, 2, 3) for which in (txid, other)]
    words += [update(NAME + "/s", verb="session", number=n) for n in (1, 2)]
    words += [wire("session", 3, transaction(txid, repo, "umask 0022"),
                   [("update %s/t" % NAME, oid, "")])] * 3
    words += [wire("transaction", 4, transaction(txid, repo, "umask 0022"),
                   [("delete %s/t" % NAME, "")])]
    words += [b"0000", b"0001", b"0001", packet("txid " + txid),
              packet("create %s\0%s" % (NAME, oid)), wire("ping", 1, []),
              wire("stats", 1, []), wire("watch", 5, []), wire("log", 6, [])]
    words += [update(NAME, where=foreign),
              wire("query", 7, ["txid " + "0" * 32])]
    with dial() as sock:
        try:
            for word in rand.choices(words, k=200):
                sock.sendall(word)
        except OSError:
            pass
        sock.settimeout(0.2)
        drain(sock)


def mangled():
    """What is almost right: bytes flipped, cut out, doubled."""
    with dial() as sock:
        try:
            for _ in range(100):
                data = bytearray(update(NAME, "umask 0022", "message m"))
                for _ in range(rand.randrange(4)):
                    at = rand.randrange(len(data))
                    how = rand.randrange(3)
                    if how == 0:
                        data[at] ^= 1 << rand.randrange(8)
                    elif how == 1:
                        del data[at:at + rand.randrange(9)]
                    else:
                        data[at:at] = data[at:at + rand.randrange(99)]
                sock.sendall(data)
        except OSError:
            pass
        sock.settimeout(0.2)
        drain(sock)


def deaf():
    """Asks and asks, and never reads."""
    socks = [dial() for _ in range(min(many, 20))]
    asks = wire("stats", 1, []) * 1000
    for sock in socks:
        sock.setblocking(False)
    end = time.monotonic() + 3
    while time.monotonic() < end and not over():
        for sock in socks:
            try:
                sock.send(asks)
            except OSError:
                pass
        time.sleep(0.05)
    for sock in socks:
        sock.close()


def crowd():
    """Thousands at once: some ask, some are silent, some are gone at once;
    some leave a prepared session behind."""
    socks = []
    for n in range(many * 20):
        try:
            sock = dial()
            if n % 5 == 0:
                sock.sendall(wire("ping", 1, []))
            elif n % 5 == 1:
                sock.sendall(update("%s/%d" % (NAME, n)))
            elif n % 50 == 2:
                sock.sendall(update("%s/%d" % (NAME, n), verb="session"))
            elif n % 5 == 3:
                sock.close()
            socks.append(sock)
        except OSError:
            pass
        if over():
            break
    for sock in socks:
        sock.close()


def gifts():
    """Descriptors that nobody wanted."""
    with dial() as sock, open("/dev/null", "rb") as file:
        fds = array.array("i", [file.fileno()] * 100)
        try:
            for _ in range(20):
                sock.sendmsg([wire("ping", 1, [])], [
                    (socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        except OSError:
            pass
        sock.settimeout(0.2)
        drain(sock)


def good():
    """None of them: updates of a ref, one after the other, each of which must
    succeed; some at least, however slow all is. Says how long they took."""
    took, value, client = [], oid, Client(path)
    while not over() or len(took) < 10:
        began = time.monotonic()
        ref = NAME + "/%d" % (len(took) % 10)
        answer = client.ask("transaction", transaction(
            new_txid(), repo, "umask 0022"), [("update " + ref, value, "")])
        took.append(time.monotonic() - began)
        if answer[0] != "results" or not answer[1][1].startswith(b"ok\0"):
            print("failed", answer)
            return
        time.sleep(0.02)
    took.sort()
    print("served %d %d %d" % (len(took), took[len(took) // 2] * 1000,
                               took[-1] * 1000))


while not over():
    turns += 1
    try:
        globals()[kind]()
    except OSError as error:
        if kind == "good":
            print("failed", error)
            break
        time.sleep(0.05)
print("turns", turns)
