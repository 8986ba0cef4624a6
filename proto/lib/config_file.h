/*
 * Reads the syntax of git-config(1)'s files: sections, subsections, comments,
 * quotes, escapes, continued lines. The client reads git's own files. The
 * daemon's configuration has this syntax too, so that `git config -f` can edit
 * that file. The parser includes no other file; the caller gives a key its
 * meaning.
 *
 * Pure functions over bytes; any thread.
 */
#ifndef PROTO_LIB_CONFIG_FILE_H
#define PROTO_LIB_CONFIG_FILE_H

#include <stddef.h>

/*
 * KEY is "section.name" or "section.sub section.name"; section and name are in
 * lower case, as git prints them. VALUE is NULL for a key without "=". Both are
 * borrowed for the call. LINE is the first line of the entry, from 1. A result
 * other than 0 ends the reading.
 */
typedef int config_entry_fn(void *arg, const char *key, const char *value,
    unsigned line);

/* 0, the result of FN, -EINVAL with *LINE and *WHY (static), or -ENOMEM. */
int config_file_parse(const char *text, size_t len, config_entry_fn *fn,
    void *arg, unsigned *line, const char **why);

#endif
