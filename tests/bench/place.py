"""Where the bench happens: a file system of its own, directories that nobody
used before, and the processes that it starts and ends by their ids."""
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
REFD = os.path.join(BUILD, "bin/refd")
LOAD = os.path.join(BUILD, "tests/bench/load")
HELPER = os.path.join(BUILD, "tests/helper")

# Columns: how much is added to every flush of every contestant.
CHEAP, DEAR = "cheap flush", "5 ms flush"
COLUMNS = {CHEAP: 0, DEAR: 5000}


class Unavailable(Exception):
    """A contestant or a measurement that this machine does not have."""


# No push starts maintenance, which would work on in the background of the next
# turns. Settings in the environment would not do: `git push` removes them for
# receive-pack, and `refd update` would start a git process to read them.
USER_CONFIG = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"


def environment(home):
    """Nothing of the machine's configuration gets in."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("GIT_", "REFD_", "XDG_", "LD_PRELOAD"))}
    env.update(HOME=home, LC_ALL="C", GIT_CONFIG_NOSYSTEM="1",
               REFD_STATE=os.path.join(home, "none"),
               GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@example.com",
               GIT_COMMITTER_NAME="C", GIT_COMMITTER_EMAIL="c@example.com")
    with open(os.path.join(home, ".gitconfig"), "w") as f:
        f.write(USER_CONFIG)
    return env


def delayed(env, delay_us):
    if not delay_us:
        return dict(env)
    return dict(env, REFD_FLUSH_DELAY_US=str(delay_us),
                LD_PRELOAD=os.path.join(HELPER, "preload_flush.so"))


class Number:
    """A number that a preloaded library writes to a file."""

    def __init__(self, place):
        self.path = os.path.join(place.fresh(), "number")
        with open(self.path, "wb") as f:
            f.write(bytes(8))

    def now(self):
        with open(self.path, "rb") as f:
            return int.from_bytes(f.read(8), sys.byteorder)

    def clear(self):
        with open(self.path, "r+b") as f:
            f.write(bytes(8))


class FlushCount(Number):
    """What everybody flushes who is started with environ()."""

    def environ(self, env):
        return dict(env, REFD_FLUSH_COUNT=self.path, REFD_FLUSH_DELAY_US="0",
                    LD_PRELOAD=os.path.join(HELPER, "preload_flush.so"))


class LongestTurn(Number):
    """The longest turn of the daemon's loop, in ns of processor time, of a
    daemon that is started with environ()."""

    def environ(self, env):
        before = env.get("LD_PRELOAD")
        mine = os.path.join(HELPER, "preload_turn.so")
        return dict(env, REFD_TURN_MAX=self.path,
                    LD_PRELOAD=f"{before}:{mine}" if before else mine)


class NewestGit:
    """The newest git of Debian's suites, as unpacked by scripts/git-new into
    build/git-SUITE, or the machine's. COMMAND has no shell before the
    program. Processes started by git find launch_git in DIR, which costs less
    than a shell."""
    SUITES = ("experimental", "sid")

    def __init__(self, folder):
        self.command, self.env, self.name = ("git",), {}, None
        for suite in self.SUITES:
            at = os.path.join(BUILD, f"git-{suite}")
            if os.path.exists(os.path.join(at, "VERSION")):
                self.take(at, folder)
                return

    def take(self, at, folder):
        programs = os.path.join(at, "exec")
        with open(os.path.join(programs, "git")) as f:
            line = f.read().replace("\\\n", " ").split("\nexec ")[1]
        words = shlex.split(line)
        loader, libraries, program = words[0], words[4], words[5]
        os.mkdir(folder)
        for name in os.listdir(programs):
            path = os.path.join(programs, name)
            is_git = os.path.realpath(path).endswith("/exec/git")
            os.symlink(os.path.join(HELPER, "launch_git") if is_git else path,
                       os.path.join(folder, name))
        self.command = (loader, "--argv0", "git", "--library-path", libraries,
                        program)
        self.env = {"GIT_EXEC_PATH": folder,
                    "GIT_LAUNCH": "\n".join((loader, libraries, program)),
                    "PATH": folder + os.pathsep + os.environ["PATH"]}
        with open(os.path.join(at, "VERSION")) as f:
            suite, version = f.read().split()
        self.name = f"{version.split(':')[-1]} of Debian {suite}"

    @classmethod
    def fetch(cls):
        """Without a network, the machine's git takes part."""
        for suite in cls.SUITES:
            done = subprocess.run(
                [os.path.join(ROOT, "scripts/git-new"),
                 os.path.join(BUILD, f"git-{suite}"), suite],
                stdout=subprocess.DEVNULL, check=False)
            if done.returncode == 0:
                return


class Place:
    """A directory below PARENT, on a file system of kind FS that is made anew
    by renew(), or on PARENT's own."""

    def __init__(self, parent, fs, size):
        os.makedirs(parent, exist_ok=True)
        self.path = tempfile.mkdtemp(prefix="run.", dir=parent)
        self.fs, self.size = fs, size
        self.top = self.path
        self.git = NewestGit(os.path.join(self.path, "git"))
        self.env = dict(environment(self.path), **self.git.env)
        self.mounted = False
        self.processes = []
        self.count = 0
        self.renew()

    def renew(self):
        """Ends what runs, and begins with an empty file system."""
        self.end_processes()
        self.unmount()
        self.count += 1
        self.top = os.path.join(self.path, f"fs{self.count}")
        os.mkdir(self.top)
        if self.fs == "none":
            return
        image = os.path.join(self.path, "image")
        if os.path.exists(image):
            os.unlink(image)
        with open(image, "wb") as f:
            f.truncate(self.size)
        options = {"ext4": ["-F", "-m", "0", "-T", "news"],
                   "xfs": ["-f"], "btrfs": ["-f"]}[self.fs]
        self.run(f"mkfs.{self.fs}", "-q", *options, image)
        # The background would fill in ext4's inode tables meanwhile.
        mount = "loop,noinit_itable" if self.fs == "ext4" else "loop"
        self.run("mount", "-t", self.fs, "-o", mount, image, self.top)
        self.mounted = True

    def unmount(self):
        if self.mounted:
            self.run("umount", self.top)
            self.mounted = False
        elif os.path.isdir(self.top) and self.top != self.path:
            shutil.rmtree(self.top)

    def close(self):
        self.end_processes()
        self.unmount()
        shutil.rmtree(self.path)

    def fresh(self):
        self.count += 1
        path = os.path.join(self.top, f"run{self.count}")
        os.mkdir(path)
        return path

    def run(self, *command, env=None, **more):
        done = subprocess.run(command, env=env or self.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **more)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:8])}: status "
                               f"{done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip()

    def settle(self):
        """Writes out what was left to be written. Not by sync(2): other
        tests, which look at what a power cut would take, may run beside."""
        self.run("sync", "-f", self.top)

    # ---- processes ----

    def start(self, *command, env=None, name="process", **more):
        log = open(os.path.join(self.path, f"{name}.log"), "ab")
        process = subprocess.Popen(command, env=env or self.env, stdout=log,
                                   stderr=log, stdin=subprocess.DEVNULL,
                                   **more)
        log.close()
        self.processes.append(process)
        return process

    def end(self, process, how=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(240)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.processes.remove(process)

    def end_processes(self):
        for process in list(reversed(self.processes)):
            self.end(process)


class Daemon:
    """A refd of our own, whose flushes take DELAY_US longer. COUNTED is a
    Number that is preloaded, or nothing."""

    def __init__(self, place, delay_us=0, config="", counted=None):
        self.place = place
        self.counted = counted
        self.path = place.fresh()
        self.socket = os.path.join(place.path, f"refd{place.count}")
        self.state = os.path.join(self.path, "state")
        self.config = os.path.join(self.path, "config")
        self.delay_us = delay_us
        with open(self.config, "w") as f:
            f.write(config)
        self.start()

    def start(self):
        env = delayed(self.place.env, self.delay_us)
        if self.counted:
            env = self.counted.environ(env)
        self.process = self.place.start(
            REFD, "daemon", "--socket", self.socket, "--state", self.state,
            "--root", self.place.top, "--config", self.config,
            env=env, name="daemon")
        self.ask("ping", "--wait", "60")

    def ask(self, *command):
        return self.place.run(REFD, *command, "--socket", self.socket)

    def stats(self):
        lines = (line.split(": ") for line in self.ask("stats").splitlines())
        return {line[0]: int(line[1]) for line in lines
                if len(line) == 2 and line[1].isdigit()}

    def warm(self, repo, oid):
        """The repository is known, its objects are on disk, nothing waits."""
        self.ask("update", "-C", repo, "refs/heads/warm", oid)

    def checkpoint(self):
        """Also waits for the index of history, which goes on behind."""
        self.ask("checkpoint")
        while True:
            status = json.loads(self.ask("status", "--json"))
            if status["indexed_lsn"] >= status["last_lsn"]:
                return
            time.sleep(0.01)

    def memory_kb(self, which="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(f.read().split(f"{which}:")[1].split()[0])

    def stop(self):
        self.place.end(self.process)


class Redis:
    """One that flushes before it answers. Debian's redis-tools has the server
    under another name, and starts none by itself."""

    def __init__(self, place, delay_us=0):
        program = shutil.which("redis-server")
        argv0 = "redis-server"
        if not program:
            program = shutil.which("redis-check-rdb")
        if not program:
            raise Unavailable("no redis-server (apt-get install redis-tools)")
        self.place = place
        self.path = place.fresh()
        self.socket = os.path.join(place.path, f"redis{place.count}")
        self.process = place.start(
            argv0, "--port", "0", "--unixsocket", self.socket, "--save", "",
            "--dir", self.path, "--appendonly", "yes", "--appendfsync",
            "always", "--auto-aof-rewrite-percentage", "0",
            "--loglevel", "warning",
            env=delayed(place.env, delay_us), name="redis",
            executable=program)
        for _ in range(2400):
            if os.path.exists(self.socket):
                return
            time.sleep(0.05)
        raise Unavailable("redis-server does not start")

    def kept(self):
        """How many keys its file on disk has: what was answered, if it keeps
        its word."""
        nr = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    nr += f.read().count(b"\r\nrefs/")
        return nr

    def stop(self):
        self.place.end(self.process)


def probe_flush(place, delay_us=0, times=100):
    """What a 4 KiB write and an fdatasync take here, in ms: in C, as everybody
    else's, by the load that is a raw log."""
    path = os.path.join(place.fresh(), "probe")
    got = load(place, "raw", {"txns": times}, delay_us, "--path", path,
               "--refs", "64")
    return {"median_ms": got["p50_us"] / 1000, "p99_ms": got["p99_us"] / 1000}


def load(place, on, shape, delay_us, *more, command=(), env=None):
    """One run of tests/bench/load; SHAPE are its numbers."""
    numbers = [word for key, value in shape.items()
               for word in (f"--{key}", str(value))]
    oid = () if "--oid" in more else ("--oid", "1" * 40)
    said = place.run(LOAD, "--on", on, *numbers, *more, *oid, "--", *command,
                     env=delayed(env or place.env, delay_us))
    return json.loads(said)


def median(values):
    return statistics.median(values)
