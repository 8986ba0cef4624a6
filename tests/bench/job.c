#include "tests/bench/job.h"

#include <stdio.h>
#include <string.h>

#include "proto/lib/cli.h"

int job_action_from_name(const char *name, enum job_action *action)
{
	static const char *const names[] = { "create", "delete", "move",
		"swap" };
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]))
			continue;
		*action = (enum job_action)i;
		return 0;
	}
	return -1;
}

void job_name(const struct job *job, unsigned client, unsigned nr, unsigned i,
    char name[JOB_NAME_MAX])
{
	switch (job->action) {
	case JOB_CREATE:
	case JOB_DELETE:
		snprintf(name, JOB_NAME_MAX, "%s/%u/%u-%u", job->prefix, client,
		    nr, i);
		break;
	case JOB_MOVE:
		snprintf(name, JOB_NAME_MAX, "%s/%u/%u", job->prefix, client,
		    i);
		break;
	case JOB_SWAP:
		snprintf(name, JOB_NAME_MAX, "%s/same", job->prefix);
		break;
	}
}

char *job_repo(const struct job *job, unsigned client)
{
	if (job->repos == 0)
		return xstrdup(job->repo);
	return xasprintf("%s/%u.git", job->repo, client % job->repos);
}

const struct refd_oid *job_value(const struct job *job, unsigned nr)
{
	return &job->oids[nr % job->nr_oids];
}

const struct refd_oid *job_next(const struct job *job,
    const struct refd_oid *oid)
{
	unsigned i;

	for (i = 0; i < job->nr_oids; i++)
		if (refd_oid_eq(&job->oids[i], oid))
			return &job->oids[(i + 1) % job->nr_oids];
	return &job->oids[0];
}
