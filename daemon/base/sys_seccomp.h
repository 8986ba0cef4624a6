/*
 * seccomp: the system calls that this process may still make (seccomp(2)). All
 * others fail with ENOSYS, as in a kernel that lacks them, so a C library that
 * tries a newer call first falls back to an older one. A new call that the
 * daemon needs has to be added to the table in sys_seccomp.c.
 */
#ifndef BASE_SYS_SECCOMP_H
#define BASE_SYS_SECCOMP_H

/* For the calling thread and those that it starts later, so before any other
 * exists. Needs PR_SET_NO_NEW_PRIVS. Negative errno, and no filter. */
int seccomp_enforce(void);

#endif
