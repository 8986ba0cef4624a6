/*
 * Which git there is, for what its versions do differently.
 * One thread; blocks while git runs, each time.
 */
#ifndef CLIENT_GIT_GITVERSION_H
#define CLIENT_GIT_GITVERSION_H

#include <stdbool.h>

/*
 * Is PATH's git, which for a hook is the one that runs it, older than
 * MAJOR.MINOR? One that does not tell is not.
 */
bool gitversion_before(unsigned major, unsigned minor);

#endif
