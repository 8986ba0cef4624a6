/*
 * The minimal work of a journal: append, and flush once for all clients that
 * have appended meanwhile. The blocks of the file are written before the
 * clients begin, so a flush has data and no metadata.
 *
 * A client appends under the lock. It then waits for a flush that began after
 * the append, or starts this flush itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/bench/peer.h"

#define BLOCKS_SIZE (32 << 20)

struct log {
	pthread_mutex_t lock;
	pthread_cond_t flushed_more;
	uint64_t appended, flushed;
	bool is_flushing;
};

struct raw {
	const struct peer *peer;
	struct log *log; /* shared by all clients */
	int fd;
	unsigned client;
	struct text lines;
};

static struct log *new_log(void)
{
	pthread_mutexattr_t mutex;
	pthread_condattr_t cond;
	struct log *log = mmap(NULL, sizeof(*log), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (log == MAP_FAILED)
		die("out of memory");
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&log->lock, &mutex);
	pthread_condattr_init(&cond);
	pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&log->flushed_more, &cond);
	return log;
}

static int new_file(const char *path)
{
	static const char zeroes[1 << 20];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	off_t at;

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	for (at = 0; at < BLOCKS_SIZE; at += (off_t)sizeof(zeroes))
		if (pwrite(fd, zeroes, sizeof(zeroes), at) !=
		    (ssize_t)sizeof(zeroes))
			die("%s: %s", path, strerror(errno));
	if (fsync(fd) < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

static void *raw_open(void *arg, unsigned client)
{
	struct raw *r = arg;

	r->client = client;
	return r;
}

static void fill(struct raw *r, unsigned nr)
{
	const struct job *job = r->peer->job;
	char name[JOB_NAME_MAX], hex[REFD_OID_MAX_HEX + 1];
	unsigned i;

	text_clear(&r->lines);
	refd_oid_hex(job_value(job, nr), REFD_FORMAT_SHA1, hex);
	for (i = 0; i < job->refs; i++) {
		job_name(job, r->client, nr, i, name);
		text_addf(&r->lines, "%s %s\n", hex, name);
	}
}

/* Called with the lock held; the lock is held again on return. */
static bool flush(struct raw *r, uint64_t upto)
{
	struct log *log = r->log;
	uint64_t end;
	bool good = true;

	while (log->flushed < upto) {
		if (log->is_flushing) {
			pthread_cond_wait(&log->flushed_more, &log->lock);
			continue;
		}
		log->is_flushing = true;
		end = log->appended;
		pthread_mutex_unlock(&log->lock);
		good = fdatasync(r->fd) == 0;
		pthread_mutex_lock(&log->lock);
		log->is_flushing = false;
		log->flushed = end;
		pthread_cond_broadcast(&log->flushed_more);
	}
	return good;
}

static enum load_outcome raw_transaction(void *opened, unsigned nr)
{
	struct raw *r = opened;
	struct log *log = r->log;
	bool good;

	fill(r, nr);
	pthread_mutex_lock(&log->lock);
	good = pwrite(r->fd, r->lines.data, r->lines.len,
		   (off_t)log->appended) == (ssize_t)r->lines.len;
	log->appended += r->lines.len;
	good = flush(r, log->appended) && good;
	pthread_mutex_unlock(&log->lock);
	return good ? LOAD_DONE : LOAD_FAILED;
}

struct load_contestant peer_raw(struct peer *p)
{
	struct raw *r = xcalloc(1, sizeof(*r));

	r->peer = p;
	r->log = new_log();
	r->fd = new_file(p->path);
	return (struct load_contestant){ .arg = r,
		.open = raw_open,
		.transaction = raw_transaction };
}
