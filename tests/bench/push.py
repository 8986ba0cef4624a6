"""B1: git push of N new refs and one new commit to a local bare repository,
from git's start to its end."""
import os
import shutil
import time
from types import SimpleNamespace

from contestants import Contestant, Stage
from place import COLUMNS, HELPER, REFD, Unavailable, load
from rounds import AGE_S

NAMES = ("git", "git durable", "reftable durable", "hook only", "refd",
         "refd reftable")


def settle_git(stage, repo):
    pass


def settle_durable(stage, repo):
    stage.place.run("git", "-C", repo, "config", "core.fsync",
                    "objects,reference")


def settle_hook(stage, repo):
    # As refd enable has it, so that objects cost both the same.
    for key, value in (("core.fsync", "committed,loose-object"),
                       ("core.fsyncMethod", "batch")):
        stage.place.run("git", "-C", repo, "config", key, value)
    os.makedirs(os.path.join(repo, "hooks"), exist_ok=True)
    os.symlink(os.path.join(HELPER, "hook_ok"),
               os.path.join(repo, "hooks/proc-receive"))
    for refs in ("refs", "adm!:refs"):
        stage.place.run("git", "-C", repo, "config", "--add",
                        "receive.procReceiveRefs", refs)


def settle_refd(stage, repo):
    try:
        stage.place.run(REFD, "enable", "--socket", stage.daemon.socket, repo)
    except RuntimeError as why:
        raise Unavailable(str(why).partition(": status ")[2]) from why


SETTLE = dict(zip(NAMES, (settle_git, settle_durable, settle_git, settle_hook,
                          settle_refd, settle_refd)))


class Pusher(Contestant):
    def __init__(self, stage, name):
        super().__init__(stage, name, "command")
        self.is_refd = self.wants_age = SETTLE[name] == settle_refd

    def enters(self, point, labels):
        return not (self.name == "git durable" and self.stage.delay_us *
                    point["refs"] > 20_000_000)

    def prepare(self, point):
        place = self.stage.place
        path = place.fresh()
        work = os.path.join(path, "work.git")
        server = os.path.join(path, "server.git")
        shutil.copytree(self.stage.template, work)
        shutil.copytree(self.stage.reftable_template()
                        if "reftable" in self.name else self.stage.template,
                        server)
        SETTLE[self.name](self.stage, server)
        old = self.stage.oids[-1]
        tree = place.run("git", "-C", work, "rev-parse", f"{old}^{{tree}}")
        new = place.run("git", "-C", work, "commit-tree", "-p", old, "-m",
                        "new", tree)
        place.run("git", "-C", work, "update-ref", "refs/heads/warm", old)
        refs = "".join(f"create refs/heads/load/{i} {new}\n"
                       for i in range(point["refs"]))
        place.run("git", "-C", work, "update-ref", "--stdin", input=refs)
        return SimpleNamespace(point=point, work=work, path=server, new=new,
                               parts=[])

    def words(self, turn, refs):
        return (*self.stage.place.git.command, "-C", turn.work, "push", "-q",
                turn.path, refs)

    def whole(self, turn):
        return self.words(turn, "refs/heads/load/*"), "/dev/null"

    def warm(self, turn):
        """What only the first push to a repository costs is not in question:
        it is made known by another ref. This push leaves a pack, and the
        next push of a server comes after a checkpoint. A checkpoint on
        demand empties the log, and the first update after it flushes the
        head of the log too."""
        place = self.stage.place
        place.run(*self.words(turn, "refs/heads/warm"))
        if self.is_refd:
            time.sleep(AGE_S)
            self.stage.daemon.checkpoint()
            self.stage.daemon.warm(turn.path, self.stage.oids[-1])
        # Nobody else writes it, and all would be sent once more.
        if self.name == "hook only":
            place.run("git", "-C", turn.path, "update-ref",
                      "refs/heads/warm", self.stage.oids[-1])
        # Changes nothing. For every contestant, the last program before the
        # push is then git, which starts faster from a processor's caches.
        place.run(*self.words(turn, "refs/heads/warm"))

    def measure(self, turn):
        got = load(self.stage.place, "command", {"txns": 1},
                   self.stage.delay_us,
                   command=self.whole(turn)[0])
        turn.parts.append((got, turn.point))
        return got

    def there(self, turn):
        if self.name == "hook only":
            return turn.point["refs"], set()
        nr, found = super().there(turn)
        return nr, found - {turn.new}

    def leave(self, turn):
        if self.is_refd:
            self.stage.daemon.checkpoint()
            self.stage.daemon.warm(turn.path, self.stage.oids[-1])


def run(bench, rounds):
    points = [{"refs": n} for n in bench.sizes(
        full=(1, 10, 100, 1000), quick=(1, 10, 100, 1000), tiny=(1, 3))]
    for column, delay_us in COLUMNS.items():
        bench.place.renew()
        stage = Stage(bench.place, delay_us)
        rounds.run(points, [Pusher(stage, name) for name in NAMES],
                   column=column)
