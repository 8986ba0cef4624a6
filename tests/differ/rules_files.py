"""What tells a difference on purpose from any other, by the files."""
import re

import state as st
from objects import HEX, REFS

OID = rb"[0-9a-f]{%d}" % HEX
ZEROS = rb"0{%d}" % HEX
DELETION = OID + rb" " + ZEROS + rb" [^\n]*\n"


def is_batch(diff):
    return "--batch-updates" in diff.step["args"]


def something_failed(pair):
    return any(r.status != 0 or r.err or b"rejected " in r.out
               for r in pair.last)


def is_empty(state, path):
    """Is PATH a directory with nothing but directories in it?"""
    below = path + "/"
    return state.get(path, ("f",))[0] == "d" and not any(
        p.startswith(below) and what[0] != "d" for p, what in state.items())


def deleted_head(diff, pair, diffs):
    """git deleted a HEAD, by its name or by way of a loop, and refd refused
    the update."""
    return pair.last[0].status == 0 != pair.last[1].status and any(
        d.in_files and not d.git and
        re.match(r"(worktrees/\w+/)?HEAD$", d.path) for d in diffs)


def main_worktree_in_tables(diff, pair, diffs):
    """git writes the name into the stack as it is, and looks for the short
    name when it reads."""
    words = diff.step["args"] + [word for line in diff.step["lines"] or []
                                 for word in line]
    return REFS == "reftable" and any(
        str(word).startswith("main-worktree/") for word in words)


def empty_in_git(diff, pair, diffs):
    """Directories made for a lock that wrote nothing, and left there. refd
    takes its own away; those right below refs/ git never removes."""
    if not diff.kind.endswith("directory only in git's"):
        return False
    return is_empty(pair.state, diff.path) and (
        diff.path.count("/") > 1 or came_to_nothing(pair, diff.step))


def empty_in_refd(diff, pair, diffs):
    """git stops at the first failure, refd looks at all, and has made what
    the logs need before it knows; what was right below refs/ or logs/refs/
    then stays."""
    return diff.kind.endswith("directory only in refd's") and \
        (came_to_nothing(pair, diff.step) or diff.path in pair.before) and \
        is_empty(st.read_state(pair.refd.git_dir), diff.path)


def logged_too_much(diff, pair, diffs, line):
    """Is what git has more one LINE in a log, or a directory for that?"""
    if not diff.kind.startswith("files: ") or "logs" not in diff.path or \
            not diff.git:
        return False
    if diff.git[0] == "d":
        return diff.kind.endswith("only in git's") and any(
            logged_too_much(d, pair, diffs, line) for d in diffs
            if d.in_files and d.path.startswith(diff.path + "/"))
    had = diff.refd[2] if diff.refd else b""
    return re.match(re.escape(had) + line, diff.git[2])


def nothing_logged(diff, pair, diffs):
    """In the log of a symbolic ref: nothing became nothing."""
    return logged_too_much(diff, pair, diffs, ZEROS + rb" " + ZEROS + rb" [^\n]*\n$")


def verified(diff, pair, diffs):
    """In the log of HEAD, or of another symbolic ref: what it leads to was
    deleted, when it was only looked at, or made a symbolic ref itself."""
    return diff.step["lines"] and any(
        line[0] in ("verify", "symref-verify", "symref-update",
                    "symref-create", "update")
        for line in diff.step["lines"]) and (
            logged_too_much(diff, pair, diffs, DELETION + rb"$") or
            logged_between(diff, DELETION))


def logged_between(diff, line):
    """Does git have all of refd's lines, and in between only such as LINE?
    A step may have several transactions."""
    if not diff.kind.startswith("files: logs/") or not diff.git or \
            not diff.refd:
        return False
    had = diff.refd[2].splitlines(True)
    for text in diff.git[2].splitlines(True):
        if had and had[0] == text:
            had.pop(0)
        elif not re.match(line, text):
            return False
    return not had


def log_of_deleted_symref(diff, pair, diffs):
    """git's reftables write a line instead of deleting the lines."""
    name = getattr(diff, "path", "").removeprefix("logs/")
    before = st.loose_value(pair.before, name, None)
    return REFS == "reftable" and diff.refd is None and \
        diff.path.startswith("logs/") and diff.git[2].count(b"\n") > 0 and \
        before is not None and before[0] == "ref" and \
        st.loose_value(pair.state, name, None) is None


def deletion_makes_log(diff, pair, diffs):
    """--create-reflog makes the log of a symbolic ref for the line of a
    deletion, if the deletion is an update to zeros."""
    return "--create-reflog" in diff.step["args"] and not diff.refd and \
        logged_too_much(diff, pair, diffs, DELETION + rb"$")


def not_wholly_peeled(diff, pair, diffs):
    """Where the old header did not promise peeled values, git looks up all
    objects to be able to."""
    was = pair.before.get("packed-refs", ("f", 0, b""))[2]
    return diff.kind.startswith("files: packed-refs: ") and \
        b"fully-peeled" not in was.split(b"\n")[0] and \
        diff.git and diff.refd and \
        unpeeled(diff.git[2]) == unpeeled(diff.refd[2])


def unpeeled(packed):
    return [line for line in packed.split(b"\n")
            if line[:1] not in (b"#", b"^")]


def packed_lock_unwanted(diff, pair, diffs):
    """packed-refs is locked to remove something that could be in it; and a
    worktree's own refs are not."""
    now = st.read_state(pair.refd.git_dir)
    return b"packed-refs.lock" in pair.last[0].err and not any(
        what[0] != "d" and path.startswith("refs/") and path not in now and
        not st.is_per_worktree(path) for path, what in pair.before.items())


def old_value_through_chain(diff, pair, diffs):
    """In HEAD's log, where HEAD leads through another symbolic ref, git has
    zeros for a value that it did not look up."""
    if not diff.in_files or not diff.path.endswith("logs/HEAD") or \
            not diff.git or not diff.refd:
        return False
    git, refd = (t[2].split(b"\n") for t in (diff.git, diff.refd))
    return len(git) == len(refd) > 1 and git[:-2] == refd[:-2] and \
        git[-2][2 * HEX + 1:] == refd[-2][2 * HEX + 1:] and \
        b"0" * HEX in git[-2]


def rejected_but_logged(diff, pair, diffs):
    """git logs at the symbolic ref what its target was then refused."""
    return is_batch(diff) and b"rejected " in pair.last[0].out and \
        logged_too_much(diff, pair, diffs, rb"(" + OID + rb" ){2}[^\n]*\n$")


def made_meanwhile(diff, pair, diffs):
    """A symbolic ref that leads, through another, to what is only made in
    this transaction: git writes first and then looks, refd looks before."""
    return diff.step["lines"] and any(
        line[0] in ("symref-update", "symref-create")
        for line in diff.step["lines"]) and logged_too_much(
            diff, pair, diffs, ZEROS + rb" " + OID + rb" [^\n]*\n$")


def made_in_tables(diff, pair, diffs):
    """A new symbolic ref leads to what is made in the same transaction: refd
    logs the value, as git does with files."""
    had = diff.git[2] if diff.git else b""
    return REFS == "reftable" and diff.in_files and \
        diff.path.startswith("logs/") and diff.refd and \
        diff.step["lines"] and any(
            line[:2] == [command, diff.path.removeprefix("logs/")]
            for line in diff.step["lines"]
            for command in ("symref-update", "symref-create")) and \
        re.match(re.escape(had) + ZEROS + rb" " + OID + rb" [^\n]*\n$",
                 diff.refd[2])


def full_stop(diff, pair, diffs):
    return "logs/" in getattr(diff, "path", "") and diff.git and \
        diff.refd and diff.git[2].replace(b". <", b" <") == \
        diff.refd[2].replace(b". <", b" <")


def came_to_nothing(pair, step):
    """Did the last transaction, or an aborted one, change nothing? One that
    is open at the end of the input is aborted."""
    lines = [line[0] for line in step["lines"] or []]
    last = lines[::-1].index("commit") if "commit" in lines else len(lines)
    at_end = lines[len(lines) - last:]
    return something_failed(pair) or "abort" in lines or \
        "start" in at_end or "prepare" in at_end


def made_again(diff, pair, diffs):
    """An empty directory that was in the way, or on it, was taken away and
    then needed."""
    return diff.kind.endswith("mode of a directory") and \
        is_empty(pair.before, diff.path)


def unwritten_log(diff, pair, diffs):
    """refd gives an old log its mode while it prepares; then it was not to
    be written."""
    return re.search("logs.*: mode of a file", diff.kind) and \
        pair.before.get(diff.path, (0, 0, 0))[2] == diff.git[2]


def still_open_log(diff, pair, diffs):
    """git takes the right to write an old log, and refd does not, because
    somebody can have the log open."""
    return re.search("logs.*: mode of a file", diff.kind) and \
        diff.path in pair.before and diff.refd[1] == \
        diff.git[1] | (pair.before[diff.path][1] & 0o022)


def not_atomic(diff, pair, diffs):
    """git said that all was prepared, or wrote the first refs, and then
    found something in the way."""
    return pair.last[0].status == pair.last[1].status != 0 and \
        re.match("files: |stdout", diff.kind) and \
        re.search(rb"cannot update the ref|couldn't set", pair.last[0].err)


def in_git_dir_of_worktree(diff, pair, diffs):
    """There git takes a repository for a bare one, and does not log."""
    return diff.step["cwd"] == "wt1-git-dir" and \
        re.search(r"logs.*only in refd's|logs.*refd's has more", diff.kind)
