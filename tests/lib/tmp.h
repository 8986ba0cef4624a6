/*
 * A temporary directory on the real file system, for unit tests that want
 * the kernel's or git's own answer. One per test: a checked fixture of
 * libcheck calls tmp_setup() before and tmp_teardown() after each.
 *
 * Every call fails the test rather than returning an error.
 */
#ifndef TESTS_LIB_TMP_H
#define TESTS_LIB_TMP_H

#include <stdbool.h>
#include <stddef.h>

/* Absolute; HOME too, and git sees no other config; REFD_STATE is state/ in it.
 */
extern char tmp_root[];
extern int tmp_fd; /* of tmp_root */

void tmp_setup(void);
void tmp_teardown(void);

/* Paths are relative to tmp_root. put makes missing parents. */
void tmp_put(const char *path, const char *text);
void tmp_put_bytes(const char *path, const void *data, size_t len);
char *tmp_get(const char *path);     /* NULL when absent; free() */
bool tmp_exists(const char *path);   /* a dangling link exists too */
void tmp_mkdir(const char *path);    /* with missing parents */
unsigned tmp_mode(const char *path); /* permission bits, of a link too */

/* Runs a shell command in tmp_root; its output (both streams), free(). */
char *tmp_output(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for its exit status. */
int tmp_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and the status must be 0. */
void tmp_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
