/*
 * A temporary directory on the real file system, for unit tests with the real
 * kernel or git. One per test: a checked fixture of libcheck calls tmp_setup()
 * before and tmp_teardown() after each test.
 *
 * Every call fails the test instead of returning an error.
 */
#ifndef TESTS_LIB_TMP_H
#define TESTS_LIB_TMP_H

#include <stdbool.h>
#include <stddef.h>

/* Absolute. Also HOME, so git reads no other config. REFD_STATE is state/ in
 * it. */
extern char tmp_root[];
extern int tmp_fd; /* of tmp_root */

void tmp_setup(void);
void tmp_teardown(void);

/* Paths are relative to tmp_root. put makes missing parents. */
void tmp_put(const char *path, const char *text);
void tmp_put_bytes(const char *path, const void *data, size_t len);
char *tmp_get(const char *path);     /* NULL if absent; to be freed */
bool tmp_exists(const char *path);   /* a dangling link exists too */
void tmp_mkdir(const char *path);    /* with missing parents */
unsigned tmp_mode(const char *path); /* permission bits, also of a link */

/* Runs a shell command in tmp_root. Returns the output of both streams, to be
 * freed. */
char *tmp_output(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, but returns the exit status. */
int tmp_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, but the status must be 0. */
void tmp_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
