/*
 * Landlock: the files and directories that this process may still open, in
 * addition to the rights of the user (landlock(7)). Rights that were given up
 * never come back.
 *
 *	landlock_begin -> landlock_allow ... -> landlock_enforce
 *
 * Call before a second thread exists, because only the calling thread and its
 * later threads are confined. Calls return 0 or a negative errno.
 */
#ifndef BASE_SYS_LANDLOCK_H
#define BASE_SYS_LANDLOCK_H

enum landlock_rights {
	LANDLOCK_READ,  /* open files to be read; list directories */
	LANDLOCK_RENEW, /* as READ; also make, write, rename and remove files */
	LANDLOCK_KEEP   /* as RENEW; also directories; links and renames between
			   directories below the same path */
};

struct landlock {
	int ruleset; /* a descriptor */
	int abi;     /* Landlock version of the kernel: 2 or more */
};

/* Denies all files, TCP, signals to processes outside, and the abstract Unix
 * sockets of other processes, except for a socket that is connected already.
 * -ENOSYS, -EOPNOTSUPP: the kernel has no Landlock, or Landlock is switched
 * off. -EPROTO: the kernel has version 1, which cannot allow a link or rename
 * between two directories (Linux 5.13 to 5.18). */
int landlock_begin(struct landlock *landlock);

/* PATH, with links resolved, and all files below PATH. -ENOENT: PATH is
 * missing. */
int landlock_allow(struct landlock *landlock, const char *path,
    enum landlock_rights rights);

/* Needs PR_SET_NO_NEW_PRIVS, and closes the ruleset in any case. */
int landlock_enforce(struct landlock *landlock);

#endif
