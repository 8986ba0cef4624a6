"""Where refd differs on purpose, each with its reason.

A rule is given the difference, the pair and all differences of that step,
and says whether it is its own. README.md lists the same in prose."""
import state as st


def excuse(diff, pair, diffs):
    """The reason why DIFF is on purpose, or None."""
    for reason, applies in RULES:
        if diff.step and diff.step["do"] == "update" and \
                applies(diff, pair, diffs):
            return reason
    return None


def results(pair):
    return pair.last


def refd_said(text):
    return lambda diff, pair, diffs: text in pair.last[1].err


def git_said(text):
    return lambda diff, pair, diffs: text in pair.last[0].err


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


RULES = [
    ("not there yet", refd_said(b"not supported")),
    ("git leaves empty directories where a lock wrote nothing", empty_in_git),
    ("refd leaves an empty refs/<x> where a later update failed",
     empty_in_refd),
    ("git stops at a stale packed-refs.new, refd takes it away",
     git_said(b"packed-refs.new: File exists")),
]
