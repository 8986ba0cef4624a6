/*
 * A loose ref at the lowest cost: create, write, rename. Directories are made
 * beforehand.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/bench/peer.h"

struct rename_user {
	const struct peer *peer;
	unsigned client;
	int fd; /* of the repository */
};

static void make_parents(int fd, char *path)
{
	char *slash;

	for (slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(fd, path, 0777) < 0 && errno != EEXIST)
			die("%s: %s", path, strerror(errno));
		*slash = '/';
	}
}

static void *user_open(void *arg, unsigned client)
{
	struct rename_user *u = xcalloc(1, sizeof(*u));
	char name[JOB_NAME_MAX];
	char *repo;

	u->peer = arg;
	u->client = client;
	repo = job_repo(u->peer->job, client);
	u->fd = open(repo, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (u->fd < 0)
		die("%s: %s", repo, strerror(errno));
	free(repo);
	job_name(u->peer->job, client, 0, 0, name);
	make_parents(u->fd, name);
	return u;
}

static bool make_ref(const struct rename_user *u, const char *name,
    const char *line)
{
	char lock[JOB_NAME_MAX + 8];
	bool good;
	int fd;

	snprintf(lock, sizeof(lock), "%s.lock", name);
	fd = openat(u->fd, lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return false;
	good = write(fd, line, REFD_SHA1_HEX + 1) == REFD_SHA1_HEX + 1;
	close(fd);
	return renameat(u->fd, lock, u->fd, name) == 0 && good;
}

static enum load_outcome user_transaction(void *opened, unsigned nr)
{
	const struct rename_user *u = opened;
	const struct job *job = u->peer->job;
	char name[JOB_NAME_MAX], line[REFD_OID_MAX_HEX + 2];
	unsigned i;

	refd_oid_hex(job_value(job, nr), REFD_FORMAT_SHA1, line);
	strcat(line, "\n");
	for (i = 0; i < job->refs; i++) {
		job_name(job, u->client, nr, i, name);
		if (!make_ref(u, name, line))
			return LOAD_FAILED;
	}
	return LOAD_DONE;
}

struct load_contestant peer_rename(struct peer *p)
{
	return (struct load_contestant){ .arg = p,
		.open = user_open,
		.transaction = user_transaction };
}
