/*
 * The messages on the socket as structs, with encoders and decoders for
 * pkt-lines. proto/PROTOCOL.md is normative; this file implements it.
 *
 * Pure functions over bytes: any thread, nothing blocks, nothing logs. A
 * decoder takes one packet at a time. A client must not choose how much memory
 * the daemon uses, so the packet is checked against proto/limits.h before
 * memory is allocated for the content. An unknown verb, header key or update
 * command is an error, and is never ignored.
 *
 * Encoding a decoded message gives the same bytes. Decoding an encoded message
 * gives the same fields, except that an empty text becomes NULL, and an old
 * value that was not given becomes zeroes.
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
	REFD_UPDATE, /* new value; checks an old value if given */
	REFD_CREATE, /* must not exist */
	REFD_DELETE,
	REFD_VERIFY, /* changes nothing */
	REFD_SYMREF_UPDATE,
	REFD_SYMREF_CREATE,
	REFD_SYMREF_DELETE,
	REFD_SYMREF_VERIFY
};

/* From the weakest to the strongest, but journal and batch promise the same. */
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

/* The level of acknowledgement: how far a transaction must be before the daemon
 * answers. Each level includes the promises of all levels before it. */
enum refd_level_kind {
	REFD_LEVEL_DEFAULT, /* the daemon's own */
	REFD_LEVEL_LOCAL,   /* durable on the daemon's machine */
	REFD_LEVEL_LOGGED,  /* the record is in the log of all nodes */
	REFD_LEVEL_HELD,    /* the objects are durable on NODES other nodes */
	REFD_LEVEL_APPLIED  /* the refs can be read on NODES other nodes */
};

struct refd_level {
	enum refd_level_kind kind;
	uint32_t nodes; /* HELD and APPLIED: 1 to REFD_LEVEL_NODES_MAX */
};

/* The update of one ref in a transaction, with NUL-terminated strings. */
struct refd_update {
	enum refd_action action;
	bool no_deref;
	bool has_old; /* old_oid (or old_target) was given */
	const char *name;
	struct refd_oid new_oid;         /* null for delete and verify */
	struct refd_oid old_oid;         /* null: the ref must not exist */
	const char *target, *old_target; /* symref-*; else NULL. An empty old
					    target can't be encoded */
};

/*
 * X(symbol, wire name, class, who may ask, when, kind of the answer, what is
 * lost with the connection). The names of the last five columns are those of
 * proto/verb.h.
 *
 *	TRANSACTION	start to commit in one request
 *	SESSION		start; holds the locks when prepared
 *	COMMIT		of a prepared session, by its txid
 *	CANCEL		of a waiting transaction or session
 *	QUERY		look-up by txid
 *	CHECKPOINT	until nothing answered before needs replay; syncs every
 *			file system, so few accounts may ask
 *	PACK		loose refs of a repository
 *	LOOK		for changes by writers without refd
 *	LOG		past changes of refs
 *	WATCH		changes behind a position; may wait
 *	METRICS		stats in the format of Prometheus
 *	TOP		the recent load
 *	SLOW		the slow log
 *	LOCKS		locks that are held or waited for
 *	PAUSE		begin no further batches
 *	DRAIN		take nothing new; answered when nothing waits
 *	RESUME		end pause and drain
 */
#define REFD_VERB_TABLE(X)                                                     \
	X(TRANSACTION, "transaction", UPDATES, ALL, JOURNAL, RESULTS, OUTCOME) \
	X(SESSION, "session", UPDATES, ALL, JOURNAL, PREPARED, REQUEST)        \
	X(COMMIT, "commit", END, ALL, JOURNAL, RESULTS, COMMIT)                \
	X(ABORT, "abort", END, ALL, JOURNAL, RESULTS, ABORT)                   \
	X(CANCEL, "cancel", TXID, ALL, JOURNAL, RESULTS, NOTHING)              \
	X(QUERY, "query", TXID, ALL, JOURNAL, RESULTS, NOTHING)                \
	X(PING, "ping", PLAIN, ALL, EVER, PONG, NOTHING)                       \
	X(STATUS, "status", PLAIN, ALL, EVER, PAIRS, NOTHING)                  \
	X(STATS, "stats", PLAIN, ALL, EVER, PAIRS, NOTHING)                    \
	X(CHECKPOINT, "checkpoint", PLAIN, OWN, JOURNAL, PAIRS, NOTHING)       \
	X(PACK, "pack", REPO, ALL, JOURNAL, PAIRS, NOTHING)                    \
	X(LOOK, "look", REPO, ALL, JOURNAL, PAIRS, NOTHING)                    \
	X(LOG, "log", LOG, ALL, JOURNAL, RECORDS, NOTHING)                     \
	X(WATCH, "watch", WATCH, ALL, JOURNAL, RECORDS, NOTHING)               \
	X(METRICS, "metrics", PLAIN, ALL, EVER, PAIRS, NOTHING)                \
	X(TOP, "top", PLAIN, ADMIN, EVER, PAIRS, NOTHING)                      \
	X(SLOW, "slow", PLAIN, ADMIN, SERVING, PAIRS, NOTHING)                 \
	X(LOCKS, "locks", PLAIN, ADMIN, SERVING, PAIRS, NOTHING)               \
	X(PAUSE, "pause", PLAIN, ADMIN, SERVING, PAIRS, NOTHING)               \
	X(DRAIN, "drain", PLAIN, ADMIN, SERVING, PAIRS, REQUEST)               \
	X(RESUME, "resume", PLAIN, ADMIN, SERVING, PAIRS, NOTHING)

enum refd_verb {
#define X(symbol, ...) REFD_VERB_##symbol,
	REFD_VERB_TABLE(X)
#undef X
};

/* The number of verbs. */
enum {
#define X(...) +1
	REFD_VERBS = REFD_VERB_TABLE(X)
#undef X
};

/* The phase of git's reference-transaction hook in which the gate asks. */
enum refd_gate {
	REFD_GATE_NONE,
	REFD_GATE_PREPARED,
	REFD_GATE_COMMITTED,
	REFD_GATE_ABORTED,
	/* Not on the wire, because the daemon has found a change on the
	 * disk. */
	REFD_GATE_SEEN
};

/* An environment variable that identifies a user: REMOTE_USER, GL_USER, ... */
struct refd_identity {
	const char *name, *value;
};
/* The value of the first set variable that names a person, borrowed, or NULL.
 * Any thread. */
const char *refd_identity_person(const struct refd_identity *list, size_t nr);

/* A position in history. As a beginning, a position is behind record LSN or, if
 * NR is not 0, behind change NR of this record. As an end, the position is in
 * front of the record or change. */
struct refd_position {
	uint64_t lsn;
	uint32_t nr;
};

#define REFD_JOURNAL_ID_BYTES 16

/* Conditions for the changes in an answer, where zeroes select everything. */
struct refd_selection {
	const char *patterns[REFD_PATTERNS_MAX]; /* at least one matches */
	size_t nr_patterns;
	/* The peer's uid, and the value of an identity variable or its first
	 * word. One match is enough if both are given. */
	bool has_uid;
	uint32_t uid;
	const char *user;
	uint64_t since_ms, until_ms; /* wall clock, inclusive; 0: not given */
	/* The journal of the positions. If it is not the daemon's journal, the
	 * answer has a gap. */
	bool has_journal;
	uint8_t journal[REFD_JOURNAL_ID_BYTES];
	/* Without AFTER, a log begins with the oldest change and a watch
	 * now. */
	bool has_after, has_before;
	struct refd_position after, before;
	uint32_t limit; /* changes in the answer; 0: REFD_CHANGES_MAX */
	bool reverse;   /* LOG: newest first */
	bool all;       /* WATCH: also rejected changes */
	bool origin;    /* the answer has the origins of records */
};

/*
 * A request owns all memory that it points to. A caller may fill in borrowed
 * strings for encoding. refd_request_done() would free these strings, so such a
 * caller must not call it.
 */
struct refd_request {
	enum refd_verb verb;
	uint32_t request_id;   /* the client's choice; unique in flight */
	struct refd_txid txid; /* of the verbs down to QUERY; LOG: selects this
				  transaction, zeroes select any */

	/* TRANSACTION and SESSION. In LOG and WATCH, NULL selects any
	 * repository, and 0 means not known. */
	const char *git_dir; /* absolute; the client's own git-dir */
	uint64_t common_dev, common_ino; /* of the common dir; client's view */
	enum refd_object_format object_format; /* TRANSACTION and SESSION */
	/* TRANSACTION and SESSION: the daemon may have this request, and the
	 * outcome is not known. So librefd asks for the outcome before it sends
	 * the request again. Only librefd sets this, or a program that fills in
	 * its old txid after a restart. False for a new txid. Not sent. */
	bool maybe_sent;

	struct refd_selection select; /* LOG and WATCH only */

	/* Only of TRANSACTION and SESSION, but deadline_ms also of WATCH. */
	bool atomic;
	bool create_reflog;
	bool push;           /* from the hook: refs/ names only */
	enum refd_gate gate; /* git makes the updates itself; TRANSACTION */
	/* Names git's transaction in all phases: 8 bytes for the process of
	 * git, 6 for the transaction, 2 for its part. */
	struct refd_txid gate_key;
	enum refd_durability durability;
	struct refd_level level;
	uint32_t deadline_ms;  /* from arrival; 0: the daemon's default. WATCH:
				  longest wait; 0: REFD_WATCH_MS */
	uint32_t umask;        /* of the client */
	const char *message;   /* reflog message, or NULL */
	const char *committer; /* "Name <mail> seconds zone", or NULL */
	const char *log_all_ref_updates; /* core.logAllRefUpdates as the client
					   resolved it, or NULL for unset */
	const char *trace2_sid;          /* or NULL */
	/* Values of the client's own configuration, if set:
	 * core.sharedRepository, verbatim or NULL; and the longest waits for a
	 * foreign lock (core.filesRefLockTimeout, core.packedRefsTimeout). */
	const char *shared_repository;
	bool has_ref_lock_timeout, has_packed_refs_timeout;
	uint32_t ref_lock_timeout_ms, packed_refs_timeout_ms;
	/* In ascending order of names. */
	struct refd_identity identities[REFD_IDENTITIES_MAX];
	size_t nr_identities;

	struct refd_update *updates;
	size_t nr_updates;

	struct refd_arena *arena; /* owned; internal */
	size_t bytes;             /* decoded: allocated for the content */
	uint64_t digest;          /* decoded: see digest.h */
};

void refd_request_done(struct refd_request *req);
void refd_request_encode(const struct refd_request *req, struct pkt_buf *out);

/* Reads one request, packet by packet. */
struct refd_request_decoder;
struct refd_request_decoder *refd_request_decoder_new(void);
void refd_request_decoder_free(struct refd_request_decoder *dec);
/* Bytes allocated for DEC and for the request so far, or 0 for NULL. */
size_t refd_request_decoder_bytes(const struct refd_request_decoder *dec);

enum refd_decoded {
	REFD_DECODE_MORE, /* needs further packets */
	REFD_DECODE_DONE, /* the message is complete */
	/* The request is refused, but the framing is intact, so the decoder
	 * skips packets up to the flush, then returns REFUSED once. */
	REFD_DECODE_REFUSED,
	REFD_DECODE_FATAL /* out of step or bad answer: hang up */
};

/*
 * DONE: *REQ is complete, and the caller owns it.
 * REFUSED: the reason is in *STATUS and *WHY (static text). req->request_id and
 * req->txid are as received (0 if not received), and the rest is empty. When
 * out of memory, *STATUS is REFD_BUSY. The decoder keeps only the reason and
 * the ids of a refused request.
 * FATAL: the reason is in *WHY. All later calls return FATAL.
 */
enum refd_decoded refd_request_decode(struct refd_request_decoder *dec,
    const struct pkt *pkt, struct refd_request *req, enum refd_status *status,
    const char **why);

/* ---- answers ---- */

/* The result of one ref. */
struct refd_result {
	const char *name;
	enum refd_status status;
	bool has_found;
	struct refd_oid found; /* the value that was found (stale, exists); null
				  oid: no such ref */
	const char *text; /* for people, or a detail (proto/detail.h). NULL: the
			     usual text of the status. At most REFD_MESSAGE_MAX
			     bytes are sent */
};

enum refd_answer_kind {
	REFD_ANSWER_RESULTS,    /* of a transaction */
	REFD_ANSWER_PREPARED,   /* of a session: a result for each update; OK:
				   the lock is held, and the text is the name of
				   the ref to be written if a symbolic ref led
				   to it */
	REFD_ANSWER_PENDING,    /* query: not decided yet */
	REFD_ANSWER_NEVER_SEEN, /* query: safe to send again */
	REFD_ANSWER_EXPIRED,    /* query: older than the horizon */
	REFD_ANSWER_REFUSED,    /* the whole request: status, text */
	REFD_ANSWER_PONG,
	REFD_ANSWER_PAIRS,  /* status, stats, checkpoint, ... */
	REFD_ANSWER_RECORDS /* log, watch: a part of history */
};

/* The writer of the refs of a record. */
enum refd_origin {
	REFD_ORIGIN_REFD,
	REFD_ORIGIN_GATE, /* git, which told refd */
	REFD_ORIGIN_SEEN /* a writer who did not tell: see PROTOCOL.md, Looks */
};

/* The common part of all changes of one record. */
struct refd_record {
	uint64_t lsn;
	uint64_t time_ms; /* since the epoch */
	uint32_t uid;     /* of the client */
	uint64_t pid;
	struct refd_txid txid;
	const char *repo; /* common dir; "": no repository was opened */
	enum refd_object_format object_format; /* of the changes */
	uint64_t voids; /* not 0: takes back changes of this record */
	enum refd_origin origin;
	const char *committer, *message; /* NULL: none */
	struct refd_identity identities[REFD_IDENTITIES_MAX];
	size_t nr_identities;
};

/* The fate of one ref. */
struct refd_change {
	const struct refd_record *record; /* neighbours may share a record */
	uint32_t nr;                      /* from 1, within the record */
	enum refd_status status;
	const char *name;
	bool has_old, has_new;
	/* Null: no such ref. Not given: not known, because the change was
	 * rejected, or (NEW only) because a symbolic ref leads nowhere. */
	struct refd_oid old_oid, new_oid;
	const char *target; /* of the ref, if now symbolic; or NULL */
	const char *text;   /* as in a result, or NULL */
};

struct refd_pair {
	const char *key, *value;
};

struct refd_answer {
	enum refd_answer_kind kind;
	uint32_t request_id;
	struct refd_txid txid; /* RESULTS, PREPARED, PENDING, ... */

	/* RESULTS and PREPARED may be encoded in parts. With is_continued,
	 * parts came before this part, and with goes_on more parts follow. */
	bool is_continued, goes_on;
	struct refd_result *results; /* in input order */
	size_t nr_results;
	enum refd_object_format object_format; /* of the found values */
	/* The number of updates of the transaction. If it is higher than
	 * nr_results, the other updates never happened. */
	size_t nr_updates;
	enum refd_outcome outcome;
	/* RESULTS: the LSN of the token, whose id is in journal, or 0 if
	 * nothing is recorded. */
	uint64_t lsn;
	bool rewrites_packed; /* PREPARED: also rewrites packed-refs */

	enum refd_status status; /* REFUSED */
	const char *text;
	uint32_t retry_after_ms; /* BUSY: when to retry; 0: absent */

	struct refd_pair *pairs;
	size_t nr_pairs;

	/* RECORDS; RESULTS with an LSN: the journal of the LSN */
	uint8_t journal[REFD_JOURNAL_ID_BYTES];
	bool has_gap; /* the answer begins behind GAP, because older changes are
			 gone */
	uint64_t gap;
	struct refd_change *changes; /* grouped by record */
	size_t nr_changes;
	struct refd_position next; /* where to continue */
	bool more;                 /* more changes can be read now */

	struct refd_arena *arena; /* owned; internal */
};

/* "<log id>:<lsn>": the place of a record, in a log. Returns TEXT. */
#define REFD_TOKEN_MAX (2 * REFD_JOURNAL_ID_BYTES + 1 + 20)
char *refd_token_text(const uint8_t journal[REFD_JOURNAL_ID_BYTES],
    uint64_t lsn, char text[REFD_TOKEN_MAX + 1]);

void refd_answer_done(struct refd_answer *ans);
void refd_answer_encode(const struct refd_answer *ans, struct pkt_buf *out);

/* The longest answer to a request with NR_UPDATES updates, in bytes with the
 * length digits of the packets. */
size_t refd_answer_bytes_max(size_t nr_updates);

struct refd_answer_decoder;
struct refd_answer_decoder *refd_answer_decoder_new(void);
void refd_answer_decoder_free(struct refd_answer_decoder *dec);
/* The bytes of the answer so far, and the *REQUEST_ID of the request, or 0. The
 * caller knows the request, and therefore the longest answer. */
size_t refd_answer_decoder_bytes(const struct refd_answer_decoder *dec,
    uint32_t *request_id);
/* A client can't continue with a server that it misunderstands, so this
 * function never returns REFUSED. */
enum refd_decoded refd_answer_decode(struct refd_answer_decoder *dec,
    const struct pkt *pkt, struct refd_answer *ans, const char **why);

/* ---- hello, the first message of the server ---- */

enum refd_server_state { REFD_RECOVERING, REFD_SERVING, REFD_DRAINING };

const char *refd_server_state_name(enum refd_server_state state);

struct refd_hello {
	uint32_t version;
	enum refd_server_state state;
	uint64_t horizon_ms; /* ids with an earlier birth time are expired */
	uint64_t pid;
	uint32_t max_updates;
	uint32_t max_bytes;
	/* While recovering: examined records and repositories, and the total.
	 * TOTAL is 0 if hello had no progress. */
	uint64_t done, total;
	char software[64]; /* "refd/0.1" */
};

void refd_hello_encode(const struct refd_hello *hello, struct pkt_buf *out);

/*
 * A zero-initialised decoder is ready for a hello, and so is a decoder after
 * DONE. It holds nothing to free. The decoder ignores lines with unknown words,
 * and *HELLO is complete only with DONE. The decoder accepts any version, so
 * the caller must check the version (PROTOCOL.md, "Versions").
 */
struct refd_hello_decoder {
	bool begun;
	unsigned seen; /* internal: the lines received */
	size_t bytes;  /* internal: at most REFD_HELLO_BYTES_MAX */
};
enum refd_decoded refd_hello_decode(struct refd_hello_decoder *dec,
    const struct pkt *pkt, struct refd_hello *hello, const char **why);

#endif
