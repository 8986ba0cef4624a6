/*
 * "refd update": its options and its one-ref form (update.c), --stdin
 * (update_stdin.c), the repository and the daemon (update_open.c), and
 * transactions (update_run.c). One thread; blocking. Errors end the program as
 * in git update-ref.
 */
#ifndef CLIENT_UPDATE_UPDATE_H
#define CLIENT_UPDATE_UPDATE_H

#include "client/base/child.h"
#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
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
	bool atomic; /* --atomic was given */
	/* git would not understand the command line, so git never replaces this
	 * program. */
	bool never_git;
	int timeout_ms;
	char **args; /* the ref and its values; ends with NULL */
	int nr_args;
};

/* A transaction that is prepared. */
struct held {
	bool is_prepared;
	bool is_done;            /* by an earlier call with the same --txid */
	bool by_daemon;          /* the daemon holds locks for it */
	struct refd_request req; /* borrows from the changes */
	struct refd_answer ans;
};

/* GD is borrowed. OBJECT_FORMAT is of the repository. The rest is zero
 * initially. */
struct revisions {
	const struct gitdir *gd;
	enum refd_object_format object_format;
	struct coprocess git;
};

/*
 * Resolves the name of an object. The hex digits of a whole id are used
 * verbatim, without a check that the object exists. git resolves all other
 * names ("git cat-file --batch-check", started at the first need). False: no
 * such object, or an ambiguous name.
 */
bool update_resolve(struct revisions *revs, const char *name,
    struct refd_oid *oid);

struct updater {
	const struct update_options *opt;
	struct gitdir gd;
	struct gitconfig config;
	struct revisions revs;
	struct reftx hook;
	struct refd *daemon;
	char *committer;
	struct daemon_socket socket;
	uint64_t deadline; /* of the connection */
	bool txid_used;
	struct held held;
	const char *doing; /* the command "prepare" or "commit", or NULL */
	/* The input that git has to read if git replaces this program; NULL:
	 * standard input is not read. */
	struct text *input;
};

/* Finds the repository, the configuration and the daemon. Does not return if
 * git replaces this program. */
void updater_open(struct updater *up, const struct update_options *opt);
/*
 * Lets git do the update by exec_git(), if connect_may_leave(). Otherwise the
 * program ends. On a node of several, the status is STATUS. Elsewhere the
 * status is STATUS, without a wait, if git could not do the update anyway;
 * EXIT_FATAL if the daemon denies the user; and EXIT_AWAY while refs may await
 * recovery.
 */
void updater_leave_to_git(const struct updater *up, const char *why, int status,
    const struct text *read) __attribute__((noreturn));
void updater_close(struct updater *up);

/*
 * A transaction, from "prepare" (if given) to "commit" or "abort". Reports as
 * the options say. Returns 0, or the status with which the program has to end.
 * Before such a status is returned, a prepared transaction is over.
 */
int updater_prepare(struct updater *up, const struct changes *changes);
int updater_commit(struct updater *up, const struct changes *changes);
void updater_abort(struct updater *up, const struct changes *changes);
/* Aborts the prepared transaction because the program ends with an error. As in
 * git, no hook is called. */
void updater_drop(struct updater *up);

/* Reads commands until the end of input. Returns the exit status. */
int update_stdin(struct updater *up);

/* Prints an error about REF in the words of the form and command. Returns the
 * exit status. */
int update_failed(const struct updater *up, const char *ref,
    const char *detail);

#endif
