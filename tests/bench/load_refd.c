#include "tests/bench/load_refd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/lib/cli.h"

/* The time limit of a connection. Transactions have none. */
#define PATIENCE_MS 60000
#define NAP_US      2000

struct user {
	const struct load_refd *on;
	unsigned client;
	struct refd *daemon;
	char *git_dir;
	struct stat common;
	struct refd_update *updates;
	char (*names)[JOB_NAME_MAX];
	struct refd_oid found; /* the value found by a SWAP; null: no ref */
};

static void open_repo(struct user *u)
{
	const struct job *job = u->on->job;

	u->git_dir = job_repo(job, u->client);
	if (stat(u->git_dir, &u->common) < 0)
		die("%s: %s", u->git_dir, strerror(errno));
	u->updates = xcalloc(job->refs, sizeof(*u->updates));
	u->names = xcalloc(job->refs, sizeof(*u->names));
}

static void *user_open(void *arg, unsigned client)
{
	struct user *u = xcalloc(1, sizeof(*u));

	u->on = arg;
	u->client = client;
	if (u->on->job)
		open_repo(u);
	u->daemon = refd_new(u->on->socket);
	if (!u->daemon)
		die("out of memory");
	if (refd_connect(u->daemon, PATIENCE_MS) < 0)
		die("%s", refd_error(u->daemon));
	if (refd_hello(u->daemon)->state != REFD_SERVING)
		die("the daemon does not serve now");
	return u;
}

/* The first move creates the ref, so there is no old value. */
static void plan(struct user *u, unsigned nr)
{
	const struct job *job = u->on->job;
	unsigned i;

	for (i = 0; i < job->refs; i++) {
		struct refd_update *up = &u->updates[i];

		memset(up, 0, sizeof(*up));
		up->name = u->names[i];
		job_name(job, u->client, nr, i, u->names[i]);
		switch (job->action) {
		case JOB_CREATE:
			up->action = REFD_CREATE;
			up->new_oid = *job_value(job, nr);
			break;
		case JOB_DELETE:
			up->action = REFD_DELETE;
			break;
		case JOB_MOVE:
			up->action = REFD_UPDATE;
			up->new_oid = *job_value(job, nr);
			up->has_old = nr > 0;
			if (nr > 0)
				up->old_oid = *job_value(job, nr - 1);
			break;
		case JOB_SWAP:
			up->action = REFD_UPDATE;
			up->new_oid = *job_next(job, &u->found);
			up->has_old = true;
			up->old_oid = u->found;
			break;
		}
	}
}

static enum load_outcome judge(struct user *u, const struct refd_answer *ans)
{
	const struct job *job = u->on->job;
	unsigned i;

	if (ans->kind != REFD_ANSWER_RESULTS)
		return LOAD_FAILED;
	if (job->action == JOB_SWAP && ans->results[0].has_found)
		u->found = ans->results[0].found;
	for (i = 0; i < job->refs; i++) {
		enum refd_status status = ans->results[i].status;

		if (job->action == JOB_SWAP &&
		    (status == REFD_STALE || status == REFD_EXISTS))
			return LOAD_BEATEN;
		if (status != REFD_OK)
			return LOAD_FAILED;
	}
	if (job->action == JOB_SWAP)
		u->found = u->updates[0].new_oid;
	return LOAD_DONE;
}

static void fill(const struct user *u, struct refd_request *req)
{
	memset(req, 0, sizeof(*req));
	req->verb = REFD_VERB_TRANSACTION;
	req->git_dir = u->git_dir;
	req->common_dev = u->common.st_dev;
	req->common_ino = u->common.st_ino;
	req->umask = 022;
	req->object_format = u->on->job->object_format;
	req->atomic = u->on->atomic;
	req->deadline_ms = REFD_DEADLINE_MAX_MS;
	req->updates = u->updates;
	req->nr_updates = u->on->job->refs;
}

static enum load_outcome ping(struct user *u)
{
	struct refd_request req = { .verb = REFD_VERB_PING };
	struct refd_answer ans;
	enum load_outcome outcome;

	if (refd_call(u->daemon, &req, PATIENCE_MS, &ans) < 0)
		return LOAD_FAILED;
	outcome = ans.kind == REFD_ANSWER_REFUSED ? LOAD_FAILED : LOAD_DONE;
	refd_answer_done(&ans);
	return outcome;
}

/* "Busy" is not a final answer: the time of all attempts counts. */
static enum load_outcome user_transaction(void *opened, unsigned nr)
{
	struct user *u = opened;
	struct refd_request req;
	struct refd_answer ans;
	enum load_outcome outcome = LOAD_FAILED;
	bool is_busy;

	if (!u->on->job)
		return ping(u);
	plan(u, nr);
	for (;;) {
		fill(u, &req);
		if (refd_call(u->daemon, &req, -1, &ans) < 0)
			return LOAD_FAILED;
		is_busy =
		    ans.kind == REFD_ANSWER_REFUSED && ans.status == REFD_BUSY;
		if (!is_busy)
			outcome = judge(u, &ans);
		refd_answer_done(&ans);
		if (!is_busy)
			return outcome;
		usleep(NAP_US);
	}
}

static void user_close(void *opened)
{
	struct user *u = opened;

	refd_free(u->daemon);
	free(u->git_dir);
	free(u->updates);
	free(u->names);
	free(u);
}

struct load_contestant load_refd(struct load_refd *on)
{
	return (struct load_contestant){ .arg = on,
		.open = user_open,
		.transaction = user_transaction,
		.close = user_close };
}
