/*
 * Repositories on the kernel's file systems for a program without libcheck, for
 * example a fuzzer. git makes the repositories once. An error ends the program.
 */
#ifndef TESTS_LIB_HOSTILE_REPO_H
#define TESTS_LIB_HOSTILE_REPO_H

/* Only files of out/ contain this text. No message of the daemon may contain
 * it. */
#define HOSTILE_SECRET "sesame-7c1f"
/* The second repository, in srv/. */
#define HOSTILE_OTHER "other-41d6.git"

/*
 * A new directory, removed at exit; borrowed:
 *	srv/r.git	with the objects of hostile_entries.h, loose and packed,
 *			refs, reflogs, a linked worktree w
 *	srv/OTHER	the same, without the reflogs and the worktree
 *	srv/canary, out	must never change
 *	state		empty
 */
const char *hostile_repo_make(void);

#endif
