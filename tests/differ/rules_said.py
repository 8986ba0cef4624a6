"""What tells a difference on purpose from any other, by what was said."""
import itertools
import re

import state as st
from render import encode
from rules_files import came_to_nothing, is_batch, something_failed

QUOTED = re.compile(rb"'[^']*'")


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


HIDDEN = re.compile("[\udc80-\udcff\x80-\x9f\u061c\u200e\u200f"
                    "\u202a-\u202e\u2066-\u2069]")


def hidden_bytes(diff, pair, diffs):
    """git says the same, with bytes that steer a terminal."""
    git, refd = (r.err for r in pair.last)
    text = git.decode("utf-8", "surrogateescape")
    return diff.kind.startswith("std") and git != refd and \
        HIDDEN.sub("?", text).encode("utf-8", "surrogateescape") == refd


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
    elif tries[0]:
        # So many that it is not found out.
        return True
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


def fails_whole(diff, pair, diffs):
    """What git has no reason for in its list costs it the whole batch."""
    git, refd = pair.last
    went_on = refd.status == 0 or \
        refd.out != git.out and refd.out.startswith(git.out)
    return is_batch(diff) and git.status == 128 and went_on and \
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
    return step["lines"] and re.search(rb"(?m)^fatal: (prepare: |commit: )?"
                                       rb"trying to write ", git.err) and \
        (refd.status == git.status or refd.status == 0 and not refd.err)


def failed_with_hook(diff, pair, diffs):
    """What the hook hears of a transaction that fails: git's packed-refs
    have a transaction of their own, and refd's client runs the hook before
    the daemon looks. An aborted batch does not say what it rejected."""
    return diff.kind.startswith("hook: ") and (
        something_failed(pair) or
        is_batch(diff) and came_to_nothing(pair, diff.step))


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
    """HEAD is locked for its log, by refd only if that is to be written: not
    without a log, and not for a ref that is only looked at."""
    found = re.search(rb"/((worktrees/\w+/)?HEAD)\.lock': File exists",
                      pair.last[0].err)
    if not found:
        return False
    log = found.group(1).decode().replace("HEAD", "logs/HEAD")
    now = st.read_state(pair.refd.git_dir)
    return log not in pair.before or \
        pair.last[1].status == 0 and now.get(log) == pair.before[log]


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


def stricter_branch(diff, pair, diffs):
    """A branch holds commits, whatever way one gets to it. Where git stops
    for another reason, or comes to an end, it gave that object no thought:
    no name of a branch stands before it."""
    git, refd = pair.last
    found = re.search(rb"trying to write non-commit object (\w+) to branch",
                      refd.err)
    if not found:
        rejected = b"\n".join(line for line in refd.out.split(b"\n")
                              if line not in git.out.split(b"\n"))
        found = re.search(rb"rejected \S+ (\w+) \S+ invalid new value",
                          rejected)
    if not found or git.status == 0:
        return found
    wanted = found.group(1).decode()
    return diff.step["lines"] and not any(
        re.match(r"HEAD$|refs/heads/", line[1]) and line[2] == wanted
        for line in diff.step["lines"]
        if line[0] in ("create", "update") and len(line) > 2)


def undeletable_log(diff, pair, diffs):
    """git wants to log a deletion, refd has nothing to log."""
    return pair.last[1].status == 0 and re.search(
        rb"still logs under|unable to append to", pair.last[0].err)


def seen_while_preparing(diff, pair, diffs):
    """A log that can't be written stops refd when it prepares. git gets
    further, if not to the end."""
    git, refd = pair.last
    got_further = git.status == 0 or \
        git.out != refd.out and git.out.startswith(refd.out)
    return got_further and re.search(
        rb"still logs under|unable to append to", refd.err)


def other_words(diff, pair, diffs):
    """What is in the way, of which there is more than one thing."""
    return said(pair, rb"there is a non-empty directory",
                rb"exists; cannot create") or \
        said(pair, rb"unable to create directory for", rb"No such file") or \
        said(pair, rb"unable to resolve reference",
             rb"exists; cannot create|cannot process ") or \
        said(pair, rb"cannot process ", rb"cannot process ") or \
        said(pair, rb"cannot lock ref|multiple updates .*including one",
             rb"multiple updates .*including one") or \
        said(pair, rb"unable to resolve|is at |already exists|is missing",
             rb"HEAD\.lock': File exists")


def chain_of_head(diff, pair, diffs):
    """Even where nothing is wrong with it."""
    return pair.last[1].status == 0 and re.search(
        rb"cannot lock ref 'HEAD': reference already exists",
        pair.last[0].err) or said(
            pair, rb"cannot lock ref '[^']*HEAD'", rb"cannot lock ref ")


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


def crashed(diff, pair, diffs):
    status = pair.last[0].status
    return isinstance(status, int) and status < 0


def looped(diff, pair, diffs):
    """Of a loop git may see first that it leads to no value."""
    return pair.last[0].status == pair.last[1].status != 0 and \
        not diff.step["lines"] and \
        b"including one via" in pair.last[1].err


def deleted_meanwhile(diff, pair, diffs):
    """A ref makes room for another in the same transaction."""
    found = re.search(rb"'([^']*)' exists; cannot create", pair.last[0].err)
    return found and diff.step["lines"] and any(
        line[0].endswith(("delete", "update")) and
        encode(line[1]) == found.group(1) for line in diff.step["lines"]
        if len(line) > 1)


def overlooked(diff, pair, diffs):
    """Only where git goes on: in a batch, or because it sees no loop."""
    return (is_batch(diff) or pair.last[0].status == 0) and \
        b"including one via" in pair.last[1].err


def objects_first(diff, pair, diffs):
    """Even where the ref has that value already."""
    return pair.last[1].status != 0 and \
        b"trying to write " in pair.last[1].err


def no_boolean(diff, pair, diffs):
    return any(b"bad boolean config value" in r.err or
               b"core.logAllRefUpdates of" in r.err for r in pair.last)


def by_hook(diff, pair, diffs):
    return diff.kind.startswith("hook: ")


def junk_in_the_way(diff, pair, diffs):
    """A directory with something in it is in the way of a file, but not of
    a ref that is not to be there."""
    return pair.last[1].status == 0 and \
        b"there is a non-empty directory" in pair.last[0].err
