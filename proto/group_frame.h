/*
 * The frames between the daemon and refd-group, on the socket
 * <state>/group.sock (docs/group-internals.md). libpq would bring the
 * network, TLS and look-ups of names into the process with all rights on the
 * repositories, so refd-group is a program of its own.
 *
 * A frame has a length (4 bytes: the bytes of type and body), a type (1 byte),
 * and a body. Numbers are little-endian. A string or an array begins with its
 * number of bytes or elements (4 bytes). Frames of a side in their order:
 *
 *	daemon	HELLO, then BATCH, HOLD, APPLIED, FOLLOWS, STOP in any order
 *	group	ROLE as a follower, ROW for each row that the node lacks, ROLE,
 *		then ROLE, ROW, COMMITTED, REFUSED, DOUBTFUL, HELD, NOT_HELD,
 *		CURRENT, NEAR in any order
 *
 * Pure functions over bytes; any thread; nothing blocks. Only
 * group_frame_decode() allocates, and only in the arena of the caller.
 */
#ifndef PROTO_GROUP_FRAME_H
#define PROTO_GROUP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/arena.h"
#include "proto/oid.h"
#include "proto/txid.h"

#define GROUP_FRAME_VERSION 1
#define GROUP_FRAME_HEAD    5 /* bytes of length and type */
/* Bytes of the whole frame. */
#define GROUP_FRAME_MAX (16 * 1024 * 1024)
/* Bytes of path, record and objects, so that every row fits into ROW. */
#define GROUP_ROW_MAX    (GROUP_FRAME_MAX - 1024)
#define GROUP_UUID_BYTES 16
#define GROUP_PATH_MAX   4095 /* bytes */
#define GROUP_NAME_MAX   64   /* letters, digits, and "._-" */
#define GROUP_TEXT_MAX   1024 /* bytes, without control characters */

enum group_frame_type {
	/* from the daemon */
	GROUP_HELLO = 1,
	GROUP_BATCH,
	GROUP_HOLD,
	GROUP_APPLIED,
	GROUP_STOP,
	GROUP_FOLLOWS,
	/* from refd-group */
	GROUP_ROLE = 65,
	GROUP_COMMITTED,
	GROUP_REFUSED,
	GROUP_DOUBTFUL,
	GROUP_ROW,
	GROUP_HELD,
	GROUP_NOT_HELD,
	GROUP_CURRENT,
	GROUP_NEAR
};

enum group_frame_side { GROUP_FROM_DAEMON, GROUP_FROM_GROUP };

struct group_bytes {
	const uint8_t *data; /* borrowed */
	size_t len;
};

/* One row of the group's log. */
struct group_row {
	uint8_t id[GROUP_UUID_BYTES]; /* random, new for every row */
	uint8_t repo[GROUP_UUID_BYTES];
	struct refd_txid txid;
	uint32_t uid;
	uint64_t time_ms; /* since 1970 */
	bool is_final;    /* the last row of its transaction */
	/* The repository, below the root of the node: group_frame_is_path(). */
	struct group_bytes path;
	struct group_bytes record;
	/* Objects that other nodes may lack
	 * (daemon/store/objects/row_objects.h); can be empty. */
	struct group_bytes objects;
};

/* LSNs and epochs are at most INT64_MAX, as in PostgreSQL. */
struct group_frame {
	enum group_frame_type type;
	union {
		struct {
			uint32_t version; /* GROUP_FRAME_VERSION */
			/* Zeros: the node does not know its group yet. */
			uint8_t group[GROUP_UUID_BYTES];
			char node[GROUP_NAME_MAX + 1];
			uint64_t applied; /* all rows up to it are applied */
			uint64_t last;    /* the last one that the node has */
		} hello;
		struct {
			uint64_t number; /* chosen by the daemon */
			/* The daemon has looked for the ids of the transactions
			 * in this epoch, so the batch is refused in a different
			 * one. */
			uint64_t epoch;
			const struct group_row *rows; /* at least one */
			size_t nr;
		} batch;
		/* Followers must hold the objects before a batch needs them.
		 * HELD or NOT_HELD follows. */
		struct {
			uint64_t number; /* chosen by the daemon */
			uint8_t repo[GROUP_UUID_BYTES];
			struct group_bytes path; /* as in a row */
			/* The leader has just made the uuid, so no node has the
			 * repository at another path. */
			bool is_new;
			/* True: this node needs the objects itself. False:
			 * other nodes shall hold the objects. */
			bool is_fetch;
			enum refd_object_format object_format;
			/* None: followers only need the repository. No id is
			 * null. */
			const struct refd_oid *oids;
			size_t nr_oids;
			/* Objects that followers have, for the negotiation, or
			 * none. */
			const struct refd_oid *bases;
			size_t nr_bases;
		} hold;
		/* As in HELLO. A row between the two can wait. */
		struct {
			uint64_t lsn;
			uint64_t last;
		} applied;
		/* After ROLE of a follower, with its epoch: the daemon sends no
		 * batch of an earlier ROLE, and answers for no id. */
		struct {
			uint64_t epoch;
		} follows;
		struct {
			bool is_leader;
			uint64_t epoch;
			uint64_t lsn; /* the last one in the log */
			uint8_t group[GROUP_UUID_BYTES];
			char leader[GROUP_NAME_MAX + 1]; /* a node */
		} role;
		/* The rows of the batch have consecutive LSNs. */
		struct {
			uint64_t number;
			uint64_t lsn; /* of the first row */
		} committed;
		/* REFUSED: the rows are not in the log, and will never be.
		 * DOUBTFUL: COMMITTED or REFUSED of this batch follows.
		 * NOT_HELD: followers may have a part of the objects. */
		struct {
			uint64_t number;
			char reason[GROUP_TEXT_MAX + 1];
		} refused, doubtful, not_held;
		/* At least group.held followers have the objects of HOLD,
		 * and all that these objects reach. */
		struct {
			uint64_t number;
		} held;
		/* At least group.held other nodes were seen in the last
		 * seconds, and have applied the rows up to this LSN. */
		struct {
			uint64_t lsn;
		} near;
		/* In the order of LSNs, without a gap; always proven. */
		struct {
			uint64_t lsn;
			uint64_t epoch;
			struct group_row row;
		} row;
		/* The daemon has every row that existed before this time, in
		 * milliseconds of CLOCK_BOOTTIME. To a leader: the end of the
		 * lease, as no other node writes before. */
		struct {
			uint64_t ms;
		} current;
	};
};

/*
 * Looks for a frame at the front of DATA. Returns the length of the whole
 * frame, 0 if more input is needed, or -1 if the bytes can never become a frame
 * of the side FROM. A wrong length or type is rejected as soon as its bytes are
 * there.
 */
long group_frame_parse(const uint8_t *data, size_t len,
    enum group_frame_side from);

/*
 * Decodes the frame in DATA, whose LEN group_frame_parse() returned. Paths,
 * records and objects are borrowed from DATA, arrays of rows and of ids from
 * ARENA. Returns NULL, or the reason for rejecting, a static text; then FRAME
 * is undefined.
 */
const char *group_frame_decode(const uint8_t *data, size_t len,
    struct refd_arena *arena, struct group_frame *frame);

/* Length of the whole encoded FRAME, or 0 if FRAME is too long or has a value
 * that group_frame_decode() would reject. */
size_t group_frame_bytes(const struct group_frame *frame);
/* OUT has room for group_frame_bytes(), which is not 0. */
void group_frame_encode(const struct group_frame *frame, uint8_t *out);

/* Is NAME the name of a node or of a group? */
bool group_frame_is_name(const char *name);
/* Is PATH a path below a root: 1 to GROUP_PATH_MAX bytes without NUL, whose
 * components are not empty, "." or ".."? */
bool group_frame_is_path(struct group_bytes path);
/* Copies TEXT as a reason, cut, and with spaces for control characters. */
void group_frame_reason(char reason[GROUP_TEXT_MAX + 1], const char *text);

#endif
