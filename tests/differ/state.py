"""The files of a repository that have to do with refs: read, written, read
as git reads them, and compared.

A state is a dictionary from a path below the git-dir to (kind, mode,
content): ("d", mode, b"") for a directory, ("f", mode, bytes) for a file,
("l", 0, target) for a symbolic link."""
import os
import shutil
import stat
import subprocess

from objects import FORMAT, HEX, ROOT

# The rest of a git-dir. refd's own directory is looked at by itself.
NOT_REFS = {"objects", "refd", "config", "info", "hooks", "description",
            "index", "branches", "config.worktree"}
WORKTREE_PLUMBING = {"commondir", "gitdir", "index", "locked", "refd"}


TOOL = os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build")),
                    "tests/helper/reftable_tool")


def lines_of_tables(git_dir, what):
    done = subprocess.run([TOOL, what, git_dir + "/reftable"],
                          env=dict(os.environ, REFTABLE_FORMAT=FORMAT),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode:
        return [b"unreadable " + done.stderr.strip()]
    return done.stdout.split(b"\n")[:-1]


def read_tables(git_dir):
    """The refs and logs, as they would be in files, and all locks."""
    state = {}

    def add(name, line):
        name = name.decode("utf-8", "surrogateescape")
        before = state.get(name, ("f", 0o644, b""))[2]
        state[name] = ("f", 0o644, before + line + b"\n")

    for line in lines_of_tables(git_dir, "refs"):
        name, value = line.split(b" ", 1)
        add(name, b"ref: " + value[3:] if value.startswith(b"-> ") else
            value[:HEX])
    # The tool prints the newest entry first.
    for line in reversed(lines_of_tables(git_dir, "logs")):
        name, entry = line.split(b" ", 1)
        add(b"logs/" + name, entry)
    for entry in os.scandir(git_dir + "/reftable"):
        if entry.name.endswith(".lock"):
            state["reftable/" + entry.name] = ("f", 0o644, b"")
    return state


def copy_tables(git_dir, other):
    """Makes the stack of OTHER that of GIT_DIR."""
    remove_tree(other + "/reftable")
    shutil.copytree(git_dir + "/reftable", other + "/reftable")


def read_state(git_dir):
    if os.path.isdir(git_dir + "/reftable"):
        return read_tables(git_dir)
    state = {}

    def walk(path, below):
        for entry in os.scandir(path):
            name = below + entry.name
            if below == "" and entry.name in NOT_REFS:
                continue
            if (below.startswith("worktrees/") and below.count("/") == 2 and
                    entry.name in WORKTREE_PLUMBING):
                continue
            st = entry.stat(follow_symlinks=False)
            mode = stat.S_IMODE(st.st_mode)
            if stat.S_ISLNK(st.st_mode):
                state[name] = ("l", 0, os.readlink(entry.path).encode())
            elif stat.S_ISDIR(st.st_mode):
                state[name] = ("d", mode, b"")
                walk(entry.path, name + "/")
            elif stat.S_ISREG(st.st_mode):
                with open(entry.path, "rb") as file:
                    state[name] = ("f", mode, file.read())
            else:
                state[name] = ("?", mode, b"")

    walk(git_dir, "")
    return state


def remove_tree(path):
    """Where a daemon runs, that may write its note meanwhile, and what was
    emptied is not empty any more."""
    for _ in range(100):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
    shutil.rmtree(path)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def put(git_dir, name, what):
    """Makes one file, whatever stands in its place."""
    path = os.path.join(git_dir, name)
    kind, mode, content = what
    if os.path.lexists(path) and not (kind == "d" and os.path.isdir(path) and
                                      not os.path.islink(path)):
        remove(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if kind == "l":
        os.symlink(content, path)
        return
    if kind == "d":
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "wb") as file:
            file.write(content)
    os.chmod(path, mode)


def write_state(git_dir, state):
    """Makes the files at GIT_DIR those of STATE."""
    have = read_state(git_dir)
    for name in sorted(have, reverse=True):
        if name not in state:
            path = os.path.join(git_dir, name)
            if os.path.lexists(path):
                remove(path)
    for name in sorted(state):
        if have.get(name) != state[name]:
            put(git_dir, name, state[name])


# ---- as git reads them ----

def is_per_worktree(name):
    root = all(c.isupper() or c in "-_" for c in name)
    return root or name.startswith(("refs/bisect/", "refs/worktree/",
                                    "refs/rewritten/"))


def path_of(name, worktree):
    """Where NAME is kept, for a command that runs in WORKTREE."""
    if name.startswith("main-worktree/"):
        return name[len("main-worktree/"):]
    if worktree and is_per_worktree(name):
        return "worktrees/%s/%s" % (worktree, name)
    return name


def packed_refs(state):
    refs = {}
    for line in state.get("packed-refs", ("f", 0, b""))[2].split(b"\n"):
        if line[:1] not in (b"#", b"^", b"") and line[HEX:HEX + 1] == b" ":
            refs[line[HEX + 1:].decode("utf-8", "surrogateescape")] = \
                line[:HEX].decode("ascii", "replace")
    return refs


def loose_value(state, name, worktree):
    """("ref", target), ("oid", hex), None for nothing, ("broken", "")."""
    kind, _, content = state.get(path_of(name, worktree), ("d", 0, b""))
    if kind == "d":
        return None
    text = content.decode("utf-8", "surrogateescape")
    if kind == "l":
        return ("ref", text)
    if text.startswith("ref:"):
        return ("ref", text[4:].strip())
    if len(text) >= HEX and all(c in "0123456789abcdefABCDEF"
                                for c in text[:HEX]):
        return ("oid", text[:HEX].lower())
    return ("broken", "")


def final_name(state, name, worktree):
    """The name at the end of the symrefs, or None."""
    for _ in range(6):
        found = loose_value(state, name, worktree)
        if not found or found[0] != "ref":
            return name
        name = found[1]
    return None


def value_of(state, name, worktree):
    """The object id NAME leads to, or None."""
    name = final_name(state, name, worktree)
    if name is None:
        return None
    found = loose_value(state, name, worktree)
    if found:
        return found[1] if found[0] == "oid" else None
    return packed_refs(state).get(name)


def ref_names(state):
    """Every name that is a ref, from the main worktree's point of view."""
    names = set(packed_refs(state))
    for path, (kind, _, _) in state.items():
        if kind != "d" and (path.startswith("refs/") or "/" not in path) \
                and path not in ("packed-refs", "config"):
            names.add(path)
    return sorted(names)


# ---- compared ----

def kind_of_path(path):
    """What a path stands for, names left out."""
    worktree = ""
    if path.startswith("worktrees/"):
        parts = path.split("/", 2)
        worktree, path = "worktree's ", parts[2] if len(parts) > 2 else ""
    if path.endswith(".lock"):
        return worktree + "lock"
    if path.startswith("logs/refs/"):
        return worktree + "logs/refs/*"
    if path.startswith("refs/"):
        return worktree + "refs/*"
    parts = path.split("/")
    if parts[-1] != "HEAD" and parts[-1].isupper():
        parts[-1] = "*"
    return worktree + "/".join(parts)


def compare_states(git, refd):
    """A list of (what, path, git's, refd's), what being a short text that is
    the same for differences of one kind."""
    found = []
    for path in sorted(git.keys() | refd.keys()):
        a, b = git.get(path), refd.get(path)
        if a == b:
            continue
        where = kind_of_path(path)
        if a is None or b is None:
            one = a or b
            what = "directory" if one[0] == "d" else "file"
            who = "git" if b is None else "refd"
            found.append(("%s: %s only in %s's" % (where, what, who),
                          path, a, b))
        elif a[0] != b[0]:
            found.append(("%s: of another kind" % where, path, a, b))
        elif a[2] != b[2]:
            found.append(("%s: %s" % (where, content_difference(a[2], b[2])),
                          path, a, b))
        else:
            kind = "directory" if a[0] == "d" else "file"
            found.append(("%s: mode of a %s" % (where, kind), path, a, b))
    return found


def content_difference(a, b):
    if a.startswith(b):
        return "git's has more"
    if b.startswith(a):
        return "refd's has more"
    return "content"
