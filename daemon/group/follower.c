#include "daemon/group/follower.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/follower_internal.h"
#include "daemon/group/mend.h"
#include "daemon/group/row_objects_write.h"
#include "daemon/group/row_place.h"

#define PAUSE_NS     (20 * 1000000LL)
#define PAUSE_MAX_NS (200 * 1000000LL)
/* A row that can't be applied in this time is put off, because the rows of all
 * repositories wait for the attempt. */
#define SOON_NS (1000 * 1000000LL)
/* In this time after a repository began to wait, a row of another repository
 * gets one attempt, and not attempts for SOON_NS. Otherwise many repositories
 * that begin to wait would each cost the other repositories a second. */
#define HURRY_NS (60 * 1000000000LL)
/* A reported row that still waits is reported again after this time. */
#define REPEAT_NS (60 * 1000000000LL)
/* A missing repository is searched for only after this time, because refd-group
 * makes a new repository in less time. */
#define SEARCH_NS (2 * 1000000000LL)
/* The time until the objects of a row are asked for again. Each further pause
 * is twice as long, up to group.patience. */
#define FETCH_NS (250 * 1000000LL)
/* Searches take at most this part of the time. */
#define SEARCH_PART 10

/* ---- admission ---- */

bool follower_take(struct follower *f, struct txn *txn)
{
	if (!txn->is_own)
		return false;
	mutex_lock(&f->mutex);
	if (--f->nr_admitting == 0)
		pthread_cond_signal(&f->back);
	mutex_unlock(&f->mutex);
	return true;
}

void follower_admit(struct follower *f, struct own_txn *rows, size_t nr)
{
	struct txn_fifo txns = { .head = NULL };
	size_t i;

	for (i = 0; i < nr; i++)
		txn_fifo_put(&txns, rows[i].txn);
	mutex_lock(&f->mutex);
	f->nr_admitting += nr;
	mutex_unlock(&f->mutex);
	admissions_admit(f->host->admissions, &txns);
	mutex_lock(&f->mutex);
	while (f->nr_admitting > 0)
		mutex_wait(&f->back, &f->mutex);
	mutex_unlock(&f->mutex);
}

void follower_put_repo(struct follower *f, struct txn *txn)
{
	if (txn->repo != NULL)
		repo_put(f->host->repos, txn->repo);
	txn->repo = NULL;
}

void follower_let_go(struct follower *f)
{
	if (f->written != NULL)
		repo_put(f->host->repos, f->written);
	f->written = NULL;
}

/* ---- results ---- */

void attempt_say(struct attempt *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->why, sizeof(a->why), fmt, ap);
	va_end(ap);
}

enum result attempt_waits(struct attempt *a, const char *why)
{
	attempt_say(a, "%s", why);
	return RESULT_WAITS;
}

/* A detail can have any bytes of clients, so control bytes become spaces. */
void attempt_make_readable(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ')
			*text = ' ';
}

static bool is_of_refs(enum refd_status status)
{
	switch (status) {
	case REFD_STALE:
	case REFD_EXISTS:
	case REFD_MISSING:
	case REFD_CONFLICT:
	case REFD_NOTSYMREF:
	case REFD_DENIED:
		return true;
	case REFD_OK:
	case REFD_LOCKED:
	case REFD_BADNAME:
	case REFD_NOOBJECT:
	case REFD_NOTCOMMIT:
	case REFD_HOOK_DECLINED:
	case REFD_NOSPACE:
	case REFD_IO:
	case REFD_BUSY:
	case REFD_DEADLINE:
	case REFD_ABORTED:
	case REFD_UNSUPPORTED:
	case REFD_UNKNOWN:
	case REFD_BROKEN:
	case REFD_DUPLICATE:
	case REFD_NOREPO:
	case REFD_BADREQUEST:
	case REFD_LIMIT:
	case REFD_PENDING:
		break;
	}
	return false;
}

bool attempt_differs(const struct record_member *m, const struct txn_update *u)
{
	return record_changes_ref(m) && is_of_refs(u->status);
}

static enum result look_at_update(struct attempt *a, const struct txn_update *u)
{
	if (u->status == REFD_PENDING) {
		attempt_say(a,
		    "'%s' of '%s' is locked by another program, or must be "
		    "tried again",
		    u->ask->name, a->path);
		return RESULT_WAITS;
	}
	attempt_say(a, "'%s' of '%s': %s%s%s", u->ask->name, a->path,
	    refd_status_name(u->status), u->text != NULL ? ", " : "",
	    u->text != NULL ? u->text : "");
	attempt_make_readable(a->why);
	return is_of_refs(u->status) ? RESULT_DIFFERS : RESULT_WAITS;
}

/* If an update of an atomic transaction fails, the others are aborted, so an
 * aborted update never is the cause. */
static bool is_cause(const struct txn_update *u)
{
	return u->status != REFD_OK && u->status != REFD_ABORTED;
}

/* Looks why TXN cannot be applied, or was not. Before the batch, no update of
 * TXN should be decided; after the batch, all updates should be OK. An update
 * that differs counts more than an update that waits, because only a difference
 * can be mended. */
static enum result look_at_updates(struct attempt *a, const struct own_txn *rt,
    bool is_applied)
{
	const struct record *rec = &rt->record;
	enum result result = RESULT_DONE, next;
	const struct txn_update *u;
	size_t i;

	/* The journal has the row, so the update cannot be tried again. */
	if (is_applied && rt->slice.lsn != 0)
		return RESULT_DONE;
	if (is_applied)
		result = attempt_waits(a, "the journal does not take the row");
	for (i = 0; i < rec->nr_members && result != RESULT_DIFFERS; i++) {
		u = &rt->txn->updates[rec->members[i].index];
		if (!rec->members[i].answers ||
		    rec->members[i].status != REFD_OK || !is_cause(u) ||
		    (u->status == REFD_PENDING && !is_applied))
			continue;
		next = look_at_update(a, u);
		if (next > result)
			result = next;
	}
	return result;
}

/* ---- one row ---- */

static bool has_uuid(struct attempt *a, const struct own_txn *rt)
{
	const struct repo *repo = rt->txn->repo;

	if (memcmp(repo->uuid, rt->from->repo, sizeof(repo->uuid)) == 0)
		return true;
	attempt_say(a,
	    "'%s' has another id in refd/id than on the other nodes: it is not "
	    "a copy of their repository, or others could write the file",
	    repo->path);
	return false;
}

/* Has this node the refs that the repository had before the row? */
static bool has_past(const struct follower *f, struct attempt *a,
    const struct own_txn *rt)
{
	const struct repo *repo = rt->txn->repo;
	int r = 1;

	if (rt->record.continues)
		r = group_repo_may_continue(f->host, repo);
	if (r == 0)
		attempt_say(a,
		    "'%s' had refs before this node joined, and this node does "
		    "not have them: stop the node, copy the repository from "
		    "another node, with refd/, and start again; if it is gone "
		    "there, run refd group join",
		    repo->path);
	else if (r < 0)
		attempt_say(a, "can't read the refs of '%s': %s", repo->path,
		    strerror(-r));
	return r > 0;
}

bool attempt_is_refused(struct attempt *a, const struct txn *txn)
{
	if (txn->refused != REFD_OK)
		attempt_waits(a,
		    txn->why != NULL ? txn->why :
				       refd_status_name(txn->refused));
	return txn->refused != REFD_OK;
}

enum result attempt_look(const struct follower *f, struct attempt *a,
    const struct own_txn *rt)
{
	if (attempt_is_refused(a, rt->txn))
		return RESULT_WAITS;
	if (!has_uuid(a, rt))
		return RESULT_DIFFERS;
	return has_past(f, a, rt) ? look_at_updates(a, rt, false) :
				    RESULT_WAITS;
}

/* The row was committed when enough other nodes had the repository and the
 * objects. This node may lack both, so it asks for them. */
static void fetch_missing(struct follower *f, struct attempt *a,
    const struct own_txn *rt)
{
	const struct txn *txn = rt->txn;
	struct refd_oid *oids;
	size_t i, nr = 0;

	if (SYS(f->host->sys, now_mono) < a->fetch_ns)
		return;
	/* The question is repeated after a pause, because it can be lost:
	 * refd-group drops a question while a fetch for another row of the
	 * repository runs, and the leader may change during a fetch. */
	a->fetch_pause_ns =
	    a->fetch_pause_ns > 0 ? 2 * a->fetch_pause_ns : FETCH_NS;
	if (a->fetch_pause_ns > f->patience_ns)
		a->fetch_pause_ns = f->patience_ns;
	a->fetch_ns = SYS(f->host->sys, now_mono) + a->fetch_pause_ns;
	/* The repository may be a new one, or git may have pruned the objects,
	 * so the objects of the row are written again. */
	a->has_written = false;
	oids = calloc(txn->nr_updates + 1, sizeof(*oids));
	for (i = 0; oids != NULL && i < txn->nr_updates; i++)
		if (!refd_oid_is_null(&txn->updates[i].ask->new_oid))
			oids[nr++] = txn->updates[i].ask->new_oid;
	if (oids != NULL)
		group_fetch(f->group, a->row->repo, &a->row->path,
		    rt->record.object_format, oids, nr);
	free(oids);
}

bool attempt_write_objects(struct follower *f, struct attempt *a,
    const struct record *rec)
{
	int r = 0;

	if (!a->has_written)
		r = row_objects_write(f->host->repos, &f->written, a->path,
		    a->row, rec);
	a->has_written = r == 0;
	if (r < 0)
		attempt_say(a, "can't write the objects of the row to '%s': %s",
		    a->path, strerror(-r));
	return r >= 0;
}

/* PLACED: 0, or why the repository is not in its place. */
static enum result apply(struct follower *f, struct attempt *a,
    struct own_txn *rt, int placed)
{
	enum result result;
	bool is_ready;

	if (placed == -ENOENT)
		fetch_missing(f, a, rt);
	is_ready = placed >= 0 && attempt_write_objects(f, a, &rt->record);
	follower_let_go(f);
	if (!is_ready)
		return RESULT_WAITS;
	follower_admit(f, rt, 1);
	result = attempt_look(f, a, rt);
	if (result != RESULT_DONE) {
		fetch_missing(f, a, rt);
		return result;
	}
	pipeline_apply_rows(f->host->pipeline, &rt->slice, 1);
	result = look_at_updates(a, rt, true);
	return result == RESULT_DIFFERS ? mend_row(f, a, rt) : result;
}

/* As row_place_put(). */
static int place(struct follower *f, struct attempt *a)
{
	const int64_t now_ns = SYS(f->host->sys, now_mono);
	const struct row_place place = { .repos = f->host->repos,
		.event = f->host->config->event,
		.lsn = a->lsn,
		.only_looks = a->only_looks,
		.searches = a->search_ns != 0 && now_ns >= a->search_ns &&
		    now_ns >= f->search_ns,
		.has_left = a->has_left };
	int r = row_place_put(&place, a->row, a->path, a->why, sizeof(a->why));
	const int64_t took_ns = SYS(f->host->sys, now_mono) - now_ns;

	if (place.searches) {
		a->search_ns = now_ns + f->patience_ns;
		f->search_ns = now_ns + SEARCH_PART * took_ns;
	} else if (r == -ENOENT && a->search_ns == 0) {
		a->search_ns = now_ns + SEARCH_NS;
	}
	return r;
}

bool attempt_prepare(struct follower *f, struct attempt *a, const char *path,
    struct own_txn *rt)
{
	if (path != NULL)
		snprintf(a->path, sizeof(a->path), "%s", path);
	else if (place(f, a) < 0)
		return false;
	return own_txn_of_row(rt, a->row, a->lsn, a->path) == 0;
}

void attempt_init(const struct follower *f, struct attempt *a,
    const struct group_input *in)
{
	const int64_t now_ns = SYS(f->host->sys, now_mono);

	*a = (struct attempt){ .row = in != NULL ? &in->frame.row.row : NULL,
		.lsn = in != NULL ? in->frame.row.lsn : 0,
		.since_ns = now_ns,
		.event = STORE_ROW_WAITS,
		.report_ns = now_ns + f->patience_ns / 2 };
}

void attempt_report(struct follower *f, struct attempt *a)
{
	int64_t now_ns = SYS(f->host->sys, now_mono);
	char text[FOLLOWER_WHY_MAX + 64];
	int len = 0;

	if (now_ns < a->report_ns)
		return;
	a->report_ns = now_ns + REPEAT_NS;
	if (a->event == STORE_ROW_WAITS)
		len = snprintf(text, sizeof(text),
		    "row %" PRIu64 " of the group cannot be applied: ", a->lsn);
	snprintf(text + len, sizeof(text) - (size_t)len, "%s", a->why);
	if (f->host->config->event != NULL)
		f->host->config->event(a->event, a->path, text);
}

enum result attempt_try(struct follower *f, struct attempt *a)
{
	struct own_txn rt;
	enum result result;
	int placed = place(f, a);
	int r = own_txn_of_row(&rt, a->row, a->lsn, a->path);

	/* Mending may take as long as the attempt has taken (mend.c). The time
	 * of a search does not count, because a search can take minutes. */
	a->began_ns = SYS(f->host->sys, now_mono);
	if (r == 0) {
		result = apply(f, a, &rt, placed);
		follower_put_repo(f, rt.txn);
		own_txn_done(&rt);
	} else {
		result = attempt_waits(a,
		    r == -ENOMEM ? strerror(ENOMEM) :
				   "this version of refd can't read the row");
	}
	if (result == RESULT_AGAIN)
		attempt_say(a, "refs of '%s' get the group's values back",
		    a->path);
	if (result != RESULT_DONE)
		attempt_report(f, a);
	return result;
}

/* False: the row must be put off. */
static bool apply_soon(struct follower *f, struct attempt *a)
{
	int64_t pause_ns = PAUSE_NS, end_ns = a->since_ns;
	enum result result;

	if (f->put_ns == 0 || a->since_ns - f->put_ns > HURRY_NS)
		end_ns += SOON_NS;
	for (;;) {
		result = attempt_try(f, a);
		if (result == RESULT_DONE)
			return true;
		if (SYS(f->host->sys, now_mono) >= end_ns)
			return false;
		SYS(f->host->sys, sleep_ns, pause_ns);
		if (pause_ns < PAUSE_MAX_NS)
			pause_ns *= 2;
	}
}

/* False: the next connection brings the row again. */
static bool take_row(struct follower *f, const struct group_input *in)
{
	struct attempt a;

	attempt_init(f, &a, in);
	return waiting_leave(f, &a) &&
	    ((!waiting_has(f, a.row->repo) && apply_soon(f, &a)) ||
		waiting_put(f, in, &a));
}

void follower_take_rows(struct follower *f, const struct group_input *in)
{
	bool is_applied, is_taken = true;
	uint64_t last = 0;
	size_t nr;

	while (in != NULL && is_taken && group_is_linked(f->group)) {
		is_applied = together_apply(f, in, &nr);
		for (; nr > 0 && is_taken; nr--) {
			is_taken = is_applied || take_row(f, in);
			if (is_taken) {
				last = in->frame.row.lsn;
				group_applied(f->group, last);
			}
			in = in->next;
		}
	}
	/* Rows that were put off share this flush, so they count as durable
	 * only behind it. */
	if (group_flush_postponed(f->group) == 0)
		group_applied(f->group, last);
}

/* Tries what waits. Returns the time until the next attempt. */
static int64_t next_try(struct follower *f)
{
	const int64_t rows_ns = waiting_try(f), mends_ns = mends_try(f);

	return rows_ns < mends_ns ? rows_ns : mends_ns;
}

static void *follower_main(void *arg)
{
	struct follower *f = arg;
	struct group_input *in;

	while (group_next(f->group, next_try(f), &in)) {
		if (in != NULL && in->frame.type == GROUP_ROLE) {
			group_take_role(f->group, &in->frame);
			mends_scan(f);
		} else if (in != NULL) {
			follower_take_rows(f, in);
		}
		group_input_free(in);
	}
	return NULL;
}

/* ---- life ---- */

struct follower *follower_new(const struct store_parts *host,
    struct group *group, int64_t patience_ns)
{
	struct follower *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->host = host;
	f->group = group;
	f->patience_ns = patience_ns;
	LIST_INIT(&f->waiting);
	mends_init(f);
	mutex_init(&f->mutex, MUTEX_INNER);
	pthread_cond_init(&f->back, NULL);
	return f;
}

void follower_free(struct follower *f)
{
	if (f == NULL)
		return;
	waiting_free(f);
	mends_free(f);
	pthread_cond_destroy(&f->back);
	mutex_destroy(&f->mutex);
	free(f);
}

int follower_start(struct follower *f)
{
	int r = waiting_load(f);

	if (r != 0)
		return r < 0 ? r : -EIO;
	f->has_thread = pthread_create(&f->thread, NULL, follower_main, f) == 0;
	return f->has_thread ? 0 : -EAGAIN;
}

void follower_stop(struct follower *f)
{
	if (f->has_thread)
		pthread_join(f->thread, NULL);
	f->has_thread = false;
	mends_end(f);
}
