/*
 * "refd update": its options (update.c), and what they lead to
 * (update_run.c). One thread; blocking; errors end the program as
 * git update-ref's do.
 */
#ifndef CLIENT_UPDATE_H
#define CLIENT_UPDATE_H

#include "client/changes.h"
#include "client/gitconfig.h"
#include "client/gitdir.h"
#include "client/reach.h"
#include "client/revision.h"

enum update_output { OUTPUT_GIT, OUTPUT_PORCELAIN, OUTPUT_JSON };

/* How a failure is worded, and its exit status, as git's three forms have
 * them. */
enum update_form { FORM_UPDATE, FORM_DELETE, FORM_STDIN };

struct update_options {
	enum update_form form;
	enum update_output output;
	const char *dir; /* -C */
	const char *git_dir, *socket, *message, *txid;
	bool no_deref, create_reflog, batch, end_null, verbose;
	bool atomic; /* said, not only meant */
	int timeout_ms;
	char **args; /* ref and values; NULL at the end */
	int nr_args;
};

struct updater {
	const struct update_options *opt;
	struct gitdir gd;
	struct gitconfig config;
	struct revisions revs;
	struct refd *daemon;
	char *socket, *committer;
	uint64_t deadline; /* to reach the daemon */
	bool txid_used;
};

/* Finds repository, configuration and daemon. Where the daemon is away and
 * git may do it, this does not return: git runs in this program's place. */
void updater_open(struct updater *up, const struct update_options *opt);
void updater_close(struct updater *up);

/* One transaction, reported as the options want it. The exit status: 0, or
 * what the program has to end with. */
int updater_commit(struct updater *up, const struct changes *changes);

/* An error about REF as the form words it; returns the exit status. */
int update_failed(const struct update_options *opt, const char *ref,
    const char *detail);

#endif
