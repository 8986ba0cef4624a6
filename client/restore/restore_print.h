/*
 * Prints a restore plan for people and for programs. One thread; nothing is
 * flushed.
 */
#ifndef CLIENT_RESTORE_RESTORE_PRINT_H
#define CLIENT_RESTORE_RESTORE_PRINT_H

#include <stdio.h>

#include "client/restore/point_in_time.h"
#include "client/restore/restore_plan.h"

/* Prints the changes as input of git update-ref --stdin. */
void restore_print_commands(const struct changes *changes,
    enum refd_object_format format);
/* The same lines for people, on standard error. */
void restore_print_plan(const struct changes *changes,
    enum refd_object_format format);
/* Warnings, on standard error. */
void restore_print_notes(const struct restore_plan *plan);
/* The whole plan as one JSON object on a line. */
void restore_print_json(const struct restore_plan *plan,
    const struct point_in_time *m, const char *repo, bool dry_run);
/* "restore to record 4711: update 3 refs, ..." and a newline. */
void restore_print_summary(const struct restore_plan *plan,
    const struct point_in_time *m, FILE *to);

#endif
