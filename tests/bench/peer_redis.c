/*
 * A minimal client of Redis: one command, one answer. SET for a single ref, and
 * MSET for several refs, which is atomic in Redis.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/bench/peer.h"

struct redis_user {
	const struct peer *peer;
	unsigned client;
	int fd;
	struct text command;
};

static void *user_open(void *arg, unsigned client)
{
	struct redis_user *u = xcalloc(1, sizeof(*u));
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	u->peer = arg;
	u->client = client;
	u->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", u->peer->path);
	if (u->fd < 0 ||
	    connect(u->fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		die("%s: %s", u->peer->path, strerror(errno));
	return u;
}

static void fill(struct redis_user *u, unsigned nr)
{
	const struct job *job = u->peer->job;
	char name[JOB_NAME_MAX], hex[REFD_OID_MAX_HEX + 1];
	unsigned i;

	text_clear(&u->command);
	text_addf(&u->command, "*%u\r\n", 2 * job->refs + 1);
	text_adds(&u->command,
	    job->refs == 1 ? "$3\r\nSET\r\n" : "$4\r\nMSET\r\n");
	refd_oid_hex(job_value(job, nr), REFD_FORMAT_SHA1, hex);
	for (i = 0; i < job->refs; i++) {
		job_name(job, u->client, nr, i, name);
		text_addf(&u->command, "$%zu\r\n%s\r\n$%d\r\n%s\r\n",
		    strlen(name), name, REFD_SHA1_HEX, hex);
	}
}

static enum load_outcome user_transaction(void *opened, unsigned nr)
{
	struct redis_user *u = opened;
	char answer[64];
	size_t sent = 0;
	ssize_t n;

	fill(u, nr);
	while (sent < u->command.len) {
		n = send(u->fd, u->command.data + sent, u->command.len - sent,
		    MSG_NOSIGNAL);
		if (n < 0)
			return LOAD_FAILED;
		sent += (size_t)n;
	}
	n = read(u->fd, answer, sizeof(answer));
	return n == 5 && !memcmp(answer, "+OK\r\n", 5) ? LOAD_DONE :
							 LOAD_FAILED;
}

static void user_close(void *opened)
{
	struct redis_user *u = opened;

	close(u->fd);
}

struct load_contestant peer_redis(struct peer *p)
{
	return (struct load_contestant){ .arg = p,
		.open = user_open,
		.transaction = user_transaction,
		.close = user_close };
}
