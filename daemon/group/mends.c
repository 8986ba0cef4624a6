/*
 * Mends refs that have another value than the group gave them, when batches of
 * this node meet such refs. The thread of the follower does the mending
 * (mend.h), because this thread has nothing else to do while the node leads. A
 * scan looks for more, because no batch meets a ref that nobody updates: an
 * older copy of a repository, or git with reftables, changes refs without a
 * hook. The scan reads every repository, and a disk that hangs must not stop
 * the rows, so the scan has a worker.
 *
 * The happy path: the value of the group is read from the journal, and the ref
 * gets this value back. The batch that has met the ref tries its update again.
 * The scan compares all values of the journal with the disks at each start,
 * whenever the role changes, and each hour, in a tenth of a worker's time.
 *
 * Failures: the ref is tried again, less and less often, and the log says why.
 * Only updates of this ref wait meanwhile. If the list is full, the ref that
 * has failed most often goes, since the next scan or update finds it again. A
 * mended ref goes from the list, too, although another program may write this
 * ref again and again: otherwise the thread would mend the ref without a pause.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/foreign_ref.h"
#include "daemon/group/mend.h"
#include "daemon/store/deferred/deferred.h"

#define MENDS_MAX    1000
#define SCAN_REFS    100
#define SCAN_PART    10
#define SCAN_NS      (3600 * 1000000000LL)
#define PAUSE_NS     (20 * 1000000LL)
#define PAUSE_MAX_NS (10 * 1000000000LL)

struct mend {
	char path[REFD_PATH_MAX]; /* of the repository */
	char name[REFD_REFNAME_MAX + 1];
	struct attempt attempt;
	int64_t next_ns, pause_ns;
	bool is_in_work; /* stays in the list */
	LIST_ENTRY(mend) link;
};

/* Under the mutex. True: NAME is not in the list, which has room. */
static bool make_room(struct follower *f, const char *path, const char *name)
{
	struct mend *m, *worst = NULL;
	size_t nr = 0;

	LIST_FOREACH(m, &f->mends, link) {
		if (strcmp(m->name, name) == 0 && strcmp(m->path, path) == 0)
			return false;
		if (!m->is_in_work &&
		    (worst == NULL || m->pause_ns > worst->pause_ns))
			worst = m;
		nr++;
	}
	if (nr >= MENDS_MAX) {
		LIST_REMOVE(worst, link);
		free(worst);
	}
	return true;
}

void follower_mend(struct follower *f, const struct repo *repo,
    const char *name)
{
	struct mend *m = NULL;

	mutex_lock(&f->mutex);
	if (make_room(f, repo->path, name))
		m = calloc(1, sizeof(*m));
	if (m != NULL) {
		strcpy(m->path, repo->path);
		strcpy(m->name, name);
		attempt_init(f, &m->attempt, NULL);
		strcpy(m->attempt.path, repo->path);
		m->attempt.event = STORE_REF_DIVERGED;
		m->pause_ns = PAUSE_NS;
		LIST_INSERT_HEAD(&f->mends, m, link);
	}
	mutex_unlock(&f->mutex);
	if (m != NULL)
		group_wake(f->group);
}

static void drop(struct follower *f, struct mend *m)
{
	mutex_lock(&f->mutex);
	LIST_REMOVE(m, link);
	mutex_unlock(&f->mutex);
	free(m);
}

void mends_free(struct follower *f)
{
	while (!LIST_EMPTY(&f->mends))
		drop(f, LIST_FIRST(&f->mends));
}

/* An older copy of the repository lacks the object, so another node is asked
 * for it. */
static void fetch(struct follower *f, struct mend *m, const struct repo *repo,
    const struct journal_value *want)
{
	const int64_t now_ns = SYS(f->host->sys, now_mono);

	if (!want->exists || now_ns < m->attempt.fetch_ns)
		return;
	m->attempt.fetch_ns = now_ns + f->patience_ns;
	group_fetch_here(f->group, repo, &want->oid);
}

static enum result mend(struct follower *f, struct mend *m,
    const struct repo *repo)
{
	struct journal_value want;
	enum result result = RESULT_DIFFERS;
	int r = journal_find_value(f->host->repos->journal, repo->id, m->name,
	    &want);

	if (r < 0) {
		result =
		    attempt_waits(&m->attempt, "the journal can't be read");
	} else if (r > 0) {
		m->attempt.lsn = want.lsn;
		m->attempt.lacks_object = false;
		result = mend_ref(f, &m->attempt, repo, m->name, &want, NULL);
		if (m->attempt.lacks_object)
			fetch(f, m, repo, &want);
	}
	free(want.target);
	return result;
}

static void try_one(struct follower *f, struct mend *m)
{
	enum result result = RESULT_DIFFERS;
	enum refd_status status;
	struct repo *repo;
	char *why = NULL;

	repo = repos_get(f->host->repos, m->path, NULL, &status, &why);
	/* If rows of the repository wait, or recovery has to redo rows of it,
	 * these rows are newer than the values. So the ref gets its value from
	 * these rows, and is not mended. */
	if (repo != NULL && !waiting_has(f, repo->uuid) &&
	    !deferred_is_lacking(f->host->deferred, repo->id))
		result = mend(f, m, repo);
	if (repo != NULL)
		repo_put(f->host->repos, repo);
	free(why);
	if (result == RESULT_DIFFERS ||
	    (result == RESULT_AGAIN && !m->attempt.is_part)) {
		drop(f, m);
		return;
	}
	if (result == RESULT_WAITS)
		attempt_report(f, &m->attempt);
	mutex_lock(&f->mutex);
	m->is_in_work = false;
	/* The refs in the way become fewer, so the rest is not put off. */
	if (result == RESULT_AGAIN)
		m->pause_ns = PAUSE_NS;
	m->next_ns = SYS(f->host->sys, now_mono) + m->pause_ns;
	if (m->pause_ns < PAUSE_MAX_NS)
		m->pause_ns *= 2;
	mutex_unlock(&f->mutex);
}

/* The ref that is due first; NULL: no ref is due. *WAIT_NS: the time until the
 * next ref is due. */
static struct mend *take_due(struct follower *f, int64_t *wait_ns)
{
	const int64_t now_ns = SYS(f->host->sys, now_mono);
	struct mend *m, *first = NULL;

	mutex_lock(&f->mutex);
	LIST_FOREACH(m, &f->mends, link)
		if (first == NULL || m->next_ns < first->next_ns)
			first = m;
	*wait_ns = first == NULL ? SCAN_NS : first->next_ns - now_ns;
	if (*wait_ns > 0)
		first = NULL;
	if (first != NULL)
		first->is_in_work = true;
	mutex_unlock(&f->mutex);
	return first;
}

/* Returns the time until the next ref is due. */
int64_t mends_try(struct follower *f)
{
	int64_t wait_ns;
	struct mend *m = take_due(f, &wait_ns);

	if (m != NULL)
		try_one(f, m);
	return m != NULL ? 0 : wait_ns;
}

/* ---- the scan, on a worker ---- */

/* *REPO: of the last value, or NULL. */
static void look_at(struct follower *f, const struct journal_value *value,
    struct repo **repo)
{
	const struct journal_place *at = &f->scan.at;
	struct foreign_ref ref;
	enum refd_status status;
	char *why = NULL;
	int r;

	/* A row that comes later has set the value. The rows before it may need
	 * the room for other names, so the value has to wait. */
	if (value->lsn > journal_shared_lsn(f->host->repos->journal))
		return;
	if (*repo != NULL && (*repo)->id != at->repo) {
		repo_put(f->host->repos, *repo);
		*repo = NULL;
	}
	if (*repo == NULL)
		*repo =
		    repos_get(f->host->repos, at->path, NULL, &status, &why);
	free(why);
	if (*repo == NULL || (*repo)->id != at->repo)
		return;
	r = foreign_ref_read(f->host->sys, *repo, at->ref, &ref);
	if (r < 0 || !mend_is_as_wanted(&ref, value))
		follower_mend(f, *repo, at->ref);
	foreign_ref_done(&ref);
}

/* Compares some values, and sets the time of the next ones. */
static void scan_part(struct value_scan *s, struct follower *f,
    int64_t began_ns)
{
	struct journal_value value;
	struct repo *repo = NULL;
	int64_t now_ns;
	unsigned i;
	int r = 1;

	for (i = 0; i < SCAN_REFS && r == 1; i++) {
		r = journal_next_value(f->host->repos->journal, &s->at, &value);
		if (r == 1)
			look_at(f, &value, &repo);
		free(value.target);
	}
	if (repo != NULL)
		repo_put(f->host->repos, repo);
	now_ns = SYS(f->host->sys, now_mono);
	if (r != 1)
		s->at = (struct journal_place){ .repo = 0 };
	s->due_ns =
	    now_ns + (r == 1 ? SCAN_PART * (now_ns - began_ns) : SCAN_NS);
}

/* work_source.work */
static bool scan_some(void *arg)
{
	struct follower *f = arg;
	struct value_scan *s = &f->scan;
	const int64_t now_ns = SYS(f->host->sys, now_mono);
	bool is_due;

	if (atomic_load(&s->has_ended))
		return false;
	if (atomic_exchange(&s->begins_anew, false)) {
		s->at = (struct journal_place){ .repo = 0 };
		s->due_ns = now_ns;
	}
	is_due = s->due_ns <= now_ns;
	if (is_due)
		scan_part(s, f, now_ns);
	workers_wake_at(f->host->workers, &s->source, s->due_ns);
	return is_due;
}

void mends_init(struct follower *f)
{
	LIST_INIT(&f->mends);
	f->scan.source =
	    (struct work_source){ .work = scan_some, .arg = f, .most = 1 };
	f->scan.due_ns = INT64_MAX;
	workers_add(f->host->workers, &f->scan.source);
}

void mends_scan(struct follower *f)
{
	atomic_store(&f->scan.begins_anew, true);
	workers_wake(f->host->workers, &f->scan.source);
}

void mends_end(struct follower *f)
{
	atomic_store(&f->scan.has_ended, true);
}
