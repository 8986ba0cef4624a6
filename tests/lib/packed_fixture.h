/*
 * Shared by the tests of packed-refs: a struct packed on a temporary directory,
 * with a fake clock.
 */
#ifndef TESTS_LIB_PACKED_FIXTURE_H
#define TESTS_LIB_PACKED_FIXTURE_H

#include "daemon/store/files/format/packed.h"
#include "tests/lib/tmp.h"

#define A      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEADER "# pack-refs with: peeled fully-peeled sorted \n"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

extern struct sys sys; /* the kernel's, but the clock is now_ns */
extern int64_t now_ns;
extern enum refd_object_format packed_format; /* SHA-1 unless a test says */
extern struct packed *packed;                 /* of tmp_fd */

void packed_setup(void);
/* The same; git makes repositories of SHA-256. */
void packed_setup_sha256(void);
void packed_teardown(void);

struct packed_snapshot *take(void);
/* The value of NAME as hex, or "" if NAME is absent. */
const char *value(const char *name);
/* Begins a rewrite without NAMES. */
int begin_without(const char *const *names, size_t nr, mode_t mode,
    bool *changed);
/* Replaces packed-refs by a new file, as git does. */
void replace(const char *text);

/* Makes a bare "repo" with 405 refs, some of them annotated tags, packed by
 * git. */
void make_packed_repo(void);
/* From now on tmp_fd, and so packed, is the directory NAME. */
void use_repo(const char *name);

/* An openat() that counts its calls. */
extern unsigned nr_opens;
int counting_openat(const struct sys *table, int dirfd, const char *path,
    int flags, mode_t mode);

#endif
