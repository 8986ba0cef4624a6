/*
 * The work of the clients of a load, for refd and for its competitors. Pure;
 * any thread.
 */
#ifndef TESTS_BENCH_JOB_H
#define TESTS_BENCH_JOB_H

#include "proto/oid.h"

/* A prefix has at most half of this length. */
#define JOB_NAME_MAX 160

enum job_action {
	JOB_CREATE, /* creates new refs <prefix>/<client>/<nr>-<i> */
	JOB_DELETE, /* deletes the refs of JOB_CREATE */
	JOB_MOVE,   /* moves the client's refs <prefix>/<client>/<i> */
	JOB_SWAP    /* moves <prefix>/same to the next value */
};

struct job {
	enum job_action action;
	unsigned refs; /* per transaction */
	const char *prefix;
	/* A git directory. If REPOS is not 0: the directory of 0.git, 1.git and
	 * so on, which the clients use in turn. */
	const char *repo;
	unsigned repos;
	/* The refs move through these values in a circle. */
	enum refd_object_format object_format;
	const struct refd_oid *oids;
	unsigned nr_oids;
};

/* -1: unknown name. */
int job_action_from_name(const char *name, enum job_action *action);
/* The name of ref I in transaction NR. */
void job_name(const struct job *job, unsigned client, unsigned nr, unsigned i,
    char name[JOB_NAME_MAX]);
/* The git directory of CLIENT; owned by the caller. */
char *job_repo(const struct job *job, unsigned client);
/* The value to which transaction NR of a client moves the client's refs. */
const struct refd_oid *job_value(const struct job *job, unsigned nr);
/* The value after OID, or the first value if OID is none of them. */
const struct refd_oid *job_next(const struct job *job,
    const struct refd_oid *oid);

#endif
