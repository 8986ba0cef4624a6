"""Makes a case small while the difference stays, and prints it as a shell
script that shows it without this program."""
import copy
import shlex
import time

import case as cs
from objects import FORMAT, STREAM
from pair import NotMigrated
from render import encode, input_bytes

PATIENCE_S = 30


class Shrinker:
    def __init__(self, arena, kind, run_case):
        self.arena = arena
        self.kind = kind
        self.run_case = run_case
        self.deadline = time.monotonic() + PATIENCE_S

    def shows(self, setup, steps):
        """Does the difference come with these, too?"""
        rest = list(steps)
        try:
            _, found = self.run_case(
                self.arena, self.arena.path + "/shrink", setup,
                lambda state: rest.pop(0) if rest else None,
                lambda diffs: any(d.in_files and not d.excuse
                                  for d in diffs))
        except (OSError, KeyError, NotMigrated):
            return False
        return any(d.kind == self.kind and not d.excuse for d in found)

    def smaller(self, setup, steps):
        """Tries one simplification after the other, until none helps."""
        again = True
        while again and time.monotonic() < self.deadline:
            again = False
            for change in list(simplifications(setup, steps)):
                new_setup, new_steps = copy.deepcopy((setup, steps))
                if not change(new_setup, new_steps):
                    continue
                if time.monotonic() > self.deadline:
                    break
                if self.shows(new_setup, new_steps):
                    setup, steps, again = new_setup, new_steps, True
        return setup, steps


def simplifications(setup, steps):
    """Functions that change a copy of both in place; each returns False where
    there is nothing left for it to do."""
    for i in range(len(steps) - 1, -1, -1):
        yield drop(lambda _, t: t, i, 1)
    for i, step in enumerate(steps):
        for n in range(len(step.get("lines") or []) - 1, -1, -1):
            yield drop(lambda _, t, i=i: t[i]["lines"], n, 1)
        for n in range(len(step["args"]) - 1 if "args" in step else -1, -1,
                       -1):
            yield drop(lambda _, t, i=i: t[i]["args"], n, 1)
            yield drop(lambda _, t, i=i: t[i]["args"], n, 2)
        for n in range(len(step.get("lines") or [])):
            for k in range(len(step["lines"][n]) - 1, 1, -1):
                yield drop(lambda _, t, i=i, n=n: t[i]["lines"][n], k, 1)
        for key in step.get("env", {}):
            yield forget(lambda _, t, i=i: t[i]["env"], key)
        for key, value in (("umask", 0o022), ("cwd", cs.TOP)):
            yield put(i, key, value)
        yield unmangle(i)
        yield unzero(i)
    for key in sorted(setup["config"]):
        yield forget(lambda s, _: s["config"], key)
    for path in sorted(setup["files"], reverse=True):
        if path not in ("refs", "refs/heads", "HEAD"):
            yield forget(lambda s, _: s["files"], path)
    yield fewer_worktrees
    yield not_hooked


def drop(where, at, count):
    def change(setup, steps):
        try:
            things = where(setup, steps)
        except (IndexError, KeyError):
            return False
        if at + count > len(things):
            return False
        del things[at:at + count]
        return True
    return change


def forget(where, key):
    def change(setup, steps):
        try:
            things = where(setup, steps)
        except (IndexError, KeyError):
            return False
        was = len(things)
        # GIT_CONFIG_COUNT means nothing without the others.
        for k in [k for k in things if k == key or
                  key == "GIT_CONFIG_COUNT" and k.startswith("GIT_CONFIG_")]:
            del things[k]
        return len(things) < was
    return change


def put(i, key, value):
    def change(setup, steps):
        if i >= len(steps) or steps[i].get(key, value) == value:
            return False
        steps[i][key] = value
        return True
    return change


def unmangle(i):
    def change(setup, steps):
        return i < len(steps) and steps[i].pop("mangle", None) is not None
    return change


def unzero(i):
    def change(setup, steps):
        if i >= len(steps) or not steps[i].get("z"):
            return False
        steps[i]["z"] = False
        steps[i]["args"] = [a for a in steps[i]["args"] if a != "-z"]
        return True
    return change


def fewer_worktrees(setup, steps):
    if not setup["worktrees"]:
        return False
    setup["worktrees"] -= 1
    return True


def not_hooked(setup, steps):
    was = setup["hooked"]
    setup["hooked"] = False
    return was


# ---- from a seed ----

def in_place(setup, steps, before):
    """The last step alone, in a repository that is what the others made."""
    setup = copy.deepcopy(setup)
    setup["files"] = dict(before)
    for step in steps[:-1]:
        if step["do"] == "git" and step["args"][0] == "config":
            key, value = step["args"][-2:]
            if key == "--unset-all":
                setup["config"].pop(value, None)
            else:
                setup["config"][key] = value
    return setup, [copy.deepcopy(steps[-1])]


def shrink_and_print(arena, seed, kind, run_case, run_seed):
    last = {}

    def on_step(pair, step, diffs):
        if not last and any(d.kind == kind and not d.excuse for d in diffs):
            last["before"] = dict(pair.before)
            last["at"] = len(seen)
        seen.append(step)

    seen = []
    setup, steps, _ = run_seed(arena, arena.path + "/shrink", seed, on_step)
    print("\n#### seed %d: %s" % (seed, kind))
    if not last:
        print("# it did not come again")
        return
    steps = steps[:last["at"] + 1]
    shrinker = Shrinker(arena, kind, run_case)
    alone = in_place(setup, steps, last["before"])
    if shrinker.shows(*alone):
        setup, steps = alone
    elif not shrinker.shows(setup, steps):
        print("# it did not come again without what went before")
        return
    setup, steps = shrinker.smaller(setup, steps)
    print(script(arena, setup, steps))


# ---- as a script ----

def octal(raw):
    """RAW for printf."""
    out = ""
    for byte in raw:
        char = chr(byte)
        if char == "\n":
            out += "\\n"
        elif byte < 32 or byte >= 127 or char in "\\%'":
            out += "\\%03o" % byte
        else:
            out += char
    return "'%s'" % out


def quote(text):
    raw = encode(text)
    if all(32 <= byte < 127 for byte in raw):
        return shlex.quote(text)
    return "\"$(printf %s)\"" % octal(raw)


def script(arena, setup, steps):
    repo = "$T/$who/repo" + ("" if setup["bare"] else "/.git")
    out = ["#!/bin/sh", "# %s" % arena.version, "T=$(mktemp -d) && cd $T",
           "export HOME=$T LC_ALL=C TZ=UTC GIT_CONFIG_NOSYSTEM=1",
           "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com",
           "export GIT_COMMITTER_NAME='C O Mitter' "
           "GIT_COMMITTER_EMAIL=committer@example.com",
           "export REFD_SOCKET=$T/refd.sock",
           "refd daemon --socket $T/refd.sock --state $T/state --root $T &",
           "daemon=$!; refd ping --wait 10 >/dev/null",
           "for who in gitt refd; do",
           "git init -q --object-format=%s %s$T/$who/repo && cd %s" % (
               FORMAT, "--bare " if setup["bare"] else "", repo),
           "printf %s | git fast-import --quiet" % octal(STREAM),
           "rm -rf refs logs HEAD hooks/*; mkdir refs"]
    for path, what in sorted(setup["files"].items()):
        out += put_lines(path, what)
    for key, value in setup["config"].items():
        if value is not None:
            out.append("git config -f config %s %s" % (key, quote(value)))
    for i in range(1, setup["worktrees"] + 1):
        out += ["mkdir -p $T/$who/wt%d worktrees/wt%d" % (i, i),
                "echo \"gitdir: $PWD/worktrees/wt%d\" >$T/$who/wt%d/.git" %
                (i, i),
                "echo \"$T/$who/wt%d/.git\" >worktrees/wt%d/gitdir" % (i, i),
                "echo ../.. >worktrees/wt%d/commondir" % i]
    if setup["hooked"]:
        out += ["mkdir -p hooks; cat >hooks/reference-transaction <<EOF",
                "#!/bin/sh", "exec >>$T/$who/hook.log",
                "echo \"[\\$1]\"; cat", "EOF",
                "chmod +x hooks/reference-transaction"]
    out.append("done")
    for step in steps:
        out += step_lines(arena, setup, step)
    out += ["kill $daemon; wait $daemon",
            "rm -rf $T/*/repo/.git/refd $T/*/repo/refd "
            "$T/*/repo/objects $T/*/repo/.git/objects",
            "cd $T && diff -r gitt refd && echo the files are alike"]
    return "\n".join(out)


def put_lines(path, what):
    if what is None:
        return ["rm -rf %s" % quote(path)]
    kind, mode, content = what
    if kind == "d":
        return ["mkdir -p -m %o %s" % (mode, quote(path))]
    if kind == "l":
        return ["ln -sfn %s %s" % (quote(content.decode()), quote(path))]
    line = "printf %s >%s" % (octal(content), quote(path))
    if "/" in path:
        line = "mkdir -p %s; %s" % (quote(path.rsplit("/", 1)[0]), line)
    return [line] + (["chmod %o %s" % (mode, quote(path))]
                     if mode != 0o644 else [])


def step_lines(arena, setup, step):
    git_dir = "repo" if setup["bare"] else "repo/.git"
    out = []
    for who in ("gitt", "refd"):
        if step["do"] == "put":
            out += ["cd $T/%s/%s" % (who, git_dir)] + \
                put_lines(step["path"], step["what"])
            continue
        if step["do"] == "git":
            out.append("cd $T/%s/repo && git %s" % (who, " ".join(
                map(quote, step["args"]))))
            continue
        place = {cs.TOP: "repo", cs.SUB: "repo/sub", cs.GIT_DIR: git_dir,
                 cs.WT1: "wt1", cs.WT2: "wt2", cs.OUTSIDE: ".",
                 cs.WT1_GIT_DIR: git_dir + "/worktrees/wt1"}[step["cwd"]]
        program = "git update-ref" if who == "gitt" else \
            " ".join(["refd update"] + arena.options)
        line = "(mkdir -p $T/%s/%s && cd $T/%s/%s && umask %03o && " % (
            who, place, who, place, step["umask"])
        if step["lines"] is not None:
            line += "printf %s | " % octal(input_bytes(
                step, script_value))
        for key, value in step["env"].items():
            line += "env -u %s " % key if value is None else \
                "%s=%s " % (key, quote(value).replace(
                    "@git-dir@", "'$T/%s/%s'" % (who, git_dir)))
        line += program + "".join(" " + quote(script_value(a))
                                  for a in step["args"])
        out.append(line + "); echo \"%s: $?\"" % who)
    return out


def script_value(value):
    """In a script a ref's value is asked for by its name."""
    return value if isinstance(value, str) else value[1]


def describe(step):
    return repr({k: v for k, v in step.items() if v})
