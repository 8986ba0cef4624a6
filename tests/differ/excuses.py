"""Where refd differs on purpose, each with its reason.

A rule is given the difference, the pair and all differences of that step,
and says whether it is its own."""
import itertools
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
    """The changes, each with the options before it; what else is there, a
    start or a commit, as a group that is no change."""
    group = []
    for line in lines:
        group.append(line)
        if line[0] not in ("option", "option no-deref"):
            yield len(line) > 1, group
            group = []


def only(lines, wanted):
    """LINES without those changes, counted from 0, that WANTED says no to."""
    kept, n = [], 0
    for is_change, group in groups(lines):
        if not is_change or wanted(n):
            kept += group
        n += is_change
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
    changes = [group for is_change, group in groups(step["lines"])
               if is_change]
    if len(changes) < 2:
        return False
    named = set(re.findall(rb"'([^']*)'", wanted))
    tries = [[n for n, group in enumerate(changes)
              if named & names_of(group[-1], pair, resolve)]]
    tries += [[n] for n in range(len(changes))]
    if len(changes) < 9:
        tries += itertools.combinations(range(len(changes)), 2)
    for t in tries:
        lines = only(step["lines"], t.__contains__)
        said = (pair.git_alone(step, lines),
                pair.git_alone(step, without_old_values(lines)))
        # Of a chain that HEAD is a part of, git names HEAD.
        if wanted in said or any(
                b"'HEAD'" in text and QUOTED.sub(b"", text) ==
                QUOTED.sub(b"", wanted) for text in said):
            return True
    return False


def names_of(line, pair, resolve):
    """A change's ref, and the one that it leads to."""
    name = resolve(line[1])
    final = st.final_name(pair.before, name, None)
    return {encode(name), encode(final or name)}


QUOTED = re.compile(rb"'[^']*'")


def without_old_values(lines):
    places = {"update": 3, "delete": 2}
    return [line[:places.get(line[0], len(line))] for line in lines]


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
    return logged_too_much(diff, pair, diffs, rb"0{40} 0{40} [^\n]*\n$")


def verified(diff, pair, diffs):
    """In the log of HEAD, or of another symbolic ref: what it leads to was
    deleted, when it was only looked at."""
    return diff.step["lines"] and any(
        line[0] in ("verify", "symref-verify", "update")
        for line in diff.step["lines"]) and logged_too_much(
            diff, pair, diffs, rb"[0-9a-f]{40} 0{40} [^\n]*\n$")


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


# ---- batches ----

def is_batch(diff):
    return "--batch-updates" in diff.step["args"]


def fails_whole(diff, pair, diffs):
    """What git has no reason for in its list costs it the whole batch."""
    git, refd = pair.last
    return is_batch(diff) and git.status == 128 and refd.status == 0 and \
        re.search(rb"reference broken|packed-refs\.lock|HEAD\.lock|"
                  rb"blocking reference|unable to create|still logs|"
                  rb"unable to append|error reading", git.err)


def named_by_target(diff, pair, diffs):
    """git names what the symbolic ref led to, refd what it was asked for."""
    if not is_batch(diff) or not diff.kind.startswith("stdout"):
        return False
    git, refd = (re.sub(rb"(?m)^rejected \S+ ", b"rejected - ", t)
                 for t in (diff.git, diff.refd))
    return sorted(git.split(b"\n")) == sorted(refd.split(b"\n")) and any(
        (st.loose_value(pair.before, name, pair.worktree(diff.step)) or
         ("",))[0] == "ref" for name in
        re.findall(r"(?m)^rejected (\S+) ",
                   diff.refd.decode("utf-8", "surrogateescape")))


def looked_up_early(diff, pair, diffs):
    """git since 2.51 looks at objects while it reads, so it fails where a
    later line is wrong, or where nothing was to be done in the end."""
    git, refd = pair.last
    step = diff.step
    return step["lines"] and re.match(rb"fatal: (prepare: |commit: )?trying "
                                      rb"to write ", git.err) and \
        (refd.status == git.status or refd.status == 0 and not refd.err)


def failed_with_hook(diff, pair, diffs):
    """What the hook hears of a transaction that fails: git's packed-refs
    have a transaction of their own, and refd's client runs the hook before
    the daemon looks."""
    return diff.kind.startswith("hook: ") and something_failed(pair)


def own_lock(diff, pair, diffs):
    """git waits for a lock that it holds itself: where a ref is named in two
    ways, main-worktree/X and X, and where HEAD is, by itself and by a
    symbolic ref."""
    found = re.search(rb"Unable to create '([^']*)'",
                      pair.git.neutral(pair.last[0].err))
    if found:
        path = found.group(1).decode("utf-8", "surrogateescape")
        git_dir = pair.git.git_dir.replace(pair.git.root, "ROOT") + "/"
        return path.startswith(git_dir) and \
            path[len(git_dir):] not in pair.before
    return is_batch(diff) and b"rejected HEAD " in pair.last[0].out and \
        b"rejected HEAD " not in pair.last[1].out


def head_lock_unwanted(diff, pair, diffs):
    """HEAD is locked for its log, by refd only if that is to be written."""
    found = re.search(rb"/((worktrees/\w+/)?HEAD)\.lock': File exists",
                      pair.last[0].err)
    log = found and found.group(1).decode().replace("HEAD", "logs/HEAD")
    return found and log not in pair.before


def packed_lock_unwanted(diff, pair, diffs):
    """packed-refs is locked to remove something that could be in it; and a
    worktree's own refs are not."""
    now = st.read_state(pair.refd.git_dir)
    return b"packed-refs.lock" in pair.last[0].err and not any(
        what[0] != "d" and path.startswith("refs/") and path not in now and
        not st.is_per_worktree(path) for path, what in pair.before.items())


def both_failed(pair):
    git, refd = pair.last
    return git.status == refd.status != 0


def said(pair, git, refd):
    """Both failed, and said so in these words."""
    return both_failed(pair) and re.search(git, pair.last[0].err) and \
        re.search(refd, pair.last[1].err)


def in_the_way_of_itself(diff, pair, diffs):
    """Of two refs in each other's way refd rejects one even if nothing comes
    of the other."""
    def rejected(result):
        return set(re.findall(rb"(?m)^rejected (\S+) .*$", result.out))
    conflicts = set(re.findall(rb"(?m)^rejected (\S+) .* refname conflict$",
                               pair.last[1].out))
    more = rejected(pair.last[1]) - rejected(pair.last[0])
    return is_batch(diff) and more and more <= conflicts


def old_value_through_chain(diff, pair, diffs):
    """In HEAD's log, where HEAD leads through another symbolic ref, git has
    zeros for a value that it did not look up."""
    if not diff.path.endswith("logs/HEAD") or not diff.git or not diff.refd:
        return False
    git, refd = (t[2].split(b"\n") for t in (diff.git, diff.refd))
    return len(git) == len(refd) and git[:-2] == refd[:-2] and \
        git[-2][81:] == refd[-2][81:] and b"0" * 40 in git[-2]


def stricter_branch(diff, pair, diffs):
    """A branch holds commits, whatever way one gets to it."""
    return pair.last[0].status == 0 and \
        b"trying to write non-commit" in pair.last[1].err


def undeletable_log(diff, pair, diffs):
    """git wants to log a deletion, refd has nothing to log."""
    return pair.last[1].status == 0 and re.search(
        rb"still logs under|unable to append to", pair.last[0].err)


def seen_while_preparing(diff, pair, diffs):
    """A log that can't be written stops refd when it prepares."""
    return pair.last[0].status == 0 and re.search(
        rb"still logs under|unable to append to", pair.last[1].err)


def other_words(diff, pair, diffs):
    """What is in the way, of which there is more than one thing."""
    return said(pair, rb"there is a non-empty directory",
                rb"exists; cannot create") or \
        said(pair, rb"unable to create directory for", rb"No such file") or \
        said(pair, rb"unable to resolve reference",
             rb"exists; cannot create|cannot process ")


def chain_of_head(diff, pair, diffs):
    return said(pair, rb"cannot lock ref '[^']*HEAD'", rb"cannot lock ref ")


def counted_twice(diff, pair, diffs):
    """git has forgotten a rejected change when the next one comes."""
    return is_batch(diff) and b"rejected " in pair.last[0].out and \
        b"multiple updates for ref" in pair.last[1].err


def another_reason(diff, pair, diffs):
    """The same refs were rejected, and of several reasons another was
    given."""
    if not is_batch(diff) or not diff.kind.startswith("std"):
        return False
    git, refd = (sorted(re.findall(rb"(?m)^rejected (\S+ \S+ \S+)", r.out))
                 for r in pair.last)
    return git == refd and b"conflict" in pair.last[1].out or \
        diff.kind.startswith("stderr") and git == refd


def rejected_but_logged(diff, pair, diffs):
    """git logs at the symbolic ref what its target was then refused."""
    return is_batch(diff) and diff.kind.startswith("files: ") and \
        "logs/" in diff.path and diff.git and b"rejected " in \
        pair.last[0].out and (not diff.refd or
                              diff.git[2].startswith(diff.refd[2]))


def link_to_elsewhere(diff, pair, diffs):
    """Links that name no ref are broken refs, and are not read through."""
    return b"reference broken" in pair.last[1].err and any(
        what[0] == "l" and not what[2].startswith(b"refs/")
        for what in pair.before.values())


def same_file_twice(diff, pair, diffs):
    """main-worktree/X and X: refd knows that they are one."""
    return diff.step["lines"] and pair.last[0].status == \
        pair.last[1].status != 0 and \
        b"multiple updates" in pair.last[1].err and any(
            re.match(r"main-worktree/|worktrees/", line[1])
            for line in diff.step["lines"] if len(line) > 1)


def full_stop(diff, pair, diffs):
    return "logs/" in getattr(diff, "path", "") and diff.git and \
        diff.refd and diff.git[2].replace(b". <", b" <") == \
        diff.refd[2].replace(b". <", b" <")


def crashed(diff, pair, diffs):
    status = pair.last[0].status
    return isinstance(status, int) and status < 0


def came_to_nothing(pair, step):
    lines = [line[0] for line in step["lines"] or []]
    return something_failed(pair) or "abort" in lines or \
        ("start" in lines or "prepare" in lines) and "commit" not in lines


def made_again(diff, pair, diffs):
    """An empty directory that was in the way, or on it, was taken away and
    then needed."""
    return diff.kind.endswith("mode of a directory") and \
        is_empty(pair.before, diff.path)


def looped(diff, pair, diffs):
    """Of a loop git may see first that it leads to no value."""
    return pair.last[0].status == pair.last[1].status != 0 and \
        not diff.step["lines"] and \
        b"including one via" in pair.last[1].err


def unwritten_log(diff, pair, diffs):
    """refd gives an old log its mode while it prepares; then it was not to
    be written."""
    return re.search("logs.*: mode of a file", diff.kind) and \
        pair.before.get(diff.path, (0, 0, 0))[2] == diff.git[2]


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


def deleted_meanwhile(diff, pair, diffs):
    """A ref makes room for another in the same transaction."""
    found = re.search(rb"'([^']*)' exists; cannot create", pair.last[0].err)
    return found and diff.step["lines"] and any(
        line[0].endswith(("delete", "update")) and
        encode(line[1]) == found.group(1) for line in diff.step["lines"]
        if len(line) > 1)


RULES = [
    ("git crashed", crashed),
    ("not there yet", refd_said(rb"not supported")),
    ("a usage text of its own", usage),
    ("without HEAD a repository is none",
     refd_said(rb"this would be no repository")),
    ("of another worktree only what is a worktree's own can be named",
     refd_said(rb"bad name '(main-worktree|worktrees/)")),
    ("git can't delete or verify another worktree's refs",
     git_said(rb"bad name '(main-worktree|worktrees/)")),
    ("outside of refs/ a name has one component",
     refd_said(rb"bad name '[^'/]+/")),
    ("names of git's own files are no refs",
     refd_said(rb"which git keeps something else under")),
    ("a target that is no ref's name is not followed",
     refd_said(rb"which is no reference's name|refusing to point")),
    ("a name may be too long to be tried", refd_said(rb"refname is too long")),
    ("core.logAllRefUpdates that means nothing stops refd at once, as it did "
     "git before it was read only where it counts",
     lambda diff, pair, diffs:
     any(b"bad boolean config value" in r.err or
         b"core.logAllRefUpdates of" in r.err for r in pair.last)),
    ("git is in its own way where a ref is named in two ways", own_lock),
    ("HEAD is locked for its log alone", head_lock_unwanted),
    ("packed-refs is locked to remove what is in it", packed_lock_unwanted),
    ("one file under two names", same_file_twice),
    ("a link that names no ref is not read through", link_to_elsewhere),
    ("git overlooks two updates of one ref by a chain through HEAD",
     lambda diff, pair, diffs: is_batch(diff) and refd_said(
         rb"including one via")(diff, pair, diffs)),
    ("a loop of symbolic refs is told to be one", looped),
    ("a directory that was in the way is a new one", made_again),
    ("two refs in each other's way are not both tried",
     in_the_way_of_itself),
    ("git logs zeros for what it did not look up",
     lambda diff, pair, diffs: diff.in_files and
     old_value_through_chain(diff, pair, diffs)),
    ("a branch holds commits, whatever way one gets to it", stricter_branch),
    ("a log in the way of nothing", undeletable_log),
    ("a log that can't be written is seen when it is prepared",
     seen_while_preparing),
    ("another one of the things in the way", other_words),
    ("of a chain that HEAD is part of, git names HEAD", chain_of_head),
    ("a change that was rejected early counts as one of two", counted_twice),
    ("git finds out when it renames",
     git_said(rb"fatal: .*couldn't set ")),
    ("a full stop was cut off the committer's name",
     older((2, 48), full_stop)),
    ("no ref is made over a dangling symbolic ref with no-deref",
     older((2, 52), refd_said(rb"dangling symref already exists"))),
    ("refd looks at objects before all else, as git does since 2.51",
     older((2, 51), lambda diff, pair, diffs: all(
         r.status == pair.last[0].status != 0 for r in pair.last) and
         refd_said(rb"trying to write ")(diff, pair, diffs))),
    ("the hook is called for packed-refs as git does since 2.50",
     older((2, 50), lambda diff, pair, diffs:
           diff.kind.startswith("hook: "))),
    ("refd makes no worktree by writing its HEAD",
     refd_said(rb"no such worktree")),
    ("a name that ends with .lock is somebody's lock",
     refd_said(rb"bad name '[^']*\.lock")),
    ("FETCH_HEAD and MERGE_HEAD are no refs",
     older((2, 46), refd_said(rb"refusing to update pseudoref"))),
    ("git leaves empty directories where a lock wrote nothing", empty_in_git),
    ("refd leaves empty directories where an update came to nothing",
     empty_in_refd),
    ("refd gives a log its mode before it is written", unwritten_log),
    ("git is not atomic", not_atomic),
    ("git logs nothing in the git-dir of a worktree", in_git_dir_of_worktree),
    ("git, deleting and creating at once, has its own lock in the way",
     deleted_meanwhile),
    ("git stops at a stale packed-refs.new, refd takes it away",
     git_said(rb"packed-refs\.new: File exists")),
    ("git logs that nothing became nothing", nothing_logged),
    ("git logs a deletion where something is verified", verified),
    ("refd does not peel what it copies", not_wholly_peeled),
    ("an error of no class costs git the batch", fails_whole),
    ("git names what a symbolic ref leads to", named_by_target),
    ("git logs what was rejected", rejected_but_logged),
    ("another one of several reasons", another_reason),
    ("git looks at objects before all else", looked_up_early),
    ("a hook hears more of a failure", failed_with_hook),
    ("git warns that a log is a directory",
     git_said(rb"unable to unlink '[^']*logs/[^']*': (Is|Not) a dir")),
    ("another one of several errors", another_error),
    ("the same in another order", other_order),
    ("git says it of changes it did not get to", rejected_while_reading),
]
