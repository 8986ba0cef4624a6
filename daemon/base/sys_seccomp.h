/*
 * seccomp: the system calls that this process may still make (seccomp(2)). All
 * other calls fail with ENOSYS, as in an older kernel, so a C library that
 * first tries a newer call falls back to an older call. If the daemon needs a
 * new call, add the call to the table in sys_seccomp.c.
 */
#ifndef BASE_SYS_SECCOMP_H
#define BASE_SYS_SECCOMP_H

/* Applies to the calling thread and later threads started by the calling
 * thread, so call before a second thread exists. Needs PR_SET_NO_NEW_PRIVS.
 * Negative errno, and no filter, on failure. */
int sys_seccomp_enforce(void);

#endif
