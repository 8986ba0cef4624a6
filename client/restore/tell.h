/*
 * What is to be undone, for people and programs. One thread; nothing is flushed.
 */
#ifndef CLIENT_RESTORE_TELL_H
#define CLIENT_RESTORE_TELL_H

#include <stdio.h>

#include "client/restore/moment.h"
#include "client/restore/undo.h"

/* What will be done, as git update-ref --stdin reads it. */
void tell_commands(const struct changes *changes);
/* The same lines for people, on standard error. */
void tell_plan(const struct changes *changes);
/* What people should know of it, on standard error. */
void tell_notes(const struct undo *undo);
/* All of it as an object on a line. */
void tell_json(const struct undo *undo, const struct moment *m,
    const char *repo, bool dry_run);
/* "to record 4711: 3 moved back, ..." and a newline. */
void tell_summary(const struct undo *undo, const struct moment *m, FILE *to);

#endif
