/*
 * git's system configuration, and what lies beside it. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_SYSTEM_H
#define CLIENT_ENABLE_SYSTEM_H

#include "client/enable/site.h"

/* A directory whose repositories are enabled, with a slash at the end: a note
 * in the block of the system configuration. */
#define NOTE_ROOT "root"

/* A file in refd/ beside the system configuration; owned. */
char *system_file(const char *name);
/* The system configuration as a site without hooks; for site_done(). */
void system_site(struct site *site);
/* The key by which another file is included below ROOT; owned. */
char *system_key(const char *root);

#endif
