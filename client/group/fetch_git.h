/*
 * Runs git without a configuration of the repository or of the machine. Any
 * thread; blocks.
 */
#ifndef CLIENT_GROUP_FETCH_GIT_H
#define CLIENT_GROUP_FETCH_GIT_H

#include "client/group/fetch.h"

/* The descriptors of the repository in git, to which the links of a git-dir of
 * fetch_dirs_make() lead. */
enum {
	FETCH_FD_OBJECTS = 10,
	FETCH_FD_PACK,
	FETCH_FD_REFS,  /* a file with the format of packed-refs */
	FETCH_FD_TABLES /* reftable/ */
};

struct fetch_git {
	const struct fetch_wish *wish;
	const struct fetch_site *site;
	uint64_t until_ms; /* of refd_now_ms(); git is killed */
	/* -1: none. With TABLES git sees the refs there, and no object. */
	int objects, pack, refs, tables;
};

/*
 * Runs ARGV with the standard input IN, or none, and appends the standard
 * output to OUT, unless NULL. Messages of git are printed, at most 4 KiB.
 * Returns the exit status, 128 + n after signal n, or a negative errno:
 * -EFBIG: only the first 64 MiB of the output; others: not started, late, or
 * cancelled.
 */
int fetch_git_run(const struct fetch_git *g, const char *const argv[],
    const struct text *in, struct text *out);
/* Makes the open directory DIR a bare repository, with the default branch and
 * the default format of refs of the account. */
int fetch_git_init(const struct fetch_git *g, int dir);

/* A file in memory with TEXT, at its start. */
int fetch_git_file(const struct text *text);

#endif
