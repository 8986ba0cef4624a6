/* "refd hook": the hooks that git runs. */
#ifndef CLIENT_HOOK_H
#define CLIENT_HOOK_H

#include <stdbool.h>

/* Was the program called by the name of a hook? Then *RC is the exit status of
 * the hook. */
bool hook_is_run(int argc, char **argv, int *rc);

#endif
