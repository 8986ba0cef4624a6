/*
 * What the clients of a load do with refs, said once for whoever they do it
 * with. Pure; any thread.
 */
#ifndef CLIENT_BENCH_JOB_H
#define CLIENT_BENCH_JOB_H

#include "proto/oid.h"

/* A prefix has half of it. */
#define JOB_NAME_MAX 160

enum job_action {
	JOB_CREATE, /* new refs each time, <prefix>/<client>/<nr>-<i> */
	JOB_DELETE, /* those */
	JOB_MOVE,   /* the client's own, <prefix>/<client>/<i>, on and on */
	JOB_SWAP    /* <prefix>/same, from what was found there to the next */
};

struct job {
	enum job_action action;
	unsigned refs; /* of one transaction */
	const char *prefix;
	/* A git directory; or, where REPOS is not 0, what holds 0.git, 1.git
	 * and so on, which the clients take in turn. */
	const char *repo;
	unsigned repos;
	/* The values that refs move through, round and round. */
	const struct refd_oid *oids;
	unsigned nr_oids;
};

/* -1 for a name of no action. */
int job_action_from_name(const char *name, enum job_action *action);
/* The name of ref I in transaction NR. */
void job_name(const struct job *job, unsigned client, unsigned nr, unsigned i,
    char name[JOB_NAME_MAX]);
/* The git directory of CLIENT; owned by the caller. */
char *job_repo(const struct job *job, unsigned client);
/* The value that transaction NR of a client moves its own refs to. */
const struct refd_oid *job_value(const struct job *job, unsigned nr);
/* The one after OID; the first one after any that is none of them. */
const struct refd_oid *job_next(const struct job *job,
    const struct refd_oid *oid);

#endif
