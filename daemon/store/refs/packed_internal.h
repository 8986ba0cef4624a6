/*
 * Between packed.c and packed_rewrite.c. As packed.h has it.
 */
#ifndef STORE_PACKED_INTERNAL_H
#define STORE_PACKED_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/store/refs/packed.h"

#define PACKED_FILE "packed-refs"
#define PACKED_NEW  "packed-refs.new"

/* A line is "<hex> SP <name> LF"; one that follows it "^<hex> LF". */
#define PACKED_NAME_AT    (REFD_OID_HEX + 1)
#define PACKED_PEELED_LEN (1 + REFD_OID_HEX + 1)

struct packed_snapshot {
	atomic_uint holders;
	const struct sys *sys;
	int fd;             /* pins the inode; -1: there is no file */
	struct sys_stat st; /* of fd */
	char *buf;          /* the file, but each name ends with a NUL */
	size_t len;
	size_t header_len;  /* with its LF; 0: none */
	const char **names; /* into buf, sorted by bytes */
	size_t nr;
};

/* A file that a rewrite of ours replaced. */
struct packed_retired {
	int fd;
	int64_t until_ns; /* monotonic */
};

struct packed {
	const struct sys *sys;
	int dirfd;

	pthread_mutex_t lock; /* of what follows, up to next */
	struct packed_snapshot *cache;
	struct packed_retired *retired;
	size_t nr_retired, room_retired;
	bool rewriting;
	bool turn_taken;
	int64_t turn_since_ns;
	pthread_cond_t turn_given;

	/* Whoever made it REWRITING, which takes packed-refs.lock, alone. */
	struct packed_snapshot *next; /* what packed-refs.new holds */
	int replaced_fd;
};

/* One holder, no file, nothing in it. NULL: out of memory. */
struct packed_snapshot *packed_snapshot_new(const struct sys *sys);

/* Checks SNAP's buf, which holds LEN bytes and a NUL, and fills in the rest.
 * -EBADMSG, -ENOMEM. */
int packed_parse(struct packed_snapshot *snap);

/* The end of the record that NAME, one of SNAP's, stands in: behind its line
 * and the peeled one, if there is one. */
const char *packed_record_end(const struct packed_snapshot *snap,
    const char *name);

#endif
