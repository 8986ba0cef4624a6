/*
 * git's system configuration. The record is the file gitconfig in the directory
 * refd/ beside the configuration. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_SYSTEM_H
#define CLIENT_ENABLE_SYSTEM_H

#include "client/enable/site.h"

/* A directory whose repositories are enabled, with a slash at the end: a note
 * in the record. */
#define NOTE_ROOT "refd.enable.root"

/* The system configuration as a site without hooks; for site_done(). A line of
 * the site enables all repositories below a directory, the root. */
void system_site(struct site *site);
/* The key of the line for ROOT, which ends with a slash; owned. */
char *system_key(const char *root);
/* The roots in RECORD; *AT starts at 0. Borrowed; NULL: no more. */
const char *system_next_root(const struct settings *record, size_t *at);
/* The root that the git directory PATH is below, owned, or NULL if there is
 * none. */
char *system_root_of(const char *path);
/* After site_look(): has each root of the record its line? */
bool system_holds(const struct site *site);

#endif
