#include "daemon/group/service/hold_thread.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/program.h"
#include "daemon/group/service/hold_ask.h"
#include "daemon/group/service/hold_fetch.h"
#include "daemon/group/service/lease.h"
#include "daemon/group/service/lister.h"
#include "proto/lib/clock.h"

#define TURN_MS  1000
#define CLEAN_MS 30000
#define TELL_MS  60000
/* A file system can be full for a moment, for example while git packs. So only
 * a file system that is full for this time is a reason to move the lead. */
#define FULL_MS 5000
/* For this time, a damaged node makes no further wish for another leader if the
 * wished node could not take the lead. Otherwise that node would be wished for
 * again each minute, and nobody would lead until each lease ends. */
#define REFUSED_MS (60 * 60 * 1000)

/* Room on a file system. */
#define MIB         (UINT64_C(1) << 20)
#define NONE_BYTES  MIB
#define LEAD_BYTES  (64 * MIB)
#define LEAD_INODES 1000

/* Old rows of one attempt. */
#define MOST      500
#define MOST_TEXT "500"
#define BYTES     "67108864" /* or one row */

struct taken_frame {
	struct daemon_frame *frame;
	char leader[GROUP_NAME_MAX + 1]; /* empty: this node */
	struct taken_frame *next;
};

struct hold_thread {
	pthread_mutex_t lock; /* of the next three */
	struct taken_frame *taken;
	uint64_t epoch;
	bool has_ended;
	int wake; /* an eventfd: something is taken, ended or fetched */
	struct fetch_site site;
	char *dir;
	pthread_t thread;
	/* Of the thread. */
	struct session s;
	struct hold_asks asks;
	struct hold_fetches fetches;
	struct lister lister;
	/* Of the last attempt. */
	uint64_t open_ms, look_ms, clean_ms, delete_ms;
	bool has_old_rows; /* more than one attempt deletes */
	uint64_t told_ms;  /* of the last report; 0: none */
	uint64_t room_ms;  /* when no file system was full */
	/* Of the last wish because of damage. */
	uint64_t wish_epoch, wish_ms;
};

static void wake(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		die("cannot wake a thread: out of memory");
}

/* ---- the session ---- */

static void report(struct hold_thread *t)
{
	uint64_t now = clock_now_ms();

	if (t->told_ms && now - t->told_ms < TELL_MS)
		return;
	t->told_ms = now;
	say_warning("cannot ask for objects: %s",
	    t->s.why.data ? t->s.why.data : "the database is away");
}

/* The rows are messages, so no COMMIT waits for the standbys. */
static void open_session(struct hold_thread *t)
{
	uint64_t now = clock_now_ms();

	if (now - t->open_ms < TURN_MS)
		return;
	t->open_ms = now;
	if (session_open(&t->s) == SESSION_OK)
		session_do(&t->s,
		    "SET synchronous_commit = off; LISTEN refd_want;"
		    " LISTEN refd_held; LISTEN refd_list");
	hold_ask_again(&t->asks);
}

/* ---- room ---- */

enum room {
	ROOM_NONE, /* less than 1 MiB, or no inode: the file system is full */
	ROOM_LITTLE,
	ROOM_ENOUGH /* to lead: 64 MiB and 1000 inodes */
};

/* How much room has the file system of PATH for this account? A quota of one
 * user is not seen. If the file system cannot be asked, the result is LITTLE,
 * so that a failed question does not move the lead. */
static enum room look_at_room(const char *path)
{
	struct statvfs fs;
	uint64_t bytes, inodes;

	if (statvfs(path, &fs) < 0)
		return ROOM_LITTLE;
	/* Some file systems have no limit, or make inodes as needed. */
	bytes = fs.f_blocks != 0 ? fs.f_bavail * fs.f_frsize : LEAD_BYTES;
	inodes = fs.f_files != 0 ? fs.f_favail : LEAD_INODES;
	if (bytes < NONE_BYTES || inodes == 0)
		return ROOM_NONE;
	return bytes < LEAD_BYTES || inodes < LEAD_INODES ? ROOM_LITTLE :
							    ROOM_ENOUGH;
}

/* Sets *FULLEST to the path whose file system has the least room. */
static enum room find_room(const struct hold_thread *t, const char **fullest)
{
	enum room least = look_at_room(t->dir), room;
	size_t i;

	*fullest = t->dir;
	for (i = 0; i < t->s.config->nr_roots; i++) {
		room = look_at_room(t->s.config->roots[i]);
		if (room < least) {
			least = room;
			*fullest = t->s.config->roots[i];
		}
	}
	return least;
}

/* This node leads. */
static void give_lead(struct hold_thread *t, uint64_t epoch, const char *path,
    bool is_damaged)
{
	const uint64_t now = clock_now_ms();
	const bool is_full = now - t->room_ms >= FULL_MS;

	/* If the epoch has grown by two since the wish, lease_hand() and
	 * lease_take() of this node have counted one each. So nobody has led in
	 * between, and there is no further wish. */
	if (t->wish_ms && epoch == t->wish_epoch + 2 &&
	    now - t->wish_ms < REFUSED_MS)
		is_damaged = false;
	if (!t->s.conn || !(is_full || is_damaged) ||
	    lease_wish(&t->s, epoch, is_full) != LEASE_DONE)
		return;
	if (!is_full) {
		t->wish_epoch = epoch;
		t->wish_ms = now;
	}
	if (is_full)
		say_warning("the file system of '%s' is full, so a node with "
			    "room shall lead: make room there",
		    path);
	else
		say_warning("this node has damaged objects, so another node "
			    "shall lead: run refd group verify --repair here");
}

/* Says that this node is alive. If IS_LEADER, the daemon also hears up to which
 * row group.held other living nodes have applied the log. The daemon of a
 * follower gets no frame, because it may be busy with rows, and would keep this
 * thread waiting. True: this node has damaged objects, and another node is
 * alive. */
static bool tell_near(struct hold_thread *t, bool is_leader, enum room room)
{
	const struct group_config *config = t->s.config;
	struct group_frame f = { .type = GROUP_NEAR, .near.lsn = INT64_MAX };
	struct params p = { 0 };
	PGresult *r;
	bool are_enough, is_damaged = false;

	params_text(&p, config->name);
	params_text(&p, config->node);
	params_number(&p, config->held);
	params_text(&p, room == ROOM_ENOUGH ? "true" : "false");
	params_text(&p, t->s.machine);
	r = session_run(&t->s,
	    "WITH alive AS (UPDATE refd.node"
	    " SET seen = clock_timestamp(), has_room = $4"
	    " WHERE grp = $1 AND node = $2 AND machine = $5"
	    " RETURNING damaged IS NOT NULL AS it)"
	    " SELECT applied, (SELECT it FROM alive) FROM refd.node"
	    " WHERE grp = $1 AND node <> $2"
	    " AND seen BETWEEN clock_timestamp() - interval '5 seconds'"
	    " AND clock_timestamp() + interval '5 seconds'"
	    " ORDER BY applied DESC OFFSET greatest($3::bigint - 1, 0) LIMIT 1",
	    &p);
	if (!r)
		return false;
	if (PQntuples(r) == 1)
		is_damaged = *PQgetvalue(r, 0, 1) == 't';
	are_enough = config->held == 0 || PQntuples(r) == 1;
	if (config->held > 0 && are_enough)
		f.near.lsn = session_number(r, 0, 0);
	PQclear(r);
	if (are_enough && is_leader)
		daemon_link_send(t->asks.link, &f);
	return is_damaged;
}

static void tell_state(struct hold_thread *t, const struct lease *lease)
{
	bool is_leader = !strcmp(lease->owner, t->s.config->node), is_damaged;
	const char *path;
	enum room room = find_room(t, &path);

	hold_fetch_lose(&t->fetches,
	    lease->is_over && !is_leader ? lease->owner : NULL);
	if (room != ROOM_NONE)
		t->room_ms = clock_now_ms();
	is_damaged = tell_near(t, is_leader, room);
	if (is_leader)
		give_lead(t, lease->epoch, path, is_damaged);
}

/* Leaves the server if it is a former primary: such a server may still accept
 * writes, but the answers of other nodes go to the present primary. */
static void check_server(struct hold_thread *t)
{
	uint64_t now = clock_now_ms(), epoch;
	struct lease lease;

	if (now - t->look_ms < TURN_MS)
		return;
	t->look_ms = now;
	pthread_mutex_lock(&t->lock);
	epoch = t->epoch;
	pthread_mutex_unlock(&t->lock);
	if (!lease_look(&t->s, &lease))
		return;
	if (lease.epoch < epoch)
		session_distrust(&t->s,
		    "the server has an earlier epoch: it is a former primary");
	else if (!daemon_link_is_silent(t->asks.link))
		tell_state(t, &lease);
}

static void drain_notices(struct hold_thread *t)
{
	PGnotify *notice;

	if (!PQconsumeInput(t->s.conn)) {
		session_fail(&t->s, NULL, "no answer");
		return;
	}
	while ((notice = PQnotifies(t->s.conn))) {
		if (!strcmp(notice->relname, "refd_list"))
			lister_take(&t->lister, notice->extra);
		PQfreemem(notice);
	}
}

/* ---- cleaning ---- */

/* The rows before the first one that is needed. */
static const char delete_sql[] =
    "DELETE FROM refd.log WHERE grp = $1 AND lsn <= ("
    " SELECT max(lsn) FROM (SELECT lsn, bool_and(time_ms <"
    "   extract(epoch FROM now() - interval '1 day') * 1000)"
    "   OVER (ORDER BY lsn)"
    "   AND (sum(bytes) OVER (ORDER BY lsn) <= " BYTES
    "    OR row_number() OVER (ORDER BY lsn) = 1) AS is_old"
    "  FROM (SELECT lsn, time_ms,"
    "   pg_column_size(body) + pg_column_size(objects) AS bytes"
    "   FROM refd.log WHERE grp = $1"
    "   AND lsn <= (SELECT min(applied) FROM refd.node WHERE grp = $1)"
    "   AND lsn < (SELECT max(lsn) FROM refd.log WHERE grp = $1)"
    "   ORDER BY lsn LIMIT " MOST_TEXT ") AS first) AS marked"
    " WHERE is_old AND EXISTS (SELECT FROM refd.lease"
    "  WHERE grp = $1 AND owner = $2 AND until > now()))";

/*
 * If this node leads, deletes some of the first rows of the log: those that
 * every node in refd.node has applied, and that are older than a day by the
 * clock of the leader that wrote them. The newest row stays, because the next
 * row needs a row before it. The remaining rows have no gap. True: there may be
 * more such rows.
 */
static bool delete_old_rows(struct session *s)
{
	struct params p = { 0 };

	params_text(&p, s->config->name);
	params_text(&p, s->config->node);
	return session_change(s, delete_sql, &p) == MOST;
}

/* Old messages have no readers. */
static void clean_messages(struct hold_thread *t)
{
	struct params p = { 0 };

	params_text(&p, t->s.config->name);
	session_change(&t->s,
	    "WITH want AS (DELETE FROM refd.want WHERE grp = $1"
	    " AND at < clock_timestamp() - interval '2 minutes')"
	    " DELETE FROM refd.held WHERE grp = $1"
	    " AND at < clock_timestamp() - interval '2 minutes'",
	    &p);
}

/* Rows of the log are deleted in small transactions, so that no HOLD waits
 * long. */
static void clean(struct hold_thread *t)
{
	uint64_t now = clock_now_ms();

	if (now - t->clean_ms >= CLEAN_MS) {
		t->clean_ms = now;
		clean_messages(t);
	}
	if (t->s.conn &&
	    now - t->delete_ms >= (t->has_old_rows ? TURN_MS : CLEAN_MS)) {
		t->delete_ms = now;
		t->has_old_rows = delete_old_rows(&t->s);
	}
}

/* While a statement waits. */
static bool tick(void *arg)
{
	struct hold_thread *t = arg;
	bool has_ended;

	pthread_mutex_lock(&t->lock);
	has_ended = t->has_ended;
	pthread_mutex_unlock(&t->lock);
	return has_ended;
}

/* ---- turns ---- */

static void await_event(struct hold_thread *t)
{
	struct pollfd fds[2] = { { .fd = t->wake, .events = POLLIN },
		{ .fd = t->s.conn ? PQsocket(t->s.conn) : -1,
		    .events = POLLIN } };
	uint64_t count;

	poll(fds, 2, TURN_MS);
	if (fds[0].revents && read(t->wake, &count, sizeof(count)) < 0)
		die("cannot wait for objects");
	if (fds[1].revents)
		drain_notices(t);
}

/* False: the end. */
static bool take_holds(struct hold_thread *t)
{
	struct taken_frame *taken, *next;
	uint64_t epoch;
	bool has_ended;

	pthread_mutex_lock(&t->lock);
	taken = t->taken;
	t->taken = NULL;
	epoch = t->epoch;
	has_ended = t->has_ended;
	pthread_mutex_unlock(&t->lock);
	hold_fetch_begin_epoch(&t->fetches, epoch);
	/* Ended fetches are taken first, because a new question for the same
	 * repository begins with the first source again. */
	hold_fetch_collect(&t->fetches);
	for (; taken; taken = next) {
		next = taken->next;
		if (*taken->leader || taken->frame->frame.hold.is_fetch) {
			hold_fetch_add(&t->fetches, &t->s, &taken->frame->frame,
			    taken->leader);
			daemon_frame_free(taken->frame);
		} else {
			hold_ask_add(&t->asks, taken->frame, epoch);
		}
		free(taken);
	}
	return !has_ended;
}

static void *run(void *arg)
{
	struct hold_thread *t = arg;

	while (take_holds(t)) {
		if (!t->s.conn)
			open_session(t);
		if (t->s.conn)
			check_server(t);
		hold_fetch_turn(&t->fetches, &t->s);
		hold_ask_turn(&t->asks, &t->s);
		if (t->s.conn)
			clean(t);
		if (!t->s.conn)
			report(t);
		await_event(t);
	}
	return NULL;
}

/* ---- calls ---- */

struct hold_thread *hold_thread_start(const struct group_config *config,
    const char *machine, struct daemon_link *link, const char *dir)
{
	struct hold_thread *t = xcalloc(1, sizeof(*t));

	t->dir = xstrdup(dir);
	fetch_dirs_make(dir);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->wake < 0)
		die("cannot open more files: raise the limit of this account");
	t->site = (struct fetch_site){ config->roots, config->nr_roots, t->dir,
		{ program_refd(), config->socket } };
	t->s.config = t->lister.config = config;
	t->s.machine = machine;
	t->s.tick = tick;
	t->s.tick_arg = t;
	t->asks = (struct hold_asks){ .config = config, .link = link };
	t->fetches = (struct hold_fetches){ .config = config,
		.link = link,
		.pool = fetch_pool_start(&t->site, t->wake) };
	pthread_mutex_init(&t->lock, NULL);
	if (pthread_create(&t->thread, NULL, run, t) != 0)
		die("cannot start a thread: raise the limit of processes of "
		    "this account");
	return t;
}

void hold_thread_take(struct hold_thread *t, struct daemon_frame *frame,
    const char *leader)
{
	struct taken_frame *taken = xcalloc(1, sizeof(*taken)), **at;

	taken->frame = frame;
	if (leader)
		strcpy(taken->leader, leader);
	pthread_mutex_lock(&t->lock);
	for (at = &t->taken; *at; at = &(*at)->next)
		continue;
	*at = taken;
	pthread_mutex_unlock(&t->lock);
	wake(t->wake);
}

void hold_thread_set(struct hold_thread *t, uint64_t epoch)
{
	pthread_mutex_lock(&t->lock);
	t->epoch = epoch;
	pthread_mutex_unlock(&t->lock);
	wake(t->wake);
}

void hold_thread_end(struct hold_thread *t)
{
	pthread_mutex_lock(&t->lock);
	t->has_ended = true;
	pthread_mutex_unlock(&t->lock);
	wake(t->wake);
	pthread_join(t->thread, NULL);
	lister_end(&t->lister);
	fetch_pool_end(t->fetches.pool);
	hold_fetch_done(&t->fetches);
	hold_ask_done(&t->asks);
	session_done(&t->s);
	close(t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t->site.guard.refd);
	free(t->dir);
	free(t);
}
