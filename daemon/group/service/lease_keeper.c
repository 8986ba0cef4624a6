/*
 * The thread looks at the daemon's socket between two steps, and while a
 * statement waits for its answer, so that another node can lead soon after the
 * daemon has ended. The opening of a session delays the look by its timeout,
 * and a cancel delays the look by the time of the database.
 */
#include "daemon/group/service/lease_keeper.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/group/service/lease.h"
#include "proto/lib/clock.h"

#define STEP_MS 100
#define OPEN_MS 1000

struct lease_keeper {
	pthread_mutex_t lock; /* of the next four */
	uint64_t epoch;
	uint64_t until_ms;
	bool has_lost;
	bool has_ended;
	struct daemon_link *link;
	struct session s; /* of the thread */
	uint64_t open_ms; /* no attempt to open before */
	pthread_t thread;
};

static bool read_flag(struct lease_keeper *k, const bool *flag)
{
	bool value;

	pthread_mutex_lock(&k->lock);
	value = *flag;
	pthread_mutex_unlock(&k->lock);
	return value;
}

/* Waits at most WAIT_MS. Must the thread end? */
static bool has_ended(struct lease_keeper *k, int wait_ms)
{
	struct pollfd fd = { .fd = k->link->fd, .events = POLLRDHUP };

	return (poll(&fd, 1, wait_ms) > 0 && fd.revents) ||
	    read_flag(k, &k->has_ended);
}

static bool tick(void *arg)
{
	return has_ended(arg, 0);
}

/* Is the daemon silent? Then its lease is not renewed, so that another node can
 * lead. But the lease is not ended early, because the daemon may go on at any
 * moment, and believes in the lease until the lease is over. */
static bool is_silent(struct lease_keeper *k, bool *was_silent)
{
	bool is = daemon_link_is_silent(k->link);

	if (is && !*was_silent)
		say_warning("the daemon hangs, or is stopped: the lease is not "
			    "renewed");
	*was_silent = is;
	return is;
}

static uint64_t read_epoch(struct lease_keeper *k)
{
	uint64_t epoch;

	pthread_mutex_lock(&k->lock);
	epoch = k->has_lost ? 0 : k->epoch;
	pthread_mutex_unlock(&k->lock);
	return epoch;
}

static void tell_lost(struct lease_keeper *k, uint64_t epoch)
{
	pthread_mutex_lock(&k->lock);
	k->has_lost |= k->epoch == epoch;
	pthread_mutex_unlock(&k->lock);
}

/* A renewal has changed no row: EPOCH is over, or this is a former primary. */
static void look(struct lease_keeper *k, uint64_t epoch)
{
	struct lease lease;

	if (lease_look(&k->s, &lease) && lease.epoch > epoch)
		tell_lost(k, epoch);
	else
		session_distrust(&k->s, "the renewal has found no lease");
}

/* The session is opened on a follower, too, so that the first renewal is in
 * time. It is opened at most once a second. */
static void open_session(struct lease_keeper *k)
{
	uint64_t now = clock_now_ms();

	if (now < k->open_ms)
		return;
	k->open_ms = now + OPEN_MS;
	session_open(&k->s);
}

/* The daemon has ended, so ends the lease. Another node can then lead at once,
 * also if this daemon fails again and again. */
static void give_up(struct lease_keeper *k)
{
	uint64_t epoch = read_epoch(k);

	say("the daemon has closed the socket");
	k->s.tick = NULL;
	if (epoch && (k->s.conn || session_open(&k->s) == SESSION_OK))
		lease_leave(&k->s, epoch);
	_exit(EXIT_AWAY);
}

/* The renewal is known to last only if the standbys have it. */
static void renew(struct lease_keeper *k, uint64_t epoch)
{
	uint64_t until_ms = lease_now_ms() + k->s.config->lease_ms;

	switch (lease_renew(&k->s, epoch)) {
	case LEASE_DONE:
		if (!session_prove(&k->s))
			return;
		pthread_mutex_lock(&k->lock);
		if (k->epoch == epoch)
			k->until_ms = until_ms;
		pthread_mutex_unlock(&k->lock);
		return;
	case LEASE_LOST:
		look(k, epoch);
		return;
	case LEASE_FAILED:
		return;
	}
}

static void *keep(void *arg)
{
	struct lease_keeper *k = arg;
	uint64_t due_ms = 0, epoch, last = 0;
	bool was_silent = false;

	while (!has_ended(k, STEP_MS)) {
		if (!k->s.conn)
			open_session(k);
		epoch = read_epoch(k);
		if (epoch == 0 || !k->s.conn ||
		    (epoch == last && lease_now_ms() < due_ms) ||
		    is_silent(k, &was_silent))
			continue;
		last = epoch;
		due_ms = lease_now_ms() + k->s.config->lease_ms / 3;
		renew(k, epoch);
	}
	if (!read_flag(k, &k->has_ended))
		give_up(k);
	return NULL;
}

struct lease_keeper *lease_keeper_start(const struct group_config *config,
    struct daemon_link *link)
{
	struct lease_keeper *k = xcalloc(1, sizeof(*k));

	k->s.config = config;
	k->s.tick = tick;
	k->s.tick_arg = k;
	k->link = link;
	pthread_mutex_init(&k->lock, NULL);
	cli_begin_threads();
	if (pthread_create(&k->thread, NULL, keep, k) != 0)
		die("cannot start the thread that renews the lease: raise the "
		    "limit of processes of this account");
	return k;
}

void lease_keeper_set(struct lease_keeper *k, uint64_t epoch, uint64_t until_ms)
{
	pthread_mutex_lock(&k->lock);
	k->epoch = epoch;
	k->until_ms = until_ms;
	k->has_lost = false;
	pthread_mutex_unlock(&k->lock);
}

uint64_t lease_keeper_until(struct lease_keeper *k)
{
	uint64_t until_ms;

	pthread_mutex_lock(&k->lock);
	until_ms = k->until_ms;
	pthread_mutex_unlock(&k->lock);
	return until_ms;
}

void lease_keeper_end(struct lease_keeper *k)
{
	pthread_mutex_lock(&k->lock);
	k->epoch = 0;
	k->has_ended = true;
	pthread_mutex_unlock(&k->lock);
	pthread_join(k->thread, NULL);
	session_done(&k->s);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

bool lease_keeper_has_lost(struct lease_keeper *k)
{
	return read_flag(k, &k->has_lost);
}
