/*
 * The version of the installed git, for differences between versions. One
 * thread; every call blocks while git runs.
 */
#ifndef CLIENT_GIT_GITVERSION_H
#define CLIENT_GIT_GITVERSION_H

#include <stdbool.h>

/*
 * Is the git in PATH older than MAJOR.MINOR? For a hook, this is the git that
 * runs the hook. False if the version is unknown.
 */
bool gitversion_before(unsigned major, unsigned minor);

#endif
