/*
 * "refd update": its options and its one-ref form (update.c), --stdin
 * (update_stdin.c), how repository and daemon are found (update_open.c), and
 * transactions (update_run.c). One thread; blocking; errors end the program
 * as git update-ref's do.
 */
#ifndef CLIENT_UPDATE_UPDATE_H
#define CLIENT_UPDATE_UPDATE_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "client/git/revision.h"
#include "client/hooks/reftx.h"
#include "client/request/changes.h"
#include "client/request/connect.h"
#include "client/request/git_messages.h"

enum update_output { OUTPUT_GIT, OUTPUT_PORCELAIN, OUTPUT_JSON };

/* The three forms of git update-ref differ in messages and exit statuses. */
enum update_form { FORM_UPDATE, FORM_DELETE, FORM_STDIN };

struct update_options {
	enum update_form form;
	enum update_output output;
	enum git_messages_version messages;
	const char *git_dir, *socket, *message, *txid;
	bool no_deref, create_reflog, batch, end_null, verbose;
	bool delete; /* -d, until FORM says so */
	bool atomic; /* said, not only meant */
	/* Not a command line that git would understand: what can't be done
	 * through the daemon is an error. */
	bool never_git;
	int timeout_ms;
	char **args; /* ref and values; NULL at the end */
	int nr_args;
};

/* A transaction that is prepared. */
struct held {
	bool is_prepared;
	bool by_daemon; /* it holds locks; else there was nothing to hold */
	struct refd_request req;
	struct refd_answer sent; /* to what was sent */
	struct refd_answer ans;  /* to all that was asked for */
};

struct updater {
	const struct update_options *opt;
	struct gitdir gd;
	struct gitconfig config;
	struct revisions revs;
	struct reftx hook;
	struct refd *daemon;
	char *socket, *committer;
	uint64_t deadline; /* to reach the daemon */
	bool txid_used;
	struct held held;
	const char *doing; /* "prepare", "commit", or NULL if nobody said so */
	/* What git would have to read of standard input, were it to do the
	 * transaction; NULL: standard input is not read. */
	struct text *input;
};

/* Finds repository, configuration and daemon. Where git may or must do it,
 * this does not return: git runs in this program's place. */
void updater_open(struct updater *up, const struct update_options *opt);
void updater_close(struct updater *up);

/*
 * A transaction, from "prepare" if that is said, to "commit" or "abort".
 * Reported as the options want it. The exit status: 0, or what the program
 * has to end with; then nothing is prepared any more.
 */
int updater_prepare(struct updater *up, const struct changes *changes);
int updater_commit(struct updater *up, const struct changes *changes);
void updater_abort(struct updater *up, const struct changes *changes);
/* Lets go of what is prepared, because the program ends by an error: no hook
 * hears of it, as in git. */
void updater_drop(struct updater *up);

/* Reads commands until the end. The exit status. */
int update_stdin(struct updater *up);

/* An error about REF as the form and the command word it; returns the exit
 * status. */
int update_failed(const struct updater *up, const char *ref,
    const char *detail);

extern const struct command update_command;

#endif
