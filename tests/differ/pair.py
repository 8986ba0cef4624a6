"""Two repositories that begin alike: git works in one, refd in the other."""
import os
import re
import shutil
import subprocess

import case as cs
import render
import state as st
from objects import FORMAT, REFS
from render import encode

# As long as each other, so that what is cut off by length is cut alike.
GIT, REFD = "gitt", "refd"
WAIT_S = 60


class Difference:
    """What was not the same after a step. KIND is the same for differences
    that look alike; TEXT says all."""

    def __init__(self, kind, step, text, git=None, refd=None):
        self.kind = kind
        self.step = step
        self.text = text
        self.git = git
        self.refd = refd
        # Whether the two repositories are still alike.
        self.in_files = False
        self.excuse = None


class NotMigrated(Exception):
    """git does not change the format of the refs."""


class Result:
    def __init__(self, process, stdin):
        try:
            self.out, self.err = process.communicate(stdin, WAIT_S)
            self.status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            self.out, self.err = process.communicate()
            self.status = "no end after %d s" % WAIT_S


class Program:
    """git or refd, in its own half of the pair."""

    def __init__(self, who, root, setup, env):
        self.who = who
        self.root = os.path.join(root, who)
        self.bare = setup["bare"]
        self.top = os.path.join(self.root, "repo")
        self.git_dir = self.top if self.bare else self.top + "/.git"
        self.env = env

    def place(self, cwd):
        return {cs.TOP: self.top, cs.SUB: self.top + "/sub",
                cs.GIT_DIR: self.git_dir, cs.WT1: self.root + "/wt1",
                cs.WT2: self.root + "/wt2", cs.OUTSIDE: self.root,
                cs.WT1_GIT_DIR: self.git_dir + "/worktrees/wt1"}[cwd]

    def run(self, argv, step, stdin=b""):
        env = dict(self.env)
        for key, value in step.get("env", {}).items():
            if value is None:
                env.pop(key, None)
            else:
                env[key] = value.replace("@git-dir@", self.git_dir)
        return Result(subprocess.Popen(
            argv, cwd=self.place(step.get("cwd", cs.TOP)), env=env,
            umask=step.get("umask", 0o022), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE), stdin)

    def neutral(self, raw):
        """What was printed, without which of the two it was."""
        raw = raw.replace(encode(self.root), b"ROOT")
        # git has its directory as it found it, and puts ./ into a lock's.
        raw = raw.replace(b"/./", b"/")
        return re.sub(rb"'(\./|\.git/)",
                      b"'" + encode(self.git_dir.replace(self.root, "ROOT")) +
                      b"/", raw)

    def make(self, setup, objs, git):
        os.makedirs(self.git_dir)
        objs.link_into(self.git_dir)
        with open(self.git_dir + "/config", "w", encoding="utf-8") as file:
            file.write(config_text(setup))
        if not self.bare:
            os.mkdir(self.top + "/sub")
        st.write_state(self.git_dir, setup["files"])
        for i in range(1, setup["worktrees"] + 1):
            self.make_worktree("wt%d" % i)
        if REFS == "reftable":
            self.migrate(setup, git)
            with open(self.git_dir + "/config", "a",
                      encoding="utf-8") as file:
                file.write(config_values(setup, late=True))
        if setup["hooked"]:
            self.make_hook()

    def migrate(self, setup, git):
        """What git refuses to migrate is left out."""
        argv = [git, "--git-dir=" + self.git_dir, "refs", "migrate",
                "--ref-format=reftable"]
        if self.run(argv, {}).status == 0:
            return
        st.write_state(self.git_dir, {
            name: what for name, what in setup["files"].items()
            if name == "HEAD" or what[0] == "d" and name.count("/") < 2})
        failed = self.run(argv, {})
        if failed.status:
            raise NotMigrated(failed.err)

    def make_worktree(self, name):
        admin = "%s/worktrees/%s" % (self.git_dir, name)
        tree = os.path.join(self.root, name)
        os.mkdir(tree)
        for path, text in ((tree + "/.git", "gitdir: " + admin),
                           (admin + "/gitdir", tree + "/.git"),
                           (admin + "/commondir", "../..")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")

    def make_hook(self):
        path = self.git_dir + "/hooks/reference-transaction"
        os.mkdir(self.git_dir + "/hooks")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec >>'%s/hook.log'\n"
                       "echo \"[$1] $GIT_DIR\"\ncat\n" % self.root)
        os.chmod(path, 0o755)

    def hook_log(self):
        try:
            with open(self.root + "/hook.log", "rb") as file:
                return self.neutral(file.read())
        except FileNotFoundError:
            return b""

    def stage(self):
        path = self.git_dir + "/refd/stage"
        return os.listdir(path) if os.path.isdir(path) else []


def config_text(setup):
    text = "[core]\n\trepositoryformatversion = %d\n\tfilemode = true\n" \
        "\tbare = %s\n" % (FORMAT != "sha1",
                           "true" if setup["bare"] else "false")
    if FORMAT != "sha1":
        text += "[extensions]\n\tobjectFormat = %s\n" % FORMAT
    return text + config_values(setup, late=False)


# git migrates no repository where this is no boolean.
LATE = ("core.logAllRefUpdates",) if REFS == "reftable" else ()


def config_values(setup, late):
    text = ""
    for key, value in setup["config"].items():
        if value is not None and (key in LATE) == late:
            text += "[%s]\n\t%s = \"%s\"\n" % (*key.split("."), value)
    return text


class Pair:
    def __init__(self, arena, root, setup):
        self.arena = arena
        self.setup = setup
        self.root = root
        # One that could not be finished may be there.
        st.remove_tree(root)
        self.git = Program(GIT, root, setup, arena.env)
        self.refd = Program(REFD, root, setup, arena.env)
        for program in (self.git, self.refd):
            program.make(setup, arena.objects, arena.git)
        self.state = st.read_state(self.git.git_dir)
        self.hook_logs = [b"", b""]

    def remove(self):
        st.remove_tree(self.root)

    def align(self):
        """Makes refd's files those of git."""
        if REFS == "reftable":
            st.copy_tables(self.git.git_dir, self.refd.git_dir)
            return
        st.write_state(self.refd.git_dir, self.state)

    def perform(self, step):
        """Does STEP in both; returns the differences."""
        self.before = self.state
        if step["do"] == "put":
            return self.put(step)
        if step["do"] == "git":
            for program in (self.git, self.refd):
                program.run([self.arena.git] + step["args"], step)
            found = []
        else:
            found = self.update(step)
        found += self.compare(step)
        self.keep_heads()
        return found

    def keep_heads(self):
        """Without HEAD or refs/ the next step would have no repository."""
        if REFS == "reftable":
            return
        for path, what in self.before.items():
            if re.match(r"(worktrees/\w+/)?HEAD$|refs$", path) and \
                    path not in self.state:
                for program in (self.git, self.refd):
                    st.put(program.git_dir, path, what)
                self.state[path] = what

    def put(self, step):
        for program in (self.git, self.refd):
            path = os.path.join(program.git_dir, step["path"])
            try:
                if step["what"] is not None:
                    st.put(program.git_dir, step["path"], step["what"])
                elif os.path.lexists(path):
                    st.remove(path)
            except OSError:
                # Something else is in the way, in both.
                pass
        self.state = st.read_state(self.git.git_dir)
        return []

    def update(self, step):
        resolve = self.resolver(step)
        args = [encode(resolve(a)) for a in step["args"]]
        stdin = render.input_bytes(step, resolve) if step["lines"] is not None \
            else b""
        git = self.git.run([self.arena.git, "update-ref"] + args, step, stdin)
        refd = self.refd.run(
            [self.arena.refd, "update"] + self.arena.options + args, step,
            stdin)
        self.last = (git, refd)
        return self.compare_results(step, git, refd)

    @staticmethod
    def worktree(step):
        return {cs.WT1: "wt1", cs.WT1_GIT_DIR: "wt1",
                cs.WT2: "wt2"}.get(step["cwd"])

    def resolver(self, step):
        worktree = self.worktree(step)

        def resolve(value):
            if isinstance(value, str):
                return value
            return st.value_of(self.before, value[1], worktree) or \
                self.arena.objects.c1
        return resolve

    def git_alone(self, step, lines):
        """What git says of LINES alone, where all was as before STEP."""
        setup = dict(self.setup, files=self.before, hooked=False)
        program = Program("alone", self.root, setup, self.arena.env)
        try:
            program.make(setup, self.arena.objects, self.arena.git)
            shutil.copy(self.git.git_dir + "/config",
                        program.git_dir + "/config")
            resolve = self.resolver(step)
            args = [encode(resolve(a)) for a in step["args"]]
            result = program.run(
                [self.arena.git, "update-ref"] + args, step,
                render.input_bytes(dict(step, lines=lines), resolve))
            return program.neutral(result.err)
        finally:
            shutil.rmtree(program.root, ignore_errors=True)

    def compare_results(self, step, git, refd):
        found = []
        if git.status != refd.status:
            found.append(Difference(
                "status %s, not %s: %s" % (
                    refd.status, git.status,
                    shape((refd.err or git.err).decode(errors="replace"))),
                step, "git ends with %s: %r\nrefd with %s: %r" % (
                    git.status, git.err, refd.status, refd.err),
                git.err, refd.err))
        for what in ("out", "err"):
            a = self.git.neutral(getattr(git, what))
            b = self.refd.neutral(getattr(refd, what))
            if a == b or what == "err" and (found or not self.arena.words):
                continue
            found.append(Difference(
                "std%s: %s | %s" % (what, shape(a.decode(errors="replace")),
                                    shape(b.decode(errors="replace"))),
                step, "git says %r\nrefd    %r" % (a, b), a, b))
        return found

    def compare(self, step):
        found = []
        self.state = st.read_state(self.git.git_dir)
        refd = st.read_state(self.refd.git_dir)
        for what, path, a, b in st.compare_states(self.state, refd):
            diff = Difference("files: " + what, step,
                              "%s\ngit:  %r\nrefd: %r" % (path, a, b), a, b)
            diff.in_files = True
            diff.path = path
            found.append(diff)
        if self.refd.stage():
            found.append(Difference("stage: not empty", step,
                                    repr(self.refd.stage())))
        if self.setup["hooked"]:
            a, b = self.git.hook_log(), self.refd.hook_log()
            old_a, old_b = self.hook_logs
            self.hook_logs = [a, b]
            a, b = a[len(old_a):], b[len(old_b):]
            if a != b:
                found.append(Difference(
                    "hook: %s | %s" % (phases(a), phases(b)),
                    step, "git's hook saw %r\nrefd's      %r" % (a, b), a, b))
        return found

    def health(self):
        """What git says of the whole, in both."""
        found = []
        for args in (["for-each-ref", "--format=%(refname) %(objectname) "
                      "%(symref)"], ["fsck", "--no-dangling"]):
            a, b = (p.run([self.arena.git] + args, {})
                    for p in (self.git, self.refd))
            if (a.status, a.out) != (b.status, b.out):
                found.append(Difference("git %s differs" % args[0], None,
                                        "%r\n%r" % (a.out, b.out)))
        return found


def phases(raw):
    """Of a hook's log, the states it was called with."""
    return " ".join(line[1:].split(b"]")[0].decode()
                    for line in raw.split(b"\n") if line[:1] == b"[")


def shape(text):
    """TEXT without the names and values in it, and what is the same again.
    """
    out = []
    for line in text.split("\n"):
        parts = line.split("'")
        for i in range(1, len(parts), 2):
            parts[i] = "N"
        out.append(" ".join(word if not is_particular(word) else "X"
                            for word in "'".join(parts).split(" ")))
    text = "; ".join(line for i, line in enumerate(out)
                     if line and line not in out[:i])
    return text if len(text) < 300 else text[:300] + "..."


def is_particular(word):
    word = word.strip(":;,()")
    return (len(word) >= 7 and all(c in "0123456789abcdefABCDEF"
                                   for c in word)) or \
        "/" in word or word.isupper() and len(word) > 2
