/*
 * Repositories on the kernel's file systems for a program that has no libcheck,
 * as a fuzzer: git makes them once. What fails ends the program.
 */
#ifndef TESTS_LIB_HOSTILE_REPO_H
#define TESTS_LIB_HOSTILE_REPO_H

/* No message of the daemon's says this, which is in files of out/. */
#define HOSTILE_SECRET "sesame-7c1f"
/* The repository beside the hostile one, in srv/. */
#define HOSTILE_OTHER "other-41d6.git"

/*
 * A new directory, removed at exit; borrowed:
 *	srv/r.git	with the objects of hostile_entries.h, loose and packed,
 *			refs, reflogs, a linked worktree w
 *	srv/OTHER	the same, but for the reflogs and the worktree
 *	srv/canary, out	what nobody may change
 *	state		empty
 */
const char *hostile_repo_make(void);

#endif
