/*
 * One write: a connection to the daemon, and a transaction or session.
 *
 *	request_open -> request_add -> request_transact
 *				    \-> request_prepare -> request_commit
 *	request_close		always, also after a failed request_open
 *
 * Functions that return int return 0 or a code of refd_git2.h, with the message
 * set. One thread at a time; they block, all together for up to 40 s.
 */
#ifndef CLIENT_LIBGIT2_REQUEST_H
#define CLIENT_LIBGIT2_REQUEST_H

#include <stdbool.h>

#include "client/libgit2/backend.h"
#include "client/refd.h"

#define REQUEST_UPDATES_MAX 2

struct request {
	struct refd *daemon;
	const char *socket; /* of DAEMON; borrowed */
	struct refd_request req;
	struct refd_update updates[REQUEST_UPDATES_MAX];
	git_config *config; /* owns strings of req */
	char *committer, *message;
	uint64_t deadline_ms;
	bool is_prepared; /* the daemon holds the locks */
};

/* Connects. WHO may be NULL: the identity of the repository. */
int request_open(struct request *r, const struct backend *be,
    const git_signature *who, const char *message);
/* The update borrows NAME, and does not follow symbolic refs. */
struct refd_update *request_add(struct request *r, enum refd_action action,
    const char *name);
void request_set_oid(struct refd_oid *oid, const git_oid *from);

int request_transact(struct request *r);
/* Takes the locks of all refs, which last until
 * request_commit(), request_release() or request_close(). */
int request_prepare(struct request *r);
int request_commit(struct request *r);
/* Releases the locks; allowed in any state. */
void request_release(struct request *r);
void request_close(struct request *r);

#endif
