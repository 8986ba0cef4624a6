"""Where all of it is, and the programs that run there."""
import os
import shutil
import signal
import struct
import subprocess
import time
import uuid

import disks
import wire
from look import FORMAT, REFS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))

FDATASYNC, FSYNC, SYNCFS, SYNC_RANGE = 1, 2, 4, 8
OLD_REFS = 12
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class SyncPage:
    """tests/helper/preload_sync.c's page."""
    FIELDS = ("kinds", "calls", "hold_at", "held", "fail_at", "drop",
              "delay_us")

    def __init__(self, path):
        self.path = path
        self.set()

    def set(self, **fields):
        """What is not named is 0. The file stays the same one: somebody may
        have it mapped."""
        raw = struct.pack("%dI" % len(self.FIELDS),
                          *(fields.get(f, 0) for f in self.FIELDS))
        with open(self.path, "r+b" if os.path.exists(self.path) else
                  "wb") as file:
            file.write(raw)

    def get(self, field):
        with open(self.path, "rb") as file:
            raw = file.read()
        return struct.unpack("%dI" % len(self.FIELDS), raw)[
            self.FIELDS.index(field)]


class Place:
    """One directory for a whole run: the images, the template repository,
    and what a trial puts there."""

    def __init__(self, top, git="git"):
        self.top = top
        self.git = os.path.abspath(git) if os.sep in git else git
        self.refd = BUILD + "/bin/refd"
        self.socket = top + "/refd.sock"
        self.disk_path = top + "/disk"
        self.state_disk_path = top + "/state-disk"
        self.oids = []
        self.plain = False
        self.durability = "journal"
        self.strengthen = ()
        # Whether an answer is a promise, as long as nothing stronger is asked.
        self.promises = True
        self.has_modes = False
        self.has_auto = b"--auto" in subprocess.run(
            [self.git, "pack-refs", "-h"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False).stdout
        # Repositories where git asks refd before each change.
        self.gated = set()
        self.core_fsync = None
        # None: the machine's own.
        self.boot_id = None
        # Whether the clocks tell of a new boot, too; and the words before a
        # command that reads them.
        self.sets_clocks = False
        self.in_boot = []
        self.anchor = None
        self.daemon = None
        self.log = open(top + "/daemon.log", "ab")
        os.mkdir(top + "/home")
        self.env = self.environment()
        self.page = SyncPage(top + "/sync-page")
        self.cellar = disks.Cellar(top)
        self.images = {}
        self.templates = {}

    def environment(self):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("GIT_", "REFD_", "XDG_"))}
        env.update(HOME=self.top + "/home", LC_ALL="C", TZ="UTC",
                   GIT_CONFIG_NOSYSTEM="1", REFD_SOCKET=self.socket,
                   REFD_STATE=self.top + "/home/state",
                   XDG_RUNTIME_DIR=self.top + "/home",
                   PATH=BUILD + "/bin:" + self.git_path(env),
                   GIT_AUTHOR_NAME="A U Thor",
                   GIT_AUTHOR_EMAIL="author@example.com",
                   GIT_COMMITTER_NAME="C O Mitter",
                   GIT_COMMITTER_EMAIL="committer@example.com",
                   ASAN_OPTIONS="verify_asan_link_order=0:" +
                   env.get("ASAN_OPTIONS", ""))
        with open(self.top + "/home/.gitconfig", "w",
                  encoding="utf-8") as file:
            file.write("[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"
                       "\tautoDetach = false\n[advice]\n"
                       "\tdetachedHead = false\n")
        return env

    def git_path(self, env):
        """Hooks and git's own programs find the same git."""
        path = env.get("PATH", "/usr/bin:/bin")
        if os.sep in self.git:
            path = os.path.dirname(os.path.abspath(self.git)) + ":" + path
        return path

    # ---- repositories ----

    def git_output(self, argv, stdin=""):
        return subprocess.run(
            [self.git] + argv, input=stdin.encode(), env=self.env, check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout.decode().strip()

    def template(self, plain):
        """A bare repository with the objects, some packed refs and, unless it
        is PLAIN, refd."""
        if plain in self.templates:
            return self.templates[plain]
        path = self.top + ("/plain.git" if plain else "/enabled.git")
        self.git_output(["init", "-q", "--bare", "--object-format=" + FORMAT] +
                        ref_format() + [path])
        stream = "".join("commit refs/heads/main\nmark :%d\ncommitter C O "
                         "Mitter <committer@example.com> %d +0000\ndata 2\n%02d"
                         "\n" % (i + 1, 1600000000 + i, i % 100)
                         for i in range(600))
        subprocess.run([self.git, "-C", path, "fast-import", "--quiet",
                        "--export-marks=" + self.top + "/marks"],
                       input=stream.encode(), env=self.env, check=True)
        with open(self.top + "/marks", encoding="utf-8") as file:
            oids = dict(line.split() for line in file)
        self.oids = [oids[":%d" % (i + 1)] for i in range(len(oids))]
        for key, value in (("core.logAllRefUpdates", "always"),
                           ("refd.fallback", "refuse"),
                           ("receive.denyDeletes", "false")):
            self.git_output(["-C", path, "config", key, value])
        self.git_output(["-C", path, "update-ref", "--create-reflog",
                         "-m", "old", "--stdin"], "".join(
            "create %s %s\n" % (ref, self.oids[0])
            for name in ("m0", "m1", "m2") for ref in self.packed(path, name)))
        self.git_output(["-C", path, "pack-refs", "--all", "--prune"])
        if not plain:
            subprocess.run([self.refd, "enable", "--socket", self.socket,
                            path], env=self.env, check=True,
                           stdout=subprocess.DEVNULL)
        self.templates[plain] = path
        return path

    def put_gate(self, repo):
        subprocess.run([self.refd, "enable", "--gate", "--socket", self.socket,
                        repo], env=self.env, check=True, stdout=self.log,
                       stderr=self.log)
        self.gated.add(repo)

    def is_gated(self, repo):
        return repo in self.gated

    def packed(self, _repo, name):
        """Refs that are in packed-refs from the beginning."""
        return ["refs/heads/old/%s/%d" % (name, i) for i in range(OLD_REFS)]

    def image(self, kind, repos):
        """An image with that many repositories, made once; with 0 it is one
        for the state."""
        key = (kind, repos, self.plain)
        if key not in self.images:
            image = self.cellar.new("%s-%d%s" % (
                kind, repos, "-plain" if self.plain else ""), kind)
            where = self.top + "/making"
            os.makedirs(where, exist_ok=True)
            disks.run("mount", "-o", disks.OPTIONS[kind], image, where)
            try:
                for i in range(repos):
                    shutil.copytree(self.template(self.plain),
                                    "%s/r%d.git" % (where, i), symlinks=True)
            finally:
                disks.unmount(where)
            self.images[key] = image
        return self.images[key]

    def new_clone(self, name):
        path = "%s/clone-%s" % (self.top, name)
        shutil.rmtree(path, ignore_errors=True)
        self.git_output(["init", "-q", "--object-format=" + FORMAT, path])
        return path

    def stronger(self, rng):
        """What a client may ask for beyond the daemon's mode."""
        if self.strengthen and rng.random() < 0.1:
            return rng.choice(self.strengthen)
        return None

    # ---- processes: all in one group, which can be stopped and ended ----

    def start_group(self):
        self.anchor = subprocess.Popen(["sleep", "100000"], process_group=0)

    def popen(self, argv, by_git):
        env = self.env
        if by_git and self.core_fsync is not None:
            env = dict(env, GIT_CONFIG_COUNT="1",
                       GIT_CONFIG_KEY_0="core.fsync",
                       GIT_CONFIG_VALUE_0=self.core_fsync)
        return subprocess.Popen(
            argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, process_group=self.anchor.pid)

    def start_daemon(self, state):
        self.daemon = subprocess.Popen(
            self.in_boot + [self.refd, "daemon", "--socket", self.socket, "--state", state,
             "--root", self.disk_path, "--durability", self.durability],
            env=dict(self.env, LD_PRELOAD=BUILD +
                     "/tests/helper/preload_sync.so",
                     REFD_SYNC_PAGE=self.page.path),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            process_group=self.anchor.pid)

    def daemon_lives(self):
        return self.daemon is not None and self.daemon.poll() is None

    def served(self, seconds=240):
        return wire.wait_until_served(self.socket, self.daemon_lives, seconds)

    def stop_daemon(self):
        """Its status after SIGTERM."""
        self.daemon.terminate()
        status = self.daemon.wait(240)
        self.daemon = None
        return status

    def freeze(self, to_the_end):
        """Nobody runs a program's code any more; a system call that has
        begun may still be going on, unless TO_THE_END. On a busy machine that
        takes its time, and who went on would answer after the cut."""
        os.killpg(self.anchor.pid, signal.SIGSTOP)
        begun = time.monotonic()
        while time.monotonic() < begun + 240:
            # Who waits for a child of vfork's that was stopped before its
            # exec waits for ever, and runs nothing meanwhile.
            if all_stopped(self.anchor.pid,
                           to_the_end and time.monotonic() < begun + 2):
                return
            time.sleep(0.0005)
        raise OSError("they do not stop")

    def end_all_but_the_daemon(self):
        """From a freeze on: the others die, the daemon goes on."""
        spared = (self.anchor.pid, self.daemon.pid)
        for pid, group in processes():
            if group == self.anchor.pid and pid not in spared:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        os.killpg(self.anchor.pid, signal.SIGCONT)

    def end_group(self):
        if not self.anchor:
            return
        os.killpg(self.anchor.pid, signal.SIGKILL)
        self.anchor.wait()
        if self.daemon:
            self.daemon.wait()
        self.anchor = self.daemon = None

    def note(self, who, said):
        """What another program of refd's said, among what the daemon did."""
        for line in said.splitlines(keepends=True):
            self.log.write(who.encode() + b": " + line)
        self.log.flush()

    def new_boot(self):
        """Whoever starts from now on reads another boot id."""
        path, is_first = self.top + "/boot_id", not self.boot_id
        self.boot_id = str(uuid.uuid4())
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.boot_id + "\n")
        if is_first:
            disks.run("mount", "--bind", path, BOOT_ID)
        if self.sets_clocks:
            self.set_clocks(is_first)

    def set_clocks(self, is_first):
        """A machine without power makes no file for a moment. Then it is up for
        less than a second, and its sysfs is as new."""
        time.sleep(1.5)
        with open("/proc/uptime", encoding="utf-8") as file:
            seconds = int(float(file.read().split()[0]))
        self.in_boot = ["unshare", "--time", "--boottime=-%d" % seconds]
        if not is_first:
            disks.run("umount", "/sys")
        disks.run("unshare", "--net", "mount", "-t", "sysfs", "sysfs", "/sys")
        if os.path.isdir("/run/systemd") and is_first:
            disks.run("mount", "-t", "tmpfs", "tmpfs", "/run/systemd")

    def daemon_said(self):
        self.log.flush()
        with open(self.top + "/daemon.log", encoding="utf-8",
                  errors="replace") as file:
            return file.readlines()

    def forget_log(self):
        self.log.truncate(0)

    def remove(self):
        self.end_group()
        self.log.close()
        disks.unmount(self.cellar.path)


def ref_format():
    """An older git knows no option, and only files."""
    return [] if REFS == "files" else ["--ref-format=" + REFS]


def processes():
    """(pid, process group) of each."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, "rb") as file:
                yield int(pid), stat_fields(file.read())[2]
        except (FileNotFoundError, ProcessLookupError):
            continue


def all_stopped(group, to_the_end):
    """Of each process in GROUP: is one thread stopped, and each other one
    stopped or, unless TO_THE_END, deep in a system call?  (Once one thread is
    stopped every other one will be before it leaves the kernel.)"""
    good = "tTZX" if to_the_end else "tTZXD"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, "rb") as file:
                state, _, pgrp = stat_fields(file.read())
            if pgrp != group:
                continue
            states = [state]
            for tid in os.listdir("/proc/%s/task" % pid):
                with open("/proc/%s/task/%s/stat" % (pid, tid), "rb") as file:
                    states.append(stat_fields(file.read())[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any(s not in good for s in states):
            return False
        if len(states) > 2 and "T" not in states and state not in "ZX":
            return False
    return True


def stat_fields(raw):
    rest = raw[raw.rindex(b")") + 2:].split()
    return rest[0].decode(), int(rest[1]), int(rest[2])
