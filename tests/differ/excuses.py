"""Where refd differs on purpose: each with its reason, and with the rule that
tells it from any other difference. A rule is given the difference, the pair,
and all differences of that step."""
import rules_files as files
import rules_said as said
from rules_said import git_said, older, refd_said


def excuse(diff, pair, diffs):
    """The reason why DIFF is on purpose, or None."""
    if not diff.step or diff.step["do"] != "update":
        return None
    for reason, applies in RULES:
        if applies(diff, pair, diffs):
            return reason
    return None


RULES = [
    # Names that refd does not write.
    ("without HEAD a repository is none",
     refd_said(rb"this would be no repository")),
    ("git deletes HEAD, which refd refuses", files.deleted_head),
    ("of another worktree only what is a worktree's own can be named",
     refd_said(rb"bad name '(main-worktree|worktrees/)")),
    ("git can't delete or verify another worktree's refs",
     git_said(rb"bad name '(main-worktree|worktrees/)")),
    ("refd makes no worktree by writing its HEAD",
     refd_said(rb"no such worktree")),
    ("git has no words for reftables of a missing worktree",
     git_said(rb"reftable: transaction prepare: I/O error")),
    ("in reftables git makes a ref of the name main-worktree/..., which git "
     "itself cannot read", files.main_worktree_in_tables),
    ("outside of refs/ a name has one component",
     refd_said(rb"bad name '[^'/]+/")),
    ("names of git's own files are no refs",
     refd_said(rb"which git keeps something else under")),
    ("a name that ends with .lock is somebody's lock",
     refd_said(rb"bad name '[^']*\.lock")),
    ("a name that is too long for refd is left to git, with a line",
     refd_said(rb"refname is too long")),
    ("FETCH_HEAD and MERGE_HEAD are no refs",
     older((2, 46), refd_said(rb"refusing to update pseudoref"))),
    ("one file under two names", said.same_file_twice),

    # Symbolic refs.
    ("a target that is no ref's name is not followed",
     refd_said(rb"which is no reference's name|refusing to point")),
    ("a link that names no ref is not read through", said.link_to_elsewhere),
    ("a loop of symbolic refs is told to be one", said.looped),
    ("no ref is made over a dangling symbolic ref with no-deref",
     older((2, 52), refd_said(rb"dangling symref already exists"))),
    ("a branch holds commits, whatever way one gets to it",
     said.stricter_branch),
    ("git overlooks two updates of one ref by a chain through HEAD or "
     "another ref of a worktree",
     said.overlooked),
    ("of a chain that HEAD is part of, git names HEAD", said.chain_of_head),

    # Locks.
    ("git is in its own way where a ref is named in two ways",
     said.own_lock),
    ("HEAD is locked for its log alone", said.head_lock_unwanted),
    ("packed-refs is locked to remove what is in it",
     files.packed_lock_unwanted),
    ("git, deleting and creating at once, has its own lock in the way",
     said.deleted_meanwhile),
    ("junk is not in the way of what is not there", said.junk_in_the_way),
    ("git stops at a stale packed-refs.new, refd takes it away",
     git_said(rb"packed-refs\.new: File exists")),

    # When something is noticed, and what then is left undone.
    ("refd looks at objects before all else, as git does since 2.51",
     older((2, 51), said.objects_first)),
    ("git looks at objects before all else", said.looked_up_early),
    ("core.logAllRefUpdates that means nothing stops refd at once, as it did "
     "git before it was read only where it counts", said.no_boolean),
    ("a log that can't be written is seen when it is prepared",
     said.seen_while_preparing),
    ("a log in the way of nothing", said.undeletable_log),
    ("git warns that a log is a directory",
     git_said(rb"unable to unlink '[^']*logs/[^']*': (Is|Not) a dir")),
    ("git finds out when it renames",
     git_said(rb"fatal: .*couldn't set ")),
    ("git is not atomic", files.not_atomic),

    # Batches.
    ("an error of no class costs git the batch", said.fails_whole),
    ("two refs in each other's way are not both tried",
     said.in_the_way_of_itself),
    ("a change that was rejected early counts as one of two",
     said.counted_twice),
    ("git names what a symbolic ref leads to", said.named_by_target),
    ("git logs what was rejected", files.rejected_but_logged),
    ("another one of several reasons", said.another_reason),

    # Logs.
    ("git logs that nothing became nothing", files.nothing_logged),
    ("git logs a deletion where nothing is deleted", files.verified),
    ("in reftables git keeps the log of a symbolic ref that it deletes",
     files.log_of_deleted_symref),
    ("a deletion makes no log", files.deletion_makes_log),
    ("what a chain leads to was made in the same transaction",
     files.made_meanwhile),
    ("git's reftables look at the target of a new symbolic ref before the "
     "transaction makes the target", files.made_in_tables),
    ("git logs zeros for what it did not look up",
     files.old_value_through_chain),
    ("git logs nothing in the git-dir of a worktree",
     files.in_git_dir_of_worktree),
    ("refd gives a log its mode before it is written", files.unwritten_log),
    ("refd takes no right to write a log", files.still_open_log),
    ("a full stop was cut off the committer's name",
     older((2, 48), files.full_stop)),

    # Other files.
    ("git leaves empty directories where a lock wrote nothing",
     files.empty_in_git),
    ("refd leaves empty directories where an update came to nothing",
     files.empty_in_refd),
    ("a directory that was in the way is a new one", files.made_again),
    ("refd does not peel what it copies", files.not_wholly_peeled),

    # What is said.
    ("a usage text of its own", said.usage),
    ("refd shows people no bytes that are not UTF-8", said.hidden_bytes),
    ("an older git names what a bad gitfile leads to",
     older((2, 46), refd_said(rb"gitfile does not point to a valid repo"))),
    ("another one of several errors", said.another_error),
    ("another one of the things in the way", said.other_words),
    ("the same in another order", said.other_order),
    ("git says it of changes it did not get to",
     said.rejected_while_reading),
    ("a hook hears more of a failure", said.failed_with_hook),
    ("the hook is called for packed-refs as git does since 2.50",
     older((2, 50), said.by_hook)),
    ("git crashed", said.crashed),
]
