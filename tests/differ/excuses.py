"""Where refd differs on purpose, each with its reason.

A rule is given the difference, the pair and all differences of that step,
and says whether it is its own."""
import re

import state as st
from case import encode


def excuse(diff, pair, diffs):
    """The reason why DIFF is on purpose, or None."""
    if not diff.step or diff.step["do"] != "update":
        return None
    for reason, applies in RULES:
        if applies(diff, pair, diffs):
            return reason
    return None


# ---- by what was said ----

def refd_said(pattern):
    compiled = re.compile(pattern)
    return lambda diff, pair, diffs: compiled.search(pair.last[1].err)


def git_said(pattern):
    compiled = re.compile(pattern)
    return lambda diff, pair, diffs: compiled.search(pair.last[0].err)


def older(version, rule):
    """RULE, for a git that is older than VERSION."""
    return lambda diff, pair, diffs: \
        pair.arena.git_version < version and rule(diff, pair, diffs)


def usage(diff, pair, diffs):
    return diff.kind.startswith("std") and all(
        b"usage: " in r.err + r.out for r in pair.last)


# ---- which of several errors is the one that is told ----

def groups(lines):
    """The changes, each with the options before it, and what else is there as
    None."""
    group = []
    for line in lines:
        group.append(line)
        if line[0] not in ("option", "option no-deref"):
            yield group if len(line) > 1 else None, group
            group = []


def only(lines, wanted):
    """LINES without those changes that WANTED says no to."""
    kept = []
    for change, group in groups(lines):
        if change is None or wanted(change):
            kept += group
    return kept


def another_error(diff, pair, diffs):
    """Both failed, each for a reason of its own; git, given fewer of the
    changes, has refd's."""
    step = diff.step
    git, refd = pair.last
    if not diff.kind.startswith("stderr") or not step["lines"] or \
            git.status == 0 or git.status != refd.status:
        return False
    wanted = pair.refd.neutral(refd.err)
    resolve = pair.resolver(step)
    changes = [c for c, _ in groups(step["lines"]) if c]
    if len(changes) < 2:
        return False
    named = {n for n in re.findall(rb"'([^']*)'", wanted)}
    tries = [lambda c: encode(resolve(c[-1][1])) in named]
    tries += [lambda c, one=one: c is one for one in changes]
    return any(pair.git_alone(step, only(step["lines"], t)) == wanted
               for t in tries)


def other_order(diff, pair, diffs):
    """git finds objects wanting while it reads, and all else later."""
    return diff.kind.startswith("std") and b"\n" in diff.git and \
        sorted(diff.git.split(b"\n")) == sorted(diff.refd.split(b"\n"))


def rejected_while_reading(diff, pair, diffs):
    """The same, where the transaction came to nothing."""
    if not diff.kind.startswith("std"):
        return False
    more = diff.git.split(b"\n")
    for line in diff.refd.split(b"\n"):
        if line not in more:
            return False
        more.remove(line)
    early = re.compile(rb"rejected .* invalid new value provided$|"
                       rb"error: trying to write ")
    return bool(more) and all(early.match(line) for line in more)


# ---- files ----

def something_failed(pair):
    return any(r.status != 0 or r.err or b"rejected " in r.out
               for r in pair.last)


def is_empty(state, path):
    """Is PATH a directory with nothing but directories in it?"""
    below = path + "/"
    return state.get(path, ("f",))[0] == "d" and not any(
        p.startswith(below) and what[0] != "d" for p, what in state.items())


def empty_in_git(diff, pair, diffs):
    """Directories made for a lock that wrote nothing, and left there. refd
    takes its own away; those right below refs/ git never removes."""
    if not diff.kind.endswith("directory only in git's"):
        return False
    return is_empty(pair.state, diff.path) and (
        diff.path.count("/") > 1 or something_failed(pair))


def empty_in_refd(diff, pair, diffs):
    """git stops at the first failure, refd looks at all; what is right below
    refs/ then stays."""
    return diff.kind.endswith("directory only in refd's") and \
        something_failed(pair) and is_empty(
            st.read_state(pair.refd.git_dir), diff.path) and \
        st.kind_of_path(diff.path).endswith("refs/*") and \
        diff.path.split("refs/", 1)[1].count("/") == 0


def nothing_logged(diff, pair, diffs):
    """A line in HEAD's log that says that nothing became nothing."""
    if not diff.kind.startswith("files: ") or \
            not diff.path.endswith("logs/HEAD"):
        return False
    had = diff.refd[2] if diff.refd else b""
    return diff.git and diff.git[2].startswith(
        had + b"0" * 40 + b" " + b"0" * 40 + b" ")


def deleted_meanwhile(diff, pair, diffs):
    """A ref makes room for another in the same transaction."""
    found = re.search(rb"'([^']*)' exists; cannot create", pair.last[0].err)
    return found and diff.step["lines"] and any(
        line[0].endswith(("delete", "update")) and
        encode(line[1]) == found.group(1) for line in diff.step["lines"]
        if len(line) > 1)


RULES = [
    ("not there yet", refd_said(rb"not supported")),
    ("a usage text of its own", usage),
    ("without HEAD a repository is none",
     refd_said(rb"this would be no repository")),
    ("of another worktree only what is a worktree's own can be named",
     refd_said(rb"bad name '(main-worktree|worktrees/)")),
    ("refd makes no worktree by writing its HEAD",
     refd_said(rb"no such worktree")),
    ("a name that ends with .lock is somebody's lock",
     refd_said(rb"bad name '[^']*\.lock")),
    ("FETCH_HEAD and MERGE_HEAD are no refs",
     older((2, 46), refd_said(rb"refusing to update pseudoref"))),
    ("git leaves empty directories where a lock wrote nothing", empty_in_git),
    ("refd leaves an empty refs/<x> where a later update failed",
     empty_in_refd),
    ("git, deleting and creating at once, has its own lock in the way",
     deleted_meanwhile),
    ("git stops at a stale packed-refs.new, refd takes it away",
     git_said(rb"packed-refs\.new: File exists")),
    ("git logs that HEAD became nothing from nothing", nothing_logged),
    ("git warns that a log is a directory",
     git_said(rb"unable to unlink '[^']*logs/[^']*': Is a directory")),
    ("another one of several errors", another_error),
    ("the same in another order", other_order),
    ("git says it of changes it did not get to", rejected_while_reading),
]
