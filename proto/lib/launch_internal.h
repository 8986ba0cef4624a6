/* Shared by launch.c and launch_environment.c. */
#ifndef PROTO_LIB_LAUNCH_INTERNAL_H
#define PROTO_LIB_LAUNCH_INTERNAL_H

#include "proto/lib/launch.h"

struct launch_environment {
	char **list; /* owned; most strings are borrowed; NULL: unchanged */
	char *home, *user, *logname;
};

/* Even after false, which means no memory, call launch_environment_done(). */
bool launch_environment_make(struct launch_environment *env,
    const struct launch *l);
void launch_environment_done(struct launch_environment *env);

#endif
