"""An ordinary client while others attack: how long its requests take, and
whether all of them succeed. tests/long/attacks.sh runs one process of each
kind.

    innocent.py updates|commits|questions SOCKET REPOSITORY COMMIT RATE SECONDS

updates: moves ten refs. commits: writes a new commit object and moves a ref to
it, so the daemon has to look the object up and sync it. questions: asks for the
history of the repository.

The load is an open loop: RATE requests a second are due at fixed times, whether
or not earlier ones were answered, and a time counts from when the request was
due. A request answered with "busy" is sent again, as every client of refd does.
Anything else but success is a failure, and so is no answer within the deadline
of 30 s.

Prints one line: kind, number sent, number failed, median, 99th percentile and
maximum in microseconds, and the first failure."""
import hashlib
import os
import signal
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from raw import Client, new_txid, transaction  # noqa: E402

DEADLINE_MS = 30000
os.umask(0o002)
signal.alarm(int(float(sys.argv[6])) + 60)  # it ends what hangs
kind, path, repo, oid = sys.argv[1:5]
rate, seconds = float(sys.argv[5]), float(sys.argv[6])
lock = threading.Lock()
sent = {}  # request id: (when it was due, the request)
times, failures = [], []
is_sent = threading.Event()


def new_commit(nr):
    """A loose object, as git writes one: a temporary file and a link."""
    body = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n" \
        b"parent %s\nauthor A <a@example.com> %d +0000\n" \
        b"committer A <a@example.com> %d +0000\n\ncommit %d\n" % (
            oid.encode(), time.time(), time.time(), nr)
    data = b"commit %d\0%s" % (len(body), body)
    name = hashlib.sha1(data).hexdigest()
    folder = os.path.join(repo, "objects", name[:2])
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, "tmp_obj_%d" % os.getpid())
    with open(temporary, "wb") as f:
        f.write(zlib.compress(data))
        os.fsync(f.fileno())
    os.chmod(temporary, 0o444)
    os.rename(temporary, os.path.join(folder, name[2:]))
    return name


def request(nr):
    if kind == "questions":
        return ("log", transaction(new_txid(), repo)[1:3] + [
            "ref refs/heads/innocent/", "limit 10", "reverse"], None)
    ref = "refs/heads/innocent/%s/%d" % (kind, nr % 10)
    value = oid if kind == "updates" else new_commit(nr)
    return ("transaction", transaction(
        new_txid(), repo, "deadline %d" % DEADLINE_MS, "umask 0002"),
        [("update " + ref, value, "")])


def send(client, due, what):
    with lock:
        sent[client.last_id + 1] = (due, what)
        client.send(*what)


def send_all(client):
    began = time.monotonic()
    for nr in range(int(rate * seconds)):
        due = began + nr / rate
        time.sleep(max(0, due - time.monotonic()))
        try:
            send(client, due, request(nr))
        except OSError as error:
            failures.append("cannot send: %s" % error)
    is_sent.set()


def judge(answer, rest):
    """None, or why it is a failure."""
    if kind == "questions" and answer == "records":
        return None
    if answer == "results" and any(p.startswith(b"ok\0") for p in rest):
        return None
    return "%s %s" % (answer, rest[:3])


def read_one(client):
    first, *rest = client.read_message()
    _, number, answer = first.decode().split(" ")
    if int(number) == 0:
        raise EOFError("the daemon hangs up: %r" % rest)
    with lock:
        due, what = sent.pop(int(number))
    if answer == "refused" and b"status busy" in rest:
        time.sleep(0.002)
        send(client, due, what)
        return
    times.append(time.monotonic() - due)
    failed = judge(answer, rest)
    if failed is not None:
        failures.append(failed)


def part(share):
    if not times:
        return 0
    return int(sorted(times)[min(len(times) - 1, int(len(times) * share))] *
               1e6)


client = Client(path)
end = time.monotonic() + seconds + DEADLINE_MS / 1000 + 5
threading.Thread(target=send_all, args=(client,), daemon=True).start()
try:
    while not is_sent.is_set() or sent:
        client.sock.settimeout(max(0.1, end - time.monotonic()))
        if sent:
            read_one(client)
        else:
            time.sleep(0.001)
except (OSError, EOFError, ValueError) as error:
    failures.append("%d without an answer: %s" % (len(sent), error))
print(kind, len(times) + len(sent), len(failures), part(0.5), part(0.99),
      int(max(times, default=0) * 1e6), *failures[:1])
sys.stdout.flush()
os._exit(0)
