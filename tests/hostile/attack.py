"""Attacks by users who may do a little: push, or write a repository's files.
tests/long/attacks.sh runs them; tests/hostile/hostile.py has the attacks on the
socket alone.

    attack.py KIND SOCKET REPOSITORY COMMIT SECONDS OUTSIDE

KIND is a function of this file. A pusher (tags, halves, globs, holders, notes,
outcomes) only talks to the daemon. A member of the repository's group (packed, files, packs,
config, race, alternates, many) changes files of REPOSITORY and pushes to it
at the same time, so that the daemon looks at them. OUTSIDE is a directory that
the attacker cannot enter, and where links lead.

Prints how often the attack came round and how its requests were answered, so
that an attack that does nothing is noticed. What the daemon does about it is
looked at by others."""
import collections
import ctypes
import itertools
import os
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from raw import Client, new_txid, packet, transaction  # noqa: E402

kind, path, repo, oid = sys.argv[1:5]
until = time.monotonic() + float(sys.argv[5])
outside = sys.argv[6]
rand = random.Random(kind)
answers = collections.Counter()
turns = 0
# The values in the requests of a group member; attacks add more values.
oids = [oid]
os.umask(0o002)
# Ends this process if a request hangs.
signal.signal(signal.SIGALRM, lambda *_: sys.exit(1))
signal.alarm(int(float(sys.argv[5])) + 20)
LIBC = ctypes.CDLL(None)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def over():
    return time.monotonic() > until


def at(*names):
    return os.path.join(repo, *names)


# ---- requests ----

def headers(*options, deadline=5000):
    before = [o for o in options if o == "create-reflog"]
    after = [o for o in options if o not in before]
    return transaction(new_txid(), repo, *before, "deadline %d" % deadline,
                       "umask 0002", *after)


def count(answer, rest):
    answers[answer] += 1
    for line in rest[:20]:
        word = line.split(b"\0")[0]
        if word == b"ok" or word.startswith(b"ng "):
            answers[word.decode()] += 1


def ask_for_ever(make):
    """Asks what MAKE makes, over a new connection when one breaks."""
    while not over():
        try:
            client = Client(path)
            client.sock.settimeout(8)
            while not over():
                count(*client.ask(*make()))
        except (OSError, EOFError, ValueError):
            answers["broken"] += 1
            time.sleep(0.01)


def asking(make, connections):
    for _ in range(connections):
        threading.Thread(target=ask_for_ever, args=(make,),
                         daemon=True).start()


def any_request():
    """Of a group member: everything that makes the daemon look at files."""
    which = rand.randrange(6)
    name = "refs/heads/m/%d" % rand.randrange(20)
    if which == 0:
        updates = [("create refs/tags/%d/%d" % (rand.randrange(10), n),
                    rand.choice(oids)) for n in range(150)]
    elif which == 1:
        updates = [("delete " + name, "")]
    elif which == 2:
        updates = [("delete refs/tags/%d/%d" % (rand.randrange(10), n), "")
                   for n in range(150)]
    elif which == 3:
        return ("log", transaction(new_txid(), repo)[1:3] + ["limit 5"],
                None)
    else:
        updates = [("update " + name, rand.choice(oids), "")]
    return ("transaction", headers("create-reflog"), updates)


# ---- a pusher ----

def big_tag():
    head = "object %s\ntype commit\ntag big\n" \
        "tagger A <a@example.com> 1785542400 +0000\n\n" % oid
    return subprocess.run(
        ["git", "-C", repo, "hash-object", "-t", "tag", "-w", "--stdin"],
        input=head.encode() + b"x" * (20 << 20), stdout=subprocess.PIPE,
        check=True).stdout.decode().strip()


def tags():
    """400 refs to one annotated tag of 20 MiB, made and deleted."""
    global turns
    tag = big_tag()
    names = ["refs/tags/big/%d" % n for n in range(400)]
    client = Client(path)
    client.sock.settimeout(120)
    while not over():
        turns += 1
        for updates in ([("create " + n, tag) for n in names],
                        [("delete " + n, "") for n in names]):
            count(*client.ask("transaction", headers(deadline=60000),
                              updates))


def open_halves(half, held):
    """Connections with half a request each, until no more are let in."""
    while not over():
        try:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(0.2)
            sock.connect(path)
            sock.sendall(half)
            sock.setblocking(False)
            held.append(sock)
        except OSError:
            sock.close()
            return


def is_alive(sock):
    try:
        while sock.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    sock.close()
    return False


def halves():
    """Half-sent requests on as many connections as there are: some of few
    bytes, some of updates, some of long headers."""
    global turns
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    head = b"".join(map(packet, ["transaction 1", *headers()])) + b"0001"
    update = packet("create refs/heads/a\0" + oid)
    shapes = [head + update * 300, head[:40],
              head + packet("create refs/heads/%s\0%s" % ("a" * 900, oid)) *
              60 + b"00"]
    held = []
    while not over():
        open_halves(shapes[turns % 3], held)
        time.sleep(0.02)
        held = [sock for sock in held if is_alive(sock)]
        answers["most"] = max(answers["most"], len(held))
        turns += 1


def globs():
    """Questions about history that take long to answer, not waited for."""
    global turns
    patterns = ["ref refs/*" + "a*" * (400 - n) + "b" for n in range(16)]
    while not over():
        clients = []
        for _ in range(8):
            try:
                clients.append(Client(path))
                for _ in range(20):
                    clients[-1].send("log", patterns)
            except (OSError, EOFError):
                answers["broken"] += 1
        time.sleep(rand.choice((0, 0.05, 0.5)))
        for client in clients:
            client.sock.close()
            client.file.close()
        turns += 1


def holders():
    """Sessions that hold locks until the daemon takes them away."""
    def make():
        prefix = "refs/heads/held/%x/" % rand.getrandbits(32)
        return ("session", headers(deadline=3600000),
                [("create %s%d" % (prefix, n), oid) for n in range(200)])
    global turns
    clients = []
    while not over():
        try:
            clients.append(Client(path))
            clients[-1].sock.settimeout(5)
            count(*clients[-1].ask(*make()))
        except (OSError, EOFError):
            answers["broken"] += 1
            time.sleep(0.05)
        turns += 1


def many_at_once(make, connections, in_flight):
    """Over each connection, IN_FLIGHT requests wait for their answers at a
    time. MAKE has the number of the request."""
    def ask():
        while not over():
            try:
                client = Client(path)
                client.sock.settimeout(20)
                waiting = collections.deque()
                for nr in itertools.count():
                    if over():
                        return
                    if len(waiting) == in_flight:
                        count(*client.wait(waiting.popleft()))
                    waiting.append(client.send(*make(nr)))
            except (OSError, EOFError, ValueError):
                answers["broken"] += 1
                time.sleep(0.01)
    global turns
    for _ in range(connections):
        threading.Thread(target=ask, daemon=True).start()
    while not over():
        time.sleep(0.1)
        turns = answers["pong"] + answers["results"]


def notes():
    """Notes of the gate, each of another process; one in eight is used."""
    def make(nr):
        phase = "prepared"
        if nr % 8 == 7:
            phase = "committed"
        else:
            keys.append("%032x" % rand.getrandbits(128))
        return ("transaction",
                transaction(new_txid(), repo, "gate %s %s" % (phase, keys[-1]),
                            "umask 0002"),
                [("update refs/heads/main", oid, "")])
    keys = collections.deque(maxlen=1)
    many_at_once(make, 8, 200)


def outcomes():
    """Questions of 40 bytes about a transaction of 100,000 refs."""
    client = Client(path)
    client.sock.settimeout(120)
    head = headers(deadline=60000)
    count(*client.ask("transaction", head,
                      [("create refs/heads/storm/%d" % n, oid)
                       for n in range(100000)]))
    many_at_once(lambda _: ("query", head[:1]), 1, 40)


# ---- what a member of the group puts in the place of a file ----

def remove(name):
    try:
        if stat.S_ISDIR(os.lstat(name).st_mode):
            shutil.rmtree(name, ignore_errors=True)
        else:
            os.unlink(name)
    except OSError:
        pass


def stand_in(name, make, pause):
    """What MAKE makes stands at NAME for a moment; what stood there comes
    back."""
    new, aside = name + ".new", name + ".aside"
    try:
        make(new)
        if os.path.lexists(name):
            os.rename(name, aside)
        os.rename(new, name)
        time.sleep(pause)
    except OSError:
        pass
    remove(new)
    if os.path.lexists(aside):
        remove(name)
        try:
            os.rename(aside, name)
        except OSError:
            remove(aside)
    else:
        remove(name)


def text(data):
    def make(name):
        with open(name, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
    return make


def sparse(size):
    def make(name):
        text(b"")(name)
        os.truncate(name, size)
    return make


def link(target):
    return lambda name: os.symlink(target, name)


def bound(name):
    """A socket; its path is longer than an address may be."""
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.open(os.path.dirname(name), os.O_RDONLY)
        sock.bind("/proc/self/fd/%d/%s" % (here, os.path.basename(name)))
        os.close(here)


def closed(name):
    text(b"closed")(name)
    os.chmod(name, 0)


def stand_ins():
    return [os.mkfifo, bound, os.mkdir, closed, link("/dev/zero"),
            link("/dev/full"), link("/dev/ptmx"), link("loop"),
            link(os.path.join(outside, "secret")), link("/etc/shadow"),
            sparse(1 << 40), text(b""), text(b"\0" * 5000),
            text(os.urandom(100000))]


def packed():
    """packed-refs: sparse, garbage, unsorted, large."""
    global turns
    head = b"# pack-refs with: peeled fully-peeled sorted \n"
    lines = [b"%s refs/tags/p/%d\n" % (oid.encode(), n)
             for n in range(200000)]
    makers = [sparse(2 << 30), text(os.urandom(10 << 20)),
              text(head + b"".join(reversed(lines))),
              text(head + b"".join(sorted(lines))),
              text(head + oid.encode() + b" refs/" + b"x" * (30 << 20)),
              text(head + b"\n" * (10 << 20)),
              text(head + b"^" + oid.encode() + b"\n"), link("packed-refs")]
    asking(any_request, 4)
    while not over():
        stand_in(at("packed-refs"), makers[turns % len(makers)], 0.3)
        turns += 1


def some_objects():
    """Ids of objects that are in no pack, which the daemon looks for."""
    for _ in range(3):
        name = "%040x" % rand.getrandbits(160)
        os.makedirs(at("objects", name[:2]), exist_ok=True)
        yield name


def files():
    """FIFOs, sockets, links to devices, directories, unreadable and endless
    files, wherever the daemon opens a file."""
    global turns
    targets = [at(name) for name in (
        "HEAD", "config", "packed-refs", "packed-refs.lock", "logs",
        "logs/HEAD", "logs/refs/heads/m", "logs/refs/heads/m/1",
        "refs/heads/m", "refs/heads/m/1", "refs/tags", "refd", "refd/id",
        "refd/stage", "refd/checkpoint", "refd/lock", "commondir", "gitdir",
        "objects/info/alternates", "objects/pack/multi-pack-index",
        "worktrees", "worktrees/w", "worktrees/w/commondir", "shallow",
        "config.worktree", "objects/info", "objects/pack")]
    packs = [at("objects/pack", n) for n in os.listdir(at("objects/pack"))]
    asking(any_request, 4)
    while not over():
        where = rand.choice(targets + packs)
        stand_in(where, rand.choice(stand_ins()), 0.02)
        turns += 1
        for name in some_objects():
            loose = at("objects", name[:2], name[2:])
            make = rand.choice(stand_ins())
            try:
                make(loose)
            except OSError:
                continue
            oids[:] = [oid, name]
            time.sleep(0.01)
            remove(loose)


# ---- packs ----

def own_packs():
    """The packs as files of the attacker's, which can be changed in place;
    their bytes."""
    whole = {}
    for name in os.listdir(at("objects/pack")):
        name = at("objects/pack", name)
        with open(name, "rb") as f:
            whole[name] = f.read()
        os.unlink(name)
        text(whole[name])(name)
    return whole


def spoil(name, data):
    """In place, so that whoever has mapped it is hit; then it is whole
    again."""
    how = rand.randrange(4)
    with open(name, "r+b") as f:
        if how == 0:
            f.truncate(rand.choice((0, 8, 1032, len(data) // 2)))
        elif how == 1:
            f.seek(rand.randrange(len(data)))
            f.write(os.urandom(200))
        elif how == 2:
            f.seek(8)
            f.write(b"\xff" * 1024)
        else:
            f.truncate(1 << 33)
        f.flush()
        time.sleep(0.003)
        f.seek(0)
        f.write(data)
        f.truncate(len(data))


def packs():
    """Packs and their indexes are cut and written again while objects are
    looked up in them."""
    global turns
    listed = subprocess.run(
        ["git", "-C", repo, "cat-file", "--batch-all-objects",
         "--batch-check=%(objectname) %(objecttype)"],
        stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    oids[:] = [line.split()[0] for line in listed if "commit" in line or
               "tag" in line]
    oids.extend("%040x" % rand.getrandbits(160) for _ in range(50))
    whole = own_packs()
    indexes = [n for n in whole if n.endswith(".idx")]
    asking(any_request, 6)
    while not over():
        name = rand.choice(indexes if rand.random() < 0.8 else list(whole))
        spoil(name, whole[name])
        if turns % 50 == 0:
            # Another pack with the same contents must be opened again.
            stem = at("objects/pack", "pack-%040x" % rand.getrandbits(160))
            for ext in (".pack", ".idx"):
                text(next(d for n, d in whole.items() if n.endswith(ext)))(
                    stem + ext)
            time.sleep(0.01)
            for ext in (".idx", ".pack"):
                remove(stem + ext)
        turns += 1


# ---- configuration and where a repository is ----

def include_files(config, width, depth):
    """Files that include the next one, each WIDTH times."""
    for n in range(depth):
        text(("[include]\n" + "\tpath = inc%d\n" % (n + 1) * width +
              "[a]\n\tb = %d\n" % n) if n < depth - 1 else config)(
                  at("inc%d" % n))


def config():
    """Nested includes, giant configurations, commondir that leads in
    circles."""
    global turns
    with open(at("config"), "rb") as f:
        good = f.read()
    include_files(good.decode(), 20, 10)
    text("[include]\n\tpath = itself\n" * 50)(at("itself"))
    makers = [("config", make) for make in (
        text(good + b"[include]\n\tpath = inc0\n"),
        text(good + b"[include]\n\tpath = itself\n"),
        text(good + b"[include]\n\tpath = %s/secret\n" % outside.encode()),
        text(good + b"[includeIf \"gitdir:**\"]\n\tpath = inc0\n" * 500),
        text(good + b"[a]\n\tb = c\n" * 1000000),
        text(good + b"[a \"" + b"x" * (8 << 20) + b"\"]\n\tb = c\n"),
        text(good + b"[a]\n\tb = " + b"\\\n" * (4 << 20)),
        sparse(2 << 30), sparse(15 << 20))]
    makers += [("commondir", make) for make in (
        text(b".\n"), text(b"..\n"), text(b"worktrees/w\n"),
        text(outside + "\n"), link(os.path.join(outside, "secret")),
        link("/etc/shadow"), text(b"x/../" * 900 + b"\n"),
        text(b"/" * 4000 + b"\n"), link("commondir"))]
    os.makedirs(at("worktrees/w"), exist_ok=True)
    text("../..\n")(at("worktrees/w/commondir"))
    asking(any_request, 4)
    while not over():
        stand_in(at(makers[turns % len(makers)][0]),
                 makers[turns % len(makers)][1], 0.1)
        turns += 1


# ---- exchanges ----

def exchange(one, other):
    LIBC.renameat2(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(),
                   RENAME_EXCHANGE)


EXCHANGED = (
    "refs/heads/m", "logs/refs/heads/m", "refs/heads", "logs/refs/heads",
    "logs/refs", "refs/tags", "refs", "logs", "refd", "refd/stage", "objects",
    "refs/heads/m/1", "logs/refs/heads/m/1", "packed-refs", "HEAD",
    "logs/HEAD")


def exchange_links():
    """Pairs of a path that the daemon writes and of a link that leads to the
    same name outside, or in the innocent user's repository."""
    os.makedirs(at("evil"), exist_ok=True)
    beside = os.path.join(os.path.dirname(repo), "i.git")
    for there in [outside] + [beside] * os.path.isdir(beside):
        for name in EXCHANGED:
            new = at("evil", "%d" % len(os.listdir(at("evil"))))
            os.symlink(os.path.join(there, name), new)
            yield at(name), new


def exchange_for(seconds, pairs):
    """Back and forth; in the end all is where it was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            for pair in pairs:
                exchange(*pair)
    for one, other in pairs:
        if os.path.islink(one):
            exchange(one, other)


def race():
    """Directories below refs/ and logs/ are exchanged with links to a
    directory outside, as fast as renameat2() goes."""
    global turns

    def make():
        name = "refs/heads/m/%d" % rand.randrange(20)
        updates = [("delete " + name, "")] if rand.random() < 0.3 else \
            [("update " + name, oid, "")]
        return ("transaction", headers("create-reflog", deadline=2000),
                updates)
    pairs = list(exchange_links())
    asking(make, 6)
    while not over():
        # A separate process, not delayed by the threads here.
        pid = os.fork()
        if pid == 0:
            exchange_for(0.5, rand.sample(pairs, rand.choice((1, 1, 1, 5))))
            os._exit(0)
        os.waitpid(pid, 0)
        rand.random()
        turns += 1


# ---- alternates ----

def alternates():
    """Endless lists, circles, stores that are closed to the attacker."""
    global turns
    chain = at("chain")
    for n in range(40):
        os.makedirs(os.path.join(chain, str(n), "info"))
        os.makedirs(os.path.join(chain, str(n), "pack"))
        text("".join("%s/%d\n" % (chain, (n + k) % 40)
                     for k in range(1, 40)) * 20)(
                         os.path.join(chain, str(n), "info", "alternates"))
    closed_store = os.path.join(outside, "closed.git", "objects")
    makers = [text(chain + "/0\n"), text(at("objects") + "\n" * 1000000),
              text((at("objects") + "/../objects\n") * 100000),
              text(closed_store + "\n"), text("/dev\n/proc\n/proc/self/fd\n"),
              text("".join("/proc/%d\n" % n for n in range(100000))),
              sparse(2 << 30), text("\n".join("x" * 4000 for _ in range(500))),
              text("\"" * 500000)]
    oids.extend("%040x" % rand.getrandbits(160) for _ in range(50))
    asking(any_request, 4)
    while not over():
        stand_in(at("objects/info/alternates"), makers[turns % len(makers)],
                 0.15)
        turns += 1


# ---- many ----

def deep(name):
    """Directories below each other, deeper than a path may be long."""
    here = os.getcwd()
    try:
        os.makedirs(name, exist_ok=True)
        os.chdir(name)
        for _ in range(1000):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        text(oid + "\n")("end")
    except OSError:
        pass
    os.chdir(here)


def worktree(nr):
    where = at("worktrees", "w%d" % nr)
    os.makedirs(where, exist_ok=True)
    text("../..\n")(os.path.join(where, "commondir"))
    text("ref: refs/heads/m/%d\n" % (nr % 20))(os.path.join(where, "HEAD"))
    text("/nowhere/.git\n")(os.path.join(where, "gitdir"))


def many():
    """Worktrees by the thousand, ref directories by ten thousands, deep ones,
    long names; and requests through those worktrees."""
    global turns

    def make():
        if rand.random() < 0.7:
            return any_request()
        verb, head, updates = any_request()
        if verb != "transaction":
            return verb, head, updates
        nr = rand.randrange(2000)
        return (verb, [("git-dir " + at("worktrees", "w%d" % nr)) if
                       line.startswith("git-dir ") else line
                       for line in head], [("update HEAD", oid, "")])
    asking(make, 4)
    deep(at("refs/heads/deep"))
    deep(at("logs/refs/heads/deep"))
    while not over():
        if turns < 5000:
            worktree(turns)
        for n in range(20):
            os.makedirs(at("refs/heads/dirs/%d/%d" % (turns % 1000, n)),
                        exist_ok=True)
        try:
            text(oid + "\n")(at("refs/heads/%s" % ("n" * 250 + str(turns))
                                [-250:]))
        except OSError:
            pass
        turns += 1


try:
    globals()[kind]()
finally:
    print(kind, "turns", turns, " ".join(
        "%s=%d" % pair for pair in sorted(answers.items())))
    sys.stdout.flush()
    os._exit(0)
