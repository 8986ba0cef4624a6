"""What is on the disk of a repository, read without git."""
import functools
import hashlib
import os
import re
import subprocess
import zlib

EMPTY, BROKEN = "empty", "broken"
# The object format of all repositories: sha1, or sha256.
FORMAT = os.environ.get("REFD_TEST_FORMAT", "sha1")
# The format of their refs: files, or reftable.
REFS = os.environ.get("REFD_TEST_REFS", "files")
TOOL = os.path.join(os.path.abspath(os.environ.get(
    "BUILD", os.path.dirname(os.path.abspath(__file__)) + "/../../build")),
    "tests/helper/reftable_tool")
HEX = {"sha1": 40, "sha256": 64}[FORMAT]
ONE = rb"([0-9a-f]{%d})" % HEX
LINE = re.compile(ONE + rb" " + ONE + rb" [^\0\n]*<[^\0\n>]*> "
                  rb"\d+ [-+]\d{4}\t([^\0\n]*)\Z")
OID = re.compile(ONE + rb"\s*\Z")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


# ---- reftables ----

@functools.lru_cache(maxsize=64)
def tables(git_dir, tables_list, what):
    """The lines of reftable_tool, and its complaint or "". TABLES_LIST is the
    list of tables, which never comes back with another content."""
    del tables_list
    done = subprocess.run([TOOL, what, git_dir + "/reftable"],
                          env=dict(os.environ, REFTABLE_FORMAT=FORMAT),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    return done.stdout.split(b"\n")[:-1], "" if done.returncode == 0 else \
        done.stderr.decode(errors="replace").strip() or "reftable_tool failed"


def forget():
    """A disk came back: a table of the same name may be empty now."""
    tables.cache_clear()


def tables_of(git_dir, what):
    return tables(git_dir, read(git_dir + "/reftable/tables.list"), what)


def log_of_tables(git_dir, name):
    """As a file would be: a table begins with the latest line. None: there is
    no line."""
    begin = name.encode() + b" "
    lines = [line[len(begin):] for line in tables_of(git_dir, "logs")[0][::-1]
             if line.startswith(begin)]
    return b"".join(line + b"\n" for line in lines) or None


class Refs:
    """Values by name; EMPTY and BROKEN for files that are that."""

    def __init__(self, git_dir):
        self.git_dir = git_dir
        self.values = {}
        self.complaints = []
        if REFS == "reftable":
            self.read_tables()
            return
        self.read_packed()
        self.read_loose(git_dir + "/refs")

    def read_tables(self):
        raw = read(self.git_dir + "/reftable/tables.list")
        if not raw:
            self.complaints.append("the list of tables is %s" % (
                "missing" if raw is None else "empty"))
        lines = []
        for what in ("check", "logs", "refs"):
            lines, complaint = tables_of(self.git_dir, what)
            if complaint:
                self.complaints.append("tables: " + complaint)
        for line in lines:
            fields = line.decode(errors="replace").split(" ")
            if fields[0].startswith("refs/") and fields[1] != "->":
                self.values[fields[0]] = fields[1]

    def read_packed(self):
        raw = read(self.git_dir + "/packed-refs")
        if raw is None:
            return
        if raw == b"" or b"\0" in raw or not raw.endswith(b"\n"):
            self.complaints.append("packed-refs is %s" % (
                "empty" if raw == b"" else "torn"))
        for line in raw.split(b"\n"):
            found = re.match(ONE + rb" (refs/\S+)\Z", line)
            if found:
                self.values[found[2].decode()] = found[1].decode()

    def read_loose(self, top):
        for folder, _, files in os.walk(top):
            for file in files:
                path = os.path.join(folder, file)
                if file.endswith(".lock"):
                    continue
                raw = read(path)
                if raw is None:
                    continue
                oid = OID.match(raw)
                name = os.path.relpath(path, self.git_dir)
                self.values[name] = oid[1].decode() if oid else \
                    EMPTY if raw == b"" else BROKEN

    def of(self, names):
        return {n: self.values.get(n) for n in names}


class Log:
    """A reflog: the tags of its lines, and whether all of it is whole."""

    def __init__(self, git_dir, name):
        raw = log_of_tables(git_dir, name) if REFS == "reftable" else \
            read("%s/logs/%s" % (git_dir, name))
        self.there = raw is not None
        self.is_empty = raw == b""
        self.tags = []
        self.bad = []
        self.joined = True
        lines = (raw or b"").split(b"\n")
        if lines.pop() != b"":
            self.bad.append("ends without a line feed")
        end = None
        for line in lines:
            found = LINE.match(line)
            if not found:
                self.bad.append(repr(line[:80]))
                continue
            if end is not None and found[1] != end:
                self.joined = False
            end = found[2]
            tag = found[3].decode(errors="replace")
            self.tags.append(tag if tag != "push" else
                             "push " + found[2].decode())


def locks(git_dir):
    """{path: whether it is refd's} of all that stands in others' way."""
    ours = set()
    stage = git_dir + "/refd/stage"
    if os.path.isdir(stage):
        for entry in os.scandir(stage):
            ours.add(entry.stat().st_ino)
    found = {}
    for folder, _, files in os.walk(git_dir):
        for file in files:
            if not file.endswith(".lock") and file != "packed-refs.new":
                continue
            path = os.path.join(folder, file)
            try:
                there = os.lstat(path)
            except FileNotFoundError:
                continue
            found[os.path.relpath(path, git_dir)] = \
                there.st_ino in ours or there.st_nlink > 1
    return found


def leads_to(place, git_dir, said):
    """Whether a ref leads to an object that SAID, of git fsck's, names."""
    done = subprocess.run([place.git, "-C", git_dir, "rev-list", "--objects",
                           "--all"], env=place.env, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    named = set(re.findall(r"\b[0-9a-f]{%d}\b" % HEX, said)) | {
        "".join(found) for found in
        re.findall(r"/([0-9a-f]{2})/([0-9a-f]{%d})\b" % (HEX - 2), said)}
    there = {line[:HEX] for line in done.stdout.decode().split("\n")}
    return done.returncode != 0 or not named or bool(named & there)


def is_whole(path):
    """Whether a loose object is what its name says."""
    try:
        content = zlib.decompress(read(path) or b"")
    except zlib.error:
        return False
    return hashlib.new(FORMAT, content).hexdigest() == \
        "".join(path.split("/")[-2:])


def mend_log(path):
    """Takes away what is not a whole line."""
    raw = read(path) or b""
    good = [line for line in raw.split(b"\n")[:-1] if LINE.match(line)]
    whole = b"".join(line + b"\n" for line in good)
    if whole != raw:
        with open(path, "wb") as file:
            file.write(whole)
