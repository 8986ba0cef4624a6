/*
 * What follows from the verb of a request. Both sides read the same rows.
 *
 * A new verb is the last row of REFD_VERB_TABLE (message.h), because librefd
 * has the numbers, and the last row of verbs[] in daemon/server/requests.c. A
 * short handler stands there too; admin.c has the verbs of administrators.
 * Hello has a capability for a verb unless WHO is ADMIN. PROTOCOL.md has the
 * verb in "Requests" and in the list of capabilities, which python.sh compares,
 * and tests/lib/message_vectors.c has a request. The generated files are those
 * of status.h. In the other languages, a verb whose answer has pairs needs no
 * code. client/commands.h tells what a command needs.
 *
 * A pure table; any thread; nothing blocks or allocates.
 */
#ifndef PROTO_VERB_H
#define PROTO_VERB_H

#include "proto/message.h"

/* What a request names, and so which headers it takes. */
enum refd_verb_class {
	REFD_CLASS_UPDATES, /* updates, and an id for them */
	REFD_CLASS_END,     /* a session that ends, by its id */
	REFD_CLASS_TXID,    /* a transaction, by its id */
	REFD_CLASS_REPO,    /* a repository */
	REFD_CLASS_LOG,     /* past changes */
	REFD_CLASS_WATCH,   /* changes behind a position */
	REFD_CLASS_PLAIN    /* nothing */
};

enum refd_verb_who {
	REFD_WHO_ALL,  /* who can connect */
	REFD_WHO_OWN,  /* root, or the daemon's own account */
	REFD_WHO_ADMIN /* who can connect to the socket for administration */
};

enum refd_verb_when {
	REFD_WHEN_EVER,
	REFD_WHEN_JOURNAL, /* not before the end of recovery */
	REFD_WHEN_SERVING  /* and not while the daemon stops */
};

/* What is lost with the connection, if a request was sent and the answer has
 * not come. */
enum refd_verb_loss {
	REFD_LOSS_NOTHING, /* so the request can be sent again */
	REFD_LOSS_OUTCOME, /* the request may be done, so ask by its id */
	REFD_LOSS_REQUEST, /* it has ended, and must not begin again */
	/* A session ends with its connection. So the commit is either done, or
	 * can't come any more. */
	REFD_LOSS_COMMIT,
	REFD_LOSS_ABORT /* likewise, but a commit may have been sent before */
};

struct refd_verb_row {
	const char *word;
	enum refd_verb_class class;
	enum refd_verb_who who;
	enum refd_verb_when when;
	enum refd_answer_kind answer; /* unless it fails */
	enum refd_verb_loss loss;
};

extern const struct refd_verb_row refd_verbs[REFD_VERBS];

bool refd_verb_has_updates(enum refd_verb verb);

#endif
