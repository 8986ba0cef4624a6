/*
 * Runs git without a configuration of the repository or of the machine, because
 * the files of a repository are hostile. Any thread; blocks.
 */
#ifndef GROUP_SERVICE_FETCH_GIT_H
#define GROUP_SERVICE_FETCH_GIT_H

#include "daemon/group/service/fetch.h"

/* The numbers that descriptors of the repository have in git. The links in a
 * git-dir of fetch_dirs_make() lead to these descriptors. */
enum {
	FETCH_FD_OBJECTS = 10,
	FETCH_FD_PACK,
	FETCH_FD_REFS,  /* a file with the format of packed-refs */
	FETCH_FD_TABLES /* reftable/ */
};

struct fetch_git {
	const struct fetch_wish *wish;
	const struct fetch_site *site;
	uint64_t until_ms; /* of clock_now_ms(); git is killed */
	/* -1: none. With TABLES git sees the refs there, and no object. */
	int objects, pack, refs, tables;
	struct text packed; /* the content of REFS; owned */
	/* Gets the messages of git, up to FETCH_SAID_MAX bytes; NULL: they are
	 * printed after a failure. Borrowed. */
	struct text *said;
};

#define FETCH_SAID_MAX ((size_t)1 << 20)

/*
 * Runs ARGV with the standard input IN, or none, and appends the standard
 * output to OUT, unless NULL. Printed messages have at most 4 KiB.
 * Returns the exit status, 128 + n after signal n, or a negative errno:
 * -EFBIG: only the first 64 MiB of the output; others: not started, late, or
 * cancelled.
 */
int fetch_git_run(const struct fetch_git *g, const char *const argv[],
    const struct text *in, struct text *out);
/* Like fetch_git_run(), in the repository in the open directory DIR. This
 * program has made the repository, so its configuration counts. Its hooks do
 * not run, because the gate would refuse git. The output may have 1 GiB, and
 * messages go straight to standard error. */
int fetch_git_here(const struct fetch_git *g, int dir, const char *const argv[],
    struct text *out);
/* Makes the open directory DIR a bare repository, with the default branch and
 * the default format of refs of the account. */
int fetch_git_init(const struct fetch_git *g, int dir);

/* A file in memory with TEXT, at its start. */
int fetch_git_file(const struct text *text);

/* Adds refs to the ids of LINES to g->refs. */
void fetch_git_refs(struct fetch_git *g, const struct text *lines);
/* Closes g->refs. */
void fetch_git_done(struct fetch_git *g);

/* Appends the URL or the path of the repository on the source. */
void fetch_git_url(struct text *url, const struct fetch_wish *wish);
/* Both ask the source of the wish, and return as fetch_git_run(): */
/* Fetches the objects OIDS, an id in each line, and all objects that these
 * objects need. */
int fetch_git_objects(const struct fetch_git *g, const struct text *oids);
/* Appends the refs and their values, as git-ls-remote(1) prints them. */
int fetch_git_list(const struct fetch_git *g, struct text *out);

#endif
