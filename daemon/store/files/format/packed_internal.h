/*
 * Shared by packed.c, packed_search.c, packed_stream.c and packed_rewrite.c.
 * Rules as in packed.h.
 */
#ifndef STORE_PACKED_INTERNAL_H
#define STORE_PACKED_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/base/mutex.h"
#include "daemon/store/files/format/packed.h"

#define PACKED_FILE "packed-refs"
#define PACKED_NEW  "packed-refs.new"

/* A line is "<hex> SP <name> LF"; a peeled line "^<hex> LF" may follow, and
 * both are one record. */
/* A longer record is malformed, so every run of PACKED_BLOCK bytes with records
 * contains the start of a record. */
#define PACKED_RECORD_MAX 4096
#define PACKED_BLOCK      PACKED_RECORD_MAX
#define PACKED_HEADER_MAX 1024

struct packed_search;

struct packed_snapshot {
	atomic_uint holders;
	const struct sys *sys;
	enum refd_object_format format;
	int fd;             /* pins the inode; -1: there is no file */
	struct sys_stat st; /* of fd */
	char *text;         /* read whole, and sorted; NULL: read from fd */
	size_t size;
	size_t header_len; /* with its LF; 0: no header */
	char header[PACKED_HEADER_MAX];
	bool is_fully_peeled;
	struct packed_search *search; /* NULL: there are no records */
};

/* A file replaced by a rewrite of ours. */
struct packed_retired {
	int fd;
	int64_t until_ns; /* monotonic */
};

struct packed {
	const struct sys *sys;
	int dirfd;
	const enum refd_object_format *format; /* borrowed */

	struct mutex lock; /* guards the members below, up to new_fd */
	struct packed_snapshot *cache;
	struct packed_retired *retired;
	size_t nr_retired, room_retired;
	struct sys_stat own;    /* of the last file of a rewrite; ino 0: none */
	atomic_bool is_foreign; /* packed_take_foreign() */
	bool rewriting;
	bool turn_taken;
	int64_t turn_since_ns;
	pthread_cond_t turn_given;

	/* Only for the caller who set REWRITING, by taking packed-refs.lock, so
	 * without LOCK. */
	int new_fd; /* of packed-refs.new */
	int replaced_fd;
};

struct packed_record {
	const char *start, *name; /* borrowed; the name has no NUL */
	size_t name_len, len;     /* LEN with the peeled line */
};

/* Parses the record at P. AVAILABLE bytes follow: the rest of the file, or at
 * least PACKED_RECORD_MAX. 0, -EBADMSG. */
int packed_record(const char *p, size_t available,
    enum refd_object_format format, struct packed_record *rec);
/* strcmp() of REC's name and KEY. */
int packed_record_order(const struct packed_record *rec, const char *key);

/* Reads LEN bytes of SNAP at AT, fewer at the end. The number of bytes, or
 * negative errno: -EBADMSG: the file has become shorter. */
ssize_t packed_read(const struct packed_snapshot *snap, void *buf, size_t len,
    size_t at);

/* packed_search.c */
struct packed_search *packed_search_new(const struct packed_snapshot *snap);
void packed_search_free(struct packed_search *search);

/*
 * packed_stream.c: all records of a snapshot, in order, with memory for two
 * blocks. A stream belongs to one thread.
 */
struct packed_stream {
	const struct packed_snapshot *snap;
	char *buf;
	size_t at;         /* position of the next read in the file */
	size_t from, have; /* unread part of BUF */
};

/* 0, -ENOMEM. */
int packed_stream_init(struct packed_stream *stream,
    const struct packed_snapshot *snap);
/* 1: REC is the next record, until the next call. 0 at the end; -EBADMSG. */
int packed_stream_next(struct packed_stream *stream, struct packed_record *rec);
void packed_stream_done(struct packed_stream *stream);

#endif
