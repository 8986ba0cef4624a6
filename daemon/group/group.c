/*
 * The happy path of a start: refd-group connects (group_link.c), sends the rows
 * that this node lacks, and then ROLE. A leader is open from then on, because
 * it has all rows of the log.
 *
 * Failures: the daemon ends (group_die()), so that the next start asks the log.
 */
#include "daemon/group/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/time.h"
#include "daemon/group/group_internal.h"
#include "daemon/store/deferred/deferred.h"

/* At a stop, the daemon waits so long until refd-group has given the lease up.
 * The wait has a limit, because giving up needs PostgreSQL. */
#define STOP_NS (5 * 1000000000LL)
/* refd-group takes a daemon that is silent for three seconds to hang. */
#define ALIVE_NS (1000 * 1000000LL)

/* ---- life ---- */

struct group *group_new(const char *node, int64_t patience_ns)
{
	struct group *g = calloc(1, sizeof(*g));
	pthread_condattr_t attr;

	if (g == NULL)
		return NULL;
	g->patience_ns = patience_ns;
	g->node = strdup(node);
	g->known = calloc(GROUP_KNOWN, sizeof(*g->known));
	mutex_init(&g->mutex, MUTEX_JOBS);
	mutex_init(&g->reader_mutex, MUTEX_REPLICA_READER);
	mutex_init(&g->known_mutex, MUTEX_INNER);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->changed, &attr);
	pthread_cond_init(&g->has_output, &attr);
	pthread_cond_init(&g->has_input, &attr);
	pthread_condattr_destroy(&attr);
	LIST_INIT(&g->batches);
	TAILQ_INIT(&g->holds);
	g->input_end = &g->input;
	g->output_end = &g->output;
	g->fd = g->listen_fd = -1;
	if (g->node == NULL || g->known == NULL) {
		group_free(g);
		return NULL;
	}
	return g;
}

int group_open(struct group *g)
{
	g->journal = g->base.host->journal;
	g->start_ns = SYS(g->base.host->sys, now_boot);
	g->done_lsn = journal_shared_lsn(g->journal);
	g->next_lsn = g->done_lsn + 1;
	snprintf(g->refusal, sizeof(g->refusal),
	    "the node '%s' waits for refd-group", g->node);
	return journal_reader_open(g->journal, &g->reader) == 0 ? 0 : -ENOMEM;
}

void group_free(struct group *g)
{
	if (g->listen_fd >= 0)
		SYS(g->base.host->sys, close, g->listen_fd);
	journal_reader_close(g->reader);
	pthread_cond_destroy(&g->has_input);
	pthread_cond_destroy(&g->has_output);
	pthread_cond_destroy(&g->changed);
	mutex_destroy(&g->known_mutex);
	mutex_destroy(&g->reader_mutex);
	mutex_destroy(&g->mutex);
	free(g->known);
	free(g->node);
	free(g);
}

int group_start(struct group *g)
{
	if (pthread_create(&g->link_thread, NULL, group_link_main, g) != 0)
		return -EAGAIN;
	if (pthread_create(&g->send_thread, NULL, group_send_main, g) == 0) {
		g->has_threads = true;
		return 0;
	}
	mutex_lock(&g->mutex);
	g->is_stopping = true;
	mutex_unlock(&g->mutex);
	pthread_join(g->link_thread, NULL);
	return -EAGAIN;
}

/* Under MUTEX. */
static void wake_all(struct group *g)
{
	pthread_cond_broadcast(&g->changed);
	pthread_cond_signal(&g->has_input);
}

/* Under MUTEX. refd-group closes the connection. */
static void wait_for_the_end(struct group *g)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_NS / 1000000000;
	while (g->fd >= 0 && !g->is_dead &&
	    mutex_wait_until(&g->changed, &g->mutex, &until) == 0)
		;
	if (g->fd >= 0)
		shutdown(g->fd, SHUT_RDWR);
}

void group_stop(struct group *g)
{
	const struct group_frame stop = { .type = GROUP_STOP };

	mutex_lock(&g->mutex);
	g->is_stopping = true;
	g->epoch = 0;
	group_send(g, &stop);
	wake_all(g);
	wait_for_the_end(g);
	mutex_unlock(&g->mutex);
	if (!g->has_threads)
		return;
	pthread_join(g->link_thread, NULL);
	mutex_lock(&g->mutex);
	g->has_ended = true;
	pthread_cond_signal(&g->has_output);
	mutex_unlock(&g->mutex);
	pthread_join(g->send_thread, NULL);
	g->has_threads = false;
}

void group_die(struct group *g, const char *why)
{
	if (g->is_dead)
		return;
	g->is_dead = true;
	g->epoch = 0;
	g->base.host->fatal(g->base.host->store, why);
	wake_all(g);
}

int group_fail(struct group *g, const char *why)
{
	mutex_lock(&g->mutex);
	group_die(g, why);
	mutex_unlock(&g->mutex);
	return JOURNAL_UNKNOWN;
}

bool group_is_stopping(struct group *g)
{
	bool is_stopping;

	mutex_lock(&g->mutex);
	is_stopping = g->is_stopping || g->is_dead;
	mutex_unlock(&g->mutex);
	return is_stopping;
}

bool group_is_linked(struct group *g)
{
	bool is_linked;

	mutex_lock(&g->mutex);
	is_linked = g->fd >= 0 && !g->is_stopping && !g->is_dead;
	mutex_unlock(&g->mutex);
	return is_linked;
}

/* ---- paths ---- */

int group_path_below(const struct group *g, const char *path,
    struct group_bytes *below)
{
	const struct repos *repos = g->base.host->repos;
	size_t i, len, longest = 0;

	for (i = 0; i < repos->nr_roots; i++) {
		len = strlen(repos->roots[i]);
		if (len > longest && strncmp(path, repos->roots[i], len) == 0 &&
		    path[len] == '/' && path[len + 1] != '\0')
			longest = len;
	}
	if (longest == 0)
		return -EXDEV;
	*below = (struct group_bytes){ (const uint8_t *)path + longest + 1,
		strlen(path) - longest - 1 };
	return 0;
}

/* ---- the role ---- */

void group_tell(struct group *g, enum store_event event, const char *why)
{
	const struct store_config *cfg = g->base.host->config;

	if (cfg->event != NULL)
		cfg->event(event, g->node, why);
}

/* ---- time ---- */

/* While this machine is suspended, other nodes go on, so these times are of
 * CLOCK_BOOTTIME. */

/* Under MUTEX. 0: this node lacks no row. */
static int64_t lag(struct group *g)
{
	int64_t now_ns = SYS(g->base.host->sys, now_boot);

	return now_ns > g->current_ns ? now_ns - g->current_ns : 0;
}

void group_set_current(struct group *g, uint64_t ms)
{
	int64_t ns = (int64_t)ms * 1000000;

	if (ns > g->current_ns)
		g->current_ns = ns;
}

void group_end_lease(struct group *g)
{
	int64_t now_ns = SYS(g->base.host->sys, now_boot);

	if (g->current_ns > now_ns)
		g->current_ns = now_ns;
}

uint64_t group_epoch(struct group *g)
{
	uint64_t epoch;

	mutex_lock(&g->mutex);
	epoch = lag(g) == 0 ? g->epoch : 0;
	mutex_unlock(&g->mutex);
	return epoch;
}

char *group_refusal(struct group *g)
{
	char *why = NULL;

	mutex_lock(&g->mutex);
	if (g->epoch == 0)
		why = strdup(g->refusal);
	else if (lag(g) > 0)
		why = strdup("the lease of this node has ended, and refd-group "
			     "does not renew it: see to PostgreSQL and its "
			     "standbys");
	mutex_unlock(&g->mutex);
	return why;
}

void group_look(struct group *g, struct replica_state *state)
{
	const struct group_batch *b;
	const struct group_hold *h;
	int64_t lacking_ns;
	size_t nr_lacking;

	*state = (struct replica_state){ .role = "waits", .shares_rows = true };
	mutex_lock(&g->mutex);
	state->lag_ns = lag(g);
	if (g->epoch != 0 && state->lag_ns == 0) {
		state->role = "leader";
		state->epoch = g->epoch;
	} else if (g->fd >= 0 && g->follows && g->current_ns != 0) {
		state->role = "follower";
	}
	if (g->current_ns == 0)
		state->lag_ns = SYS(g->base.host->sys, now_boot) - g->start_ns;
	strcpy(state->leader, g->leader);
	state->is_connected = g->fd >= 0;
	nr_lacking = deferred_lacking(g->base.host->deferred, &lacking_ns);
	if (g->waiting.lsn != 0)
		state->row_ns =
		    SYS(g->base.host->sys, now_mono) - g->waiting.since_ns;
	else if (nr_lacking > 0)
		state->row_ns = SYS(g->base.host->sys, now_mono) - lacking_ns;
	else if (g->is_following)
		state->row_ns =
		    SYS(g->base.host->sys, now_mono) - g->following_ns;
	state->waiting_repos = g->waiting.nr_repos + nr_lacking;
	state->lsn = group_applied_lsn(g);
	LIST_FOREACH(b, &g->batches, link)
		state->batches++;
	TAILQ_FOREACH(h, &g->holds, link)
		state->holds++;
	mutex_unlock(&g->mutex);
}

void group_take_role(struct group *g, const struct group_frame *role)
{
	const struct timespec until = time_after(g->patience_ns);
	const bool leads = role->role.is_leader;

	mutex_lock(&g->mutex);
	/* A worker may still append a row that was committed before, so the
	 * node opens only with this row in the journal. */
	while (!g->is_dead && g->next_lsn <= role->role.lsn)
		group_wait(g, &until);
	g->follows = !leads;
	strcpy(g->leader, role->role.leader);
	journal_set_shared(g->journal, role->role.group);
	if (leads &&
	    (g->waiting.lsn != 0 ||
		deferred_lacking(g->base.host->deferred, NULL) > 0))
		group_die(g,
		    "refd-group has made this node the leader while rows of "
		    "the group wait here: report this as an error of refd");
	if (role->role.lsn != g->next_lsn - 1)
		group_die(g,
		    "refd-group has named another last row than the "
		    "journal has: report this as an error of refd");
	g->epoch = 0;
	if (leads && g->may_lead && g->fd >= 0 && !g->is_dead &&
	    !g->is_stopping)
		g->epoch = role->role.epoch;
	group_begin_known(g, g->epoch);
	snprintf(g->refusal, sizeof(g->refusal),
	    leads ? "the node '%s' has lost the connection to refd-group" :
		    "this node follows: the node '%s' leads the group",
	    role->role.leader);
	if (!g->is_dead)
		group_tell(g, leads ? STORE_NODE_LEADS : STORE_NODE_FOLLOWS,
		    role->role.leader);
	mutex_unlock(&g->mutex);
}

/* ---- following ---- */

/* Takes the first frame out of the queue, and the rows behind a row. Under
 * MUTEX. */
static struct group_input *take_input(struct group *g)
{
	struct group_input *first = g->input, *last = first;
	size_t nr = 1;

	g->input_bytes -= first->len;
	while (first->frame.type == GROUP_ROW && last->next != NULL &&
	    last->next->frame.type == GROUP_ROW && nr++ < GROUP_ROWS) {
		last = last->next;
		g->input_bytes -= last->len;
	}
	g->input = last->next;
	if (g->input == NULL)
		g->input_end = &g->input;
	last->next = NULL;
	return first;
}

bool group_next(struct group *g, int64_t wait_ns, struct group_input **next)
{
	const struct timespec until = time_after(wait_ns);
	bool goes_on;
	int r = 0;

	mutex_lock(&g->mutex);
	g->is_following = false;
	pthread_cond_broadcast(&g->changed);
	while (g->input == NULL && !g->is_stopping && !g->is_dead &&
	    !g->is_woken && r != ETIMEDOUT)
		r = mutex_wait_until(&g->has_input, &g->mutex, &until);
	g->is_woken = false;
	goes_on = !g->is_stopping && !g->is_dead;
	*next = NULL;
	if (goes_on && g->input != NULL) {
		g->is_following = true;
		g->following_ns = SYS(g->base.host->sys, now_mono);
		*next = take_input(g);
	}
	mutex_unlock(&g->mutex);
	return goes_on;
}

void group_wake(struct group *g)
{
	mutex_lock(&g->mutex);
	g->is_woken = true;
	pthread_cond_signal(&g->has_input);
	mutex_unlock(&g->mutex);
}

/* If recovery could not redo a repository, this node lacks refs, and after
 * several starts nobody knows from which row on. So the node says that no row
 * is applied, and does not take the lead. But a leader (epoch > 0) goes on: a
 * repository that comes back must not stop a leader, because its owner could
 * then move the lead. */
uint64_t group_applied_lsn(const struct group *g)
{
	if (g->epoch == 0 && deferred_lacking(g->base.host->deferred, NULL) > 0)
		return 0;
	return g->waiting.lsn != 0 && g->waiting.lsn <= g->done_lsn ?
	    g->waiting.lsn - 1 :
	    g->done_lsn;
}

void group_tell_applied(struct group *g)
{
	const struct group_frame f = { .type = GROUP_APPLIED,
		.applied = { .lsn = group_applied_lsn(g),
		    .last = g->done_lsn } };

	g->tell_at = time_after(ALIVE_NS);
	group_send(g, &f);
}

void group_applied(struct group *g, uint64_t lsn)
{
	mutex_lock(&g->mutex);
	if (g->unflushed_lsn != 0 && lsn >= g->unflushed_lsn)
		lsn = g->unflushed_lsn - 1;
	/* If a flush fails, the journal is dead, and still counts rows that it
	 * may have lost. So nothing is counted then. */
	if (lsn > g->done_lsn && !g->is_dead) {
		g->done_lsn = lsn;
		pthread_cond_broadcast(&g->changed);
		/* Nobody waits for the number of a leader, so the next APPLIED
		 * is soon enough. */
		if (g->epoch == 0)
			group_tell_applied(g);
	}
	mutex_unlock(&g->mutex);
}

void group_set_waiting(struct group *g, const struct group_waiting *waiting)
{
	uint64_t before;

	mutex_lock(&g->mutex);
	before = group_applied_lsn(g);
	if (!g->is_dead)
		g->waiting = *waiting;
	if (group_applied_lsn(g) != before)
		group_tell_applied(g);
	mutex_unlock(&g->mutex);
}
