/*
 * git's system configuration: what lies beside it, and the record of what "refd
 * enable --system" did there. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_SYSTEM_H
#define CLIENT_ENABLE_SYSTEM_H

#include "client/enable/enabled.h"

/* A file in refd/ beside that configuration; owned. */
char *system_file(const char *name);
/* The record; its site is for site_done(). */
bool system_read(struct site *site, struct enabled *record);

/* The key by which another file is included below ROOT; owned. */
char *system_key(const char *root);
/* The root that a step includes for, owned; NULL: another step. */
char *system_root(const struct step *step);

#endif
