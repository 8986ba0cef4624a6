/*
 * What is said on the socket, as structs, and both directions of turning
 * them into pkt-lines. proto/PROTOCOL.md is normative; this is its code.
 *
 * Pure functions over bytes: any thread, nothing blocks, nothing logs. A
 * decoder takes one packet at a time, checks it against proto/limits.h
 * before it allocates for it, and rejects what it does not know: an unknown
 * verb, header key or update command is an error, never skipped.
 * Encoding what was decoded gives the same bytes, and the other way round.
 * (What has no bytes of its own comes back in its one form: an empty text
 * as NULL, an old value not given as zeroes.)
 */
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/oid.h"
#include "proto/pktline.h"
#include "proto/status.h"
#include "proto/txid.h"

enum refd_action {
	REFD_UPDATE, /* new value; old value checked when given */
	REFD_CREATE, /* must not exist */
	REFD_DELETE,
	REFD_VERIFY, /* changes nothing */
	REFD_SYMREF_UPDATE,
	REFD_SYMREF_CREATE,
	REFD_SYMREF_DELETE,
	REFD_SYMREF_VERIFY
};

/* From the weakest to the strongest; journal and batch promise the same. */
enum refd_durability {
	REFD_DURABILITY_DEFAULT, /* the daemon's own */
	REFD_DURABILITY_NONE,
	REFD_DURABILITY_PERIODIC,
	REFD_DURABILITY_JOURNAL,
	REFD_DURABILITY_BATCH,
	REFD_DURABILITY_FSYNC
};

/* "default", "none", ...; 0 or -1 */
const char *refd_durability_name(enum refd_durability d);
int refd_durability_from_name(const char *name, enum refd_durability *d);

/* How far a transaction must be before it is answered. Each level has what
 * those before it promise. */
enum refd_level_kind {
	REFD_LEVEL_DEFAULT, /* the daemon's own */
	REFD_LEVEL_LOCAL,   /* durable on the daemon's machine */
	REFD_LEVEL_LOGGED,  /* its record is in the log of the group */
	REFD_LEVEL_HELD,    /* its objects are durable on NODES other nodes */
	REFD_LEVEL_APPLIED  /* its refs can be read on NODES other nodes */
};

struct refd_level {
	enum refd_level_kind kind;
	uint32_t nodes; /* HELD and APPLIED: 1 to REFD_LEVEL_NODES_MAX */
};

/* One ref's share of a transaction. Strings are NUL-terminated. */
struct refd_update {
	enum refd_action action;
	bool no_deref;
	bool has_old; /* old_oid (or old_target) was given */
	const char *name;
	struct refd_oid new_oid;         /* null oid for delete and verify */
	struct refd_oid old_oid;         /* null oid: must not exist */
	const char *target, *old_target; /* symref-*; else NULL */
};

enum refd_verb {
	REFD_VERB_TRANSACTION, /* start to commit in one go */
	REFD_VERB_SESSION, /* start: like a transaction, held when prepared */
	REFD_VERB_COMMIT,  /* of a prepared session, by its txid */
	REFD_VERB_ABORT,
	REFD_VERB_CANCEL, /* of a transaction still waiting, by its txid */
	REFD_VERB_QUERY,  /* look-up by txid */
	REFD_VERB_PING,
	REFD_VERB_STATUS,
	REFD_VERB_STATS,
	REFD_VERB_CHECKPOINT, /* until nothing answered before needs replay */
	REFD_VERB_LOG,        /* what happened to refs */
	REFD_VERB_WATCH,      /* ... and what will, waiting for it */
	REFD_VERB_METRICS,    /* stats, as Prometheus reads them */
	/* An administrator's, on a socket of their own. */
	REFD_VERB_TOP,   /* what was busy in the last moments */
	REFD_VERB_SLOW,  /* the slow log */
	REFD_VERB_LOCKS, /* who waits for which lock */
	REFD_VERB_PAUSE, /* no further windows */
	REFD_VERB_DRAIN, /* nothing new; answered when nothing waits */
	REFD_VERB_RESUME /* as if there had been neither */
};

/* An environment variable that says who: REMOTE_USER, GL_USER, ... */
struct refd_identity {
	const char *name, *value;
};

/* A place in history. As a beginning: behind everything of record LSN, or,
 * where NR is not 0, behind its change NR. As an end: in front of that. */
struct refd_position {
	uint64_t lsn;
	uint32_t nr;
};

#define REFD_JOURNAL_ID_BYTES 16

/* What is asked of history; zeroes ask for everything. */
struct refd_selection {
	const char *patterns[REFD_PATTERNS_MAX]; /* any of them */
	size_t nr_patterns;
	/* Either of them, where both are given: the peer's uid; the value of
	 * an identity variable, or its first word. */
	bool has_uid;
	uint32_t uid;
	const char *user;
	uint64_t since_ms, until_ms; /* wall clock, inclusive; 0: not given */
	/* What the positions are of; another one's are a gap. */
	bool has_journal;
	uint8_t journal[REFD_JOURNAL_ID_BYTES];
	/* AFTER left out: a log begins with the oldest, a watch now. */
	bool has_after, has_before;
	struct refd_position after, before;
	uint32_t limit; /* changes in the answer; 0: REFD_CHANGES_MAX */
	bool reverse;   /* LOG: the newest first */
	bool all;       /* WATCH: what was rejected, too */
};

/*
 * A request. Owns everything it points to; the caller may fill one in with
 * borrowed strings to encode it, but then must not refd_request_done() it.
 */
struct refd_request {
	enum refd_verb verb;
	uint32_t request_id;   /* the client's; unique while in flight */
	struct refd_txid txid; /* of the verbs down to query; of a LOG: that
				  transaction's, zeroes for any */

	/* TRANSACTION and SESSION; of LOG and WATCH: NULL for any, and
	 * 0 for not known. */
	const char *git_dir; /* absolute; the client's own git-dir */
	uint64_t common_dev, common_ino; /* of its common dir, as client sees */
	enum refd_object_format object_format; /* TRANSACTION and SESSION */

	struct refd_selection select; /* LOG and WATCH only */

	/* TRANSACTION and SESSION only; but the deadline: of WATCH, too. */
	bool atomic;
	bool create_reflog;
	bool push; /* from the hook: refs/ names only */
	enum refd_durability durability;
	struct refd_level level;
	uint32_t deadline_ms;  /* from arrival; 0: the daemon's default. WATCH:
				  how long it waits; 0: REFD_WATCH_MS */
	uint32_t umask;        /* the client's */
	const char *message;   /* reflog message, or NULL */
	const char *committer; /* "Name <mail> seconds zone", or NULL */
	const char *log_all_ref_updates; /* core.logAllRefUpdates as the client
					   resolved it, or NULL for unset */
	const char *trace2_sid;          /* or NULL */
	/* What the client's own configuration says, where it says anything:
	 * core.sharedRepository as it stands there, or NULL; how long another's
	 * lock is waited for (core.filesRefLockTimeout,
	 * core.packedRefsTimeout). */
	const char *shared_repository;
	bool has_ref_lock_timeout, has_packed_refs_timeout;
	uint32_t ref_lock_timeout_ms, packed_refs_timeout_ms;
	/* By their names, ascending. */
	struct refd_identity identities[REFD_IDENTITIES_MAX];
	size_t nr_identities;

	struct refd_update *updates;
	size_t nr_updates;

	struct refd_arena *arena; /* owned; internal */
	size_t bytes;             /* decoded: allocated for what it points to */
	uint64_t digest;          /* decoded: of what it asks for (digest.h) */
};

void refd_request_done(struct refd_request *req);
void refd_request_encode(const struct refd_request *req, struct pkt_buf *out);

/* Reads one request, packet by packet. */
struct refd_request_decoder;
struct refd_request_decoder *refd_request_decoder_new(void);
void refd_request_decoder_free(struct refd_request_decoder *dec);
/* The bytes that are allocated for DEC and the request so far; 0 of NULL. */
size_t refd_request_decoder_bytes(const struct refd_request_decoder *dec);

enum refd_decoded {
	REFD_DECODE_MORE, /* needs further packets */
	REFD_DECODE_DONE, /* a whole message is there */
	/* The message can't be taken, the framing is intact: packets are
	 * skipped up to its flush, then REFUSED is returned once. */
	REFD_DECODE_REFUSED,
	REFD_DECODE_FATAL /* nothing sensible can follow: hang up */
};

/*
 * DONE: *REQ is filled in and owned by the caller. REFUSED: req->request_id
 * and req->txid are what they were (0 if they never came), the rest is
 * empty; *STATUS and *WHY (static text) say why. FATAL: *WHY; the decoder
 * says nothing else from then on. Out of memory is REFUSED with REFD_BUSY.
 * Nothing but the reason and the id is kept of a request that is refused.
 */
enum refd_decoded refd_request_decode(struct refd_request_decoder *dec,
    const struct pkt *pkt, struct refd_request *req, enum refd_status *status,
    const char **why);

/* ---- answers ---- */

/* One ref's result. */
struct refd_result {
	const char *name;
	enum refd_status status;
	bool has_found;
	struct refd_oid found; /* the value that was there (stale, exists);
				   null oid: no such ref */
	const char *text; /* for people, or a detail (proto/detail.h). NULL:
				   the status's own; REFD_MESSAGE_MAX bytes of
				   it are sent */
};

enum refd_answer_kind {
	REFD_ANSWER_RESULTS,    /* a transaction's, or query's "done" */
	REFD_ANSWER_PREPARED,   /* of a session: a result for each update, OK
				   where its lock is held; the text of such a
				   one is the name of the ref that will be
				   written, where a symbolic ref led to it */
	REFD_ANSWER_PENDING,    /* query: not decided yet */
	REFD_ANSWER_NEVER_SEEN, /* query: may be sent again */
	REFD_ANSWER_EXPIRED,    /* query: older than the horizon */
	REFD_ANSWER_REFUSED,    /* the request as a whole: status, text */
	REFD_ANSWER_PONG,
	REFD_ANSWER_PAIRS,  /* status, stats, checkpoint: key value lines */
	REFD_ANSWER_RECORDS /* log, watch: some of history */
};

/* What the changes of one record have in common. */
struct refd_record {
	uint64_t lsn;
	uint64_t time_ms; /* wall clock */
	uint32_t uid;     /* the peer's */
	uint64_t pid;
	struct refd_txid txid;
	const char *repo; /* its common dir; "": none was opened */
	enum refd_object_format object_format; /* of its changes */
	uint64_t voids; /* not 0: takes changes of that record back */
	const char *committer, *message; /* NULL: none */
	struct refd_identity identities[REFD_IDENTITIES_MAX];
	size_t nr_identities;
};

/* What became of one ref. */
struct refd_change {
	const struct refd_record *record; /* the same for neighbours */
	uint32_t nr;                      /* 1..., within the record */
	enum refd_status status;
	const char *name;
	bool has_old, has_new;
	/* Null: no such ref. Not given: not known, of a rejection; of NEW, a
	 * symbolic ref that leads nowhere, too. */
	struct refd_oid old_oid, new_oid;
	const char *target; /* it is a symbolic ref now, to this; or NULL */
	const char *text;   /* as in a result, or NULL */
};

struct refd_pair {
	const char *key, *value;
};

struct refd_answer {
	enum refd_answer_kind kind;
	uint32_t request_id;
	struct refd_txid txid; /* RESULTS, PREPARED, PENDING, ... */

	/* RESULTS and PREPARED may be encoded in parts, each with some of the
	 * results: there was one before this, or will be one behind it. */
	bool is_continued, goes_on;
	struct refd_result *results; /* in input order */
	size_t nr_results;
	enum refd_object_format object_format; /* of what they found */
	/* Of the transaction; more than nr_results: the rest never happened. */
	size_t nr_updates;
	enum refd_outcome outcome;
	/* Of RESULTS, with the journal below: its token. 0: nothing is
	 * journaled. */
	uint64_t lsn;
	bool rewrites_packed; /* PREPARED: packed-refs will be, too */

	enum refd_status status; /* REFUSED */
	const char *text;
	uint32_t retry_after_ms; /* with BUSY: not before; 0: not said */

	struct refd_pair *pairs;
	size_t nr_pairs;

	/* RECORDS; of RESULTS, with an LSN: whose that is */
	uint8_t journal[REFD_JOURNAL_ID_BYTES];
	bool has_gap; /* what was asked for begins before what is there, which
			 is what follows GAP */
	uint64_t gap;
	struct refd_change *changes; /* grouped by their records */
	size_t nr_changes;
	struct refd_position next; /* to go on from */
	bool more;                 /* at once */

	struct refd_arena *arena; /* owned; internal */
};

/* "<log id>:<lsn>": the place of a record, in a log. Returns TEXT. */
#define REFD_TOKEN_MAX (2 * REFD_JOURNAL_ID_BYTES + 1 + 20)
char *refd_token_text(const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    uint64_t lsn, char text[REFD_TOKEN_MAX + 1]);

void refd_answer_done(struct refd_answer *ans);
void refd_answer_encode(const struct refd_answer *ans, struct pkt_buf *out);

struct refd_answer_decoder;
struct refd_answer_decoder *refd_answer_decoder_new(void);
void refd_answer_decoder_free(struct refd_answer_decoder *dec);
/* Never REFUSED: a client can't go on with a server it misunderstands. */
enum refd_decoded refd_answer_decode(struct refd_answer_decoder *dec,
    const struct pkt *pkt, struct refd_answer *ans, const char **why);

/* ---- hello, the server's first words ---- */

enum refd_server_state { REFD_RECOVERING, REFD_SERVING, REFD_DRAINING };

const char *refd_server_state_name(enum refd_server_state state);

struct refd_hello {
	uint32_t version;
	enum refd_server_state state;
	uint64_t horizon_ms; /* ids born before it are expired */
	uint64_t pid;
	uint32_t max_updates;
	uint32_t max_bytes;
	/* Recovering: so many of so many records and repositories were looked
	 * at. TOTAL 0: it did not say. */
	uint64_t done, total;
	char software[64]; /* "refd/0.1" */
};

void refd_hello_encode(const struct refd_hello *hello, struct pkt_buf *out);

/*
 * Zero-initialised is ready, and so it is again after DONE; holds nothing to
 * free. A line it does not know is passed over: hello alone is open to what
 * comes later. *HELLO is filled in as the lines come, and whole with DONE.
 * Any version is let through; whether to go on with it is the caller's to
 * say (PROTOCOL.md, "Versions").
 */
struct refd_hello_decoder {
	bool begun;
	unsigned seen; /* internal: the lines that came */
};
enum refd_decoded refd_hello_decode(struct refd_hello_decoder *dec,
    const struct pkt *pkt, struct refd_hello *hello, const char **why);

#endif
