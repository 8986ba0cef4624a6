"""Who takes part: each knows how to get a fresh place, to do its turn in it
by the loops of tests/bench/load, and how to see that what it claims to have
done is really there."""
import os
import shutil
import sqlite3
from types import SimpleNamespace

from place import REFD, Daemon, Redis, Unavailable, load

NR_VALUES = 101


class Stage:
    """What the contestants of one column share: the place, how dear a flush
    is, and the servers that run for all turns."""

    def __init__(self, place, delay_us, config="", counted=None):
        self.place, self.delay_us = place, delay_us
        self.template = os.path.join(place.fresh(), "template.git")
        place.run("git", "init", "-q", "--bare", "--template=", "-b", "main",
                  self.template)
        self.oids = self.new_values()
        self.daemon = Daemon(place, delay_us, config, counted)
        self.redis = None
        self.reftable = None

    def new_values(self):
        """Commits for refs to move through."""
        stream = "".join(
            f"commit refs/heads/values\nmark :{i}\ncommitter C "
            f"<c@example.com> {1700000000 + i} +0000\ndata 1\nx\n"
            for i in range(1, NR_VALUES + 1))
        marks = os.path.join(self.place.fresh(), "marks")
        self.place.run("git", "-C", self.template, "fast-import", "--quiet",
                       f"--export-marks={marks}", input=stream)
        self.place.run("git", "-C", self.template, "update-ref", "-d",
                       "refs/heads/values")
        with open(marks) as f:
            pairs = sorted((int(line.split()[0][1:]), line.split()[1])
                           for line in f)
        return [oid for _, oid in pairs]

    def repo(self, name="repo.git"):
        path = os.path.join(self.place.fresh(), name)
        shutil.copytree(self.template, path)
        return path

    def reftable_template(self):
        """Repositories of the other backend, if this git has it."""
        if not self.reftable:
            path = os.path.join(self.place.fresh(), "reftable.git")
            try:
                self.place.run("git", "init", "-q", "--bare", "--template=",
                               "-b", "main", "--ref-format=reftable", path)
            except RuntimeError as why:
                raise Unavailable("this git has no reftables") from why
            shutil.rmtree(os.path.join(path, "objects"))
            shutil.copytree(os.path.join(self.template, "objects"),
                            os.path.join(path, "objects"))
            self.place.run("git", "config", "-f",
                           os.path.join(path, "config"), "core.fsync",
                           "objects,reference")
            self.reftable = path
        return self.reftable

    def require_reftable(self):
        """Asks refd itself, by the command that would let it serve one."""
        path = os.path.join(self.place.fresh(), "asked.git")
        shutil.copytree(self.reftable_template(), path)
        try:
            self.place.run(REFD, "enable", "--socket", self.daemon.socket,
                           path)
        except RuntimeError as why:
            raise Unavailable(str(why).partition(": status ")[2]) from why


class Contestant:
    wants_age = False

    def __init__(self, stage, name, on):
        self.stage, self.name, self.on = stage, name, on

    def enters(self, point, labels):
        return True

    def prepare(self, point):
        """A turn: its place, and what it is to do."""
        return SimpleNamespace(point=point, path=self.stage.repo(), parts=[],
                               command=(), more=())

    def warm(self, turn):
        pass

    def measure(self, turn):
        return self.load(turn, turn.point)

    def load(self, turn, shape, *more, prefix="refs/heads/load"):
        got = load(self.stage.place, self.on, shape, self.stage.delay_us,
                   *turn.more, *more, "--prefix", prefix,
                   "--oid", self.stage.oids[0],
                   command=turn.command)
        turn.parts.append((got, shape))
        return got

    def there(self, turn):
        """How many refs it keeps, and the values that they have."""
        lines = self.stage.place.run(
            "git", "-C", turn.path, "for-each-ref",
            "--format=%(objectname)", "refs/heads/load").splitlines()
        return len(lines), set(lines)

    def check(self, turn):
        claimed = sum(got["done"] * shape.get("refs", 1)
                      for got, shape in turn.parts)
        nr, found = self.there(turn)
        if nr != claimed:
            raise RuntimeError(f"{self.name}: said that it made {claimed} "
                               f"refs, and {nr} are there")
        if found - set(self.stage.oids):
            raise RuntimeError(f"{self.name}: made refs of other values")

    def leave(self, turn):
        pass


class Git(Contestant):
    """The files backend, by a process for each update or one kept alive."""

    def __init__(self, stage, name, on, durable):
        super().__init__(stage, name, on)
        self.durable = durable

    def prepare(self, point):
        turn = super().prepare(point)
        if self.durable:
            self.stage.place.run("git", "-C", turn.path, "config",
                                 "core.fsync", "objects,reference")
        turn.command = self.stage.place.git.command
        turn.more = ("--repo", turn.path)
        return turn


class Reftable(Contestant):
    """Durable, unless SETTINGS say otherwise: pairs for git config."""

    def __init__(self, stage, name, on, *settings):
        super().__init__(stage, name, on)
        self.settings = settings

    def prepare(self, point):
        path = os.path.join(self.stage.place.fresh(), "repo.git")
        shutil.copytree(self.stage.reftable_template(), path)
        for key, value in self.settings:
            self.stage.place.run("git", "-C", path, "config", key, value)
        return SimpleNamespace(
            point=point, path=path, parts=[],
            command=self.stage.place.git.command, more=("--repo", path))


class Refd(Contestant):
    """In a repository of files, or of reftables."""
    wants_age = True

    def __init__(self, stage, name, on):
        super().__init__(stage, name, on)
        self.is_reftable = "reftable" in name

    def prepare(self, point):
        turn = super().prepare(point)
        if self.is_reftable:
            self.stage.require_reftable()
            turn.path = os.path.join(self.stage.place.fresh(), "repo.git")
            shutil.copytree(self.stage.reftable_template(), turn.path)
        turn.more = ("--path", self.stage.daemon.socket, "--repo", turn.path)
        return turn

    def warm(self, turn):
        self.stage.daemon.warm(turn.path, self.stage.oids[0])

    def leave(self, turn):
        # Or it would be done in the middle of the next one's turn.
        self.stage.daemon.checkpoint()


class Rename(Contestant):
    def prepare(self, point):
        turn = super().prepare(point)
        turn.more = ("--repo", turn.path)
        return turn


class Raw(Contestant):
    """A file for each load, made anew by it."""

    def prepare(self, point):
        path = os.path.join(self.stage.place.fresh(), "log")
        return SimpleNamespace(point=point, path=path, parts=[],
                               command=(), more=())

    def load(self, turn, shape, *more, **kw):
        path = turn.path + str(len(turn.parts))
        return super().load(turn, shape, "--path", path, *more, **kw)

    def there(self, turn):
        lines = [line for i in range(len(turn.parts))
                 for line in self.rows(turn.path + str(i))]
        return len(lines), set(lines)

    def rows(self, path):
        with open(path) as f:
            return [line.split()[0]
                    for line in f.read().rstrip("\0").splitlines()]


class Sqlite(Raw):
    def rows(self, path):
        db = sqlite3.connect(path)
        rows = db.execute("SELECT value FROM ref").fetchall()
        db.close()
        return [row[0].hex() for row in rows]


class RedisPeer(Contestant):
    def prepare(self, point):
        server = Redis(self.stage.place, self.stage.delay_us)
        return SimpleNamespace(point=point, server=server, parts=[],
                               command=(), more=("--path", server.socket))

    def there(self, turn):
        return turn.server.kept(), set()

    def leave(self, turn):
        turn.server.stop()


# ---- one whole command, from its start to its end ----

class Command:
    """The same contestants, by a command that reads all it is to do."""

    def words(self, turn):
        raise NotImplementedError

    def whole(self, turn):
        """The command, and a file that it reads."""
        path = os.path.join(self.stage.place.fresh(), "input")
        oid = self.stage.oids[0]
        with open(path, "w") as f:
            f.writelines(f"create refs/heads/load/0/0-{i} {oid}\n"
                         for i in range(turn.point["refs"]))
        return self.words(turn), path

    def measure(self, turn):
        command, path = self.whole(turn)
        got = load(self.stage.place, "command", {"txns": 1},
                   self.stage.delay_us, "--input", path, command=command)
        turn.parts.append((got, turn.point))
        return got


class GitCommand(Command, Git):
    # Nobody waits for ten thousand dear flushes, one after another, or for a
    # hundred thousand cheap ones.
    def enters(self, point, labels):
        refs = point.get("refs", 1)
        return not (self.durable and (self.stage.delay_us * refs > 20_000_000
                                      or refs > 10_000))

    def words(self, turn):
        return (*turn.command, "-C", turn.path, "update-ref", "--stdin")


class ReftableCommand(Command, Reftable):
    def words(self, turn):
        return (*turn.command, "-C", turn.path, "update-ref", "--stdin")


class RefdCommand(Command, Refd):
    def words(self, turn):
        return (REFD, "update", "-C", turn.path, "--socket",
                self.stage.daemon.socket, "--timeout", "600000", "--stdin")
