/*
 * Retries the deferred redo in one repository.
 *
 * Happy path: recovery redoes everything. One admission worker retries, before
 * each write to the repository and after each checkpoint, because a retry looks
 * at objects.
 *
 * Failures:
 *	a foreign lock still stands	updates of this ref, also through
 *		a symbolic ref, are answered `locked`: the later redo would
 *		replace a value written before
 *	the search for locks does not end	an admission does not repeat
 *		the search (deferred_is_endless())
 *	the disk	nothing in the repository may be written until the disk
 *		works again
 *	other machines have the records	the same, and this machine counts as
 *		lacking them; the next retry comes later (deferred_set_pause())
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/hash.h"
#include "daemon/store/deferred/deferred_fs.h"
#include "daemon/store/deferred/deferred_internal.h"
#include "daemon/store/deferred/deferred_retry.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/recovery/leftover_locks.h"
#include "daemon/store/recovery/recover.h"
#include "proto/refname.h"

static void no_progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

/* An update would write this file, and further updates of the same file are in
 * next_same. */
struct lead {
	struct txn_update *u;
	struct lead *next_same;
	UT_hash_handle hh;
	char key[]; /* worktree, "/", name */
};

/* One retry of an admission, as the argument of recover_deferred(). */
struct retry {
	struct deferred *deferred;
	struct repo *repo;
	struct txn *txn; /* or NULL */
	/* The files of TXN's updates. Made once, and only when something is
	 * still deferred, because there may be very many updates and deferred
	 * members. */
	struct lead *leads;
	bool has_leads;
	uint64_t nr_found[STORE_FINDINGS];
};

/* Passes a finding of the retry on. The first failure of a member was reported
 * already. If the member fails again in the same way, nothing is reported. */
static void found(void *arg, const struct store_found *found)
{
	struct retry *retry = arg;
	const struct store_config *cfg = retry->deferred->cfg->config;

	retry->nr_found[found->finding]++;
	switch (found->finding) {
	case STORE_REDONE:
	case STORE_ROLLED_FORWARD:
	case STORE_UNLOCKED:
	case STORE_LOG_REPAIRED:
	case STORE_TABLE_MENDED:
	case STORE_OBJECTS_RESTORED:
	case STORE_LEFT:
	case STORE_DROPPED:
	case STORE_OBJECT_MISSING:
	case STORE_OBJECT_LACKING:
	case STORE_CORRUPT:
		if (cfg->found != NULL)
			cfg->found(cfg->found_arg, found);
		break;
	case STORE_DEFERRED:
	case STORE_REPO_MISSING:
	case STORE_FAILED:
		break;
	}
}

static int has_object(void *arg, struct repo *repo, const struct refd_oid *oid)
{
	const struct store_parts *cfg = ((struct retry *)arg)->deferred->cfg;

	return cfg->has_object(cfg->store, repo, oid);
}

static uint64_t next_token(void *arg)
{
	const struct store_parts *cfg = ((struct retry *)arg)->deferred->cfg;

	return cfg->next_token(cfg->store);
}

/* git's own limit. */
#define SYMREF_DEPTH 5

/* The id of the worktree whose names TXN uses, as in records. */
static const char *worktree_of(const struct txn *txn, size_t *id_len)
{
	static const char parent[] = "/worktrees/";
	const char *dir = txn->req.git_dir, *id;
	size_t len = strlen(dir), parent_len = sizeof(parent) - 1;

	while (len > 0 && dir[len - 1] == '/')
		len--;
	id = memrchr(dir, '/', len);
	*id_len = 0;
	if (id == NULL || (size_t)(++id - dir) < parent_len ||
	    strncmp(id - parent_len, parent, parent_len) != 0)
		return "";
	*id_len = len - (size_t)(id - dir);
	return id;
}

/* A file by worktree and name, as in records. */
struct file {
	char worktree[REFD_REFNAME_MAX + 1];
	const char *name;
};

static void file_of(const struct txn *txn, const char *name, struct file *file)
{
	size_t len = 0;
	const char *id;

	switch (refd_refname_place(name, &id, &len, &file->name)) {
	case REFD_PLACE_COMMON:
	case REFD_PLACE_MAIN:
		break;
	case REFD_PLACE_OWN:
		id = worktree_of(txn, &len);
		break;
	case REFD_PLACE_LINKED:
		break;
	}
	snprintf(file->worktree, sizeof(file->worktree), "%.*s", (int)len,
	    len > 0 ? id : "");
}

/* Reads the target of FILE, or returns false if FILE is not a symbolic ref. */
static bool follow(const struct retry *retry, const struct file *file,
    struct loose_value *value)
{
	const struct sys *sys = retry->deferred->cfg->sys;
	int fd, r;

	fd = repo_open_worktree(sys, retry->repo, file->worktree);
	if (fd < 0)
		return false;
	r = loose_read(sys, fd, file->name, retry->repo->object_format, value);
	if (fd != retry->repo->fd)
		SYS(sys, close, fd);
	if (r == 0 && value->kind != LOOSE_SYMREF)
		loose_value_done(value);
	return r == 0 && value->kind == LOOSE_SYMREF;
}

static void lead_key(char key[2 * REFD_REFNAME_MAX + 2], const char *worktree,
    const char *name)
{
	snprintf(key, 2 * REFD_REFNAME_MAX + 2, "%s/%s", worktree, name);
}

static void add_lead(struct retry *retry, struct txn_update *u,
    const struct file *file)
{
	char key[2 * REFD_REFNAME_MAX + 2];
	struct lead *lead, *first;

	lead_key(key, file->worktree, file->name);
	lead = calloc(1, sizeof(*lead) + strlen(key) + 1);
	if (lead == NULL) {
		txn_decide(u, BUSY(MEMORY));
		return;
	}
	lead->u = u;
	strcpy(lead->key, key);
	HASH_FIND_STR(retry->leads, key, first);
	if (first != NULL) {
		lead->next_same = first->next_same;
		first->next_same = lead;
		return;
	}
	HASH_ADD_STR(retry->leads, key, lead);
	if (lead->hh.tbl == NULL) {
		free(lead);
		txn_decide(u, BUSY(MEMORY));
	}
}

/* Adds the files that U would write. Later the batch follows the symbolic refs
 * again under locks, and they hardly ever change in between. */
static void add_leads(struct retry *retry, struct txn_update *u)
{
	struct loose_value at = { .kind = LOOSE_ABSENT }, next;
	struct file here;
	unsigned depth;

	file_of(u->txn, u->ask->name, &here);
	for (depth = 0; u->status == REFD_PENDING; depth++) {
		add_lead(retry, u, &here);
		if (depth == SYMREF_DEPTH || u->ask->no_deref ||
		    !follow(retry, &here, &next))
			break;
		loose_value_done(&at);
		at = next;
		file_of(u->txn, at.target, &here);
	}
	loose_value_done(&at);
}

static void free_leads(struct retry *retry)
{
	struct lead *lead, *next, *same;

	HASH_ITER(hh, retry->leads, lead, next) {
		HASH_DEL(retry->leads, lead);
		while ((same = lead->next_same) != NULL) {
			lead->next_same = same->next_same;
			free(same);
		}
		free(lead);
	}
}

static void refuse_name(void *arg, const char *worktree, const char *name)
{
	char key[2 * REFD_REFNAME_MAX + 2];
	struct retry *retry = arg;
	struct txn *txn = retry->txn;
	struct lead *lead;
	size_t i;

	for (i = 0; txn != NULL && !retry->has_leads && i < txn->nr_updates;
	    i++)
		add_leads(retry, &txn->updates[i]);
	retry->has_leads = true;
	lead_key(key, worktree, name);
	HASH_FIND_STR(retry->leads, key, lead);
	for (; lead != NULL; lead = lead->next_same)
		if (lead->u->status == REFD_PENDING)
			txn_decide(lead->u, REFD_LOCKED,
			    "an earlier update of it awaits another writer's "
			    "lock");
}

static void ended(void *arg, uint64_t lsn, uint32_t index)
{
	deferred_end_update(((struct retry *)arg)->deferred, lsn, index);
}

static void tell(const struct deferred *d, enum store_event event,
    const struct repo *repo, const char *why)
{
	if (d->cfg->config->event != NULL)
		d->cfg->config->event(event, repo->path, why);
}

/* The retry of REC, which took TOOK_NS, has failed with ERR. */
static void tell_failed(struct deferred *d, const struct repo *repo, int err,
    const struct store_recovery *rec, int64_t took_ns)
{
	if (rec->lacks_refs) {
		deferred_note_lacking(d, repo->id);
		deferred_set_pause(d, repo->id, took_ns);
	}
	if (deferred_fail_retry(d, repo->id, err))
		tell(d, STORE_REPO_WAITS, repo,
		    rec->why != NULL ? rec->why : leftover_locks_why(err));
}

static void tell_recovered(const struct retry *retry)
{
	const uint64_t *nr = retry->nr_found;
	char text[128];

	snprintf(text, sizeof(text),
	    "%" PRIu64 " refs redone, %" PRIu64 " left as another wrote them",
	    nr[STORE_REDONE] + nr[STORE_ROLLED_FORWARD],
	    nr[STORE_LEFT] + nr[STORE_OBJECT_MISSING]);
	tell(retry->deferred, STORE_REPO_RECOVERED, retry->repo, text);
}

int deferred_retry(struct deferred *d, struct repo *repo, struct txn *txn)
{
	struct retry retry = { .deferred = d, .repo = repo, .txn = txn };
	const struct store_report report = { found, no_progress, &retry };
	struct store_recovery rec = { .sys = d->cfg->sys,
		.repos = d->cfg->repos,
		.log = d->cfg->log,
		.report = &report,
		.has_object = has_object,
		.next_token = next_token,
		.still_deferred = refuse_name,
		.rows_mutex = &d->rows,
		.ended = ended,
		.live = deferred_fs_first_batch(d, repo),
		.arg = &retry };
	const int64_t began_ns = SYS(d->cfg->sys, now_mono);
	uint64_t members, left, *over;
	int r;

	if (txn != NULL && deferred_is_endless(d, repo->id))
		return -EUSERS;
	r = txn != NULL ? deferred_paused(d, repo->id) : 0;
	if (r < 0)
		return r;
	/* deferred_fs.c notes members before they are in the journal, so ROWS
	 * makes this retry wait until they are. */
	mutex_lock(&d->rows);
	r = deferred_begin_retry(d, repo->id, &members, &over, &rec.nr_over);
	mutex_unlock(&d->rows);
	if (r < 0)
		return r;
	rec.over = over;
	r = recover_deferred(&rec, repo, &left);
	free_leads(&retry);
	if (r == 0)
		deferred_unlocked(d, repo->id, over, rec.nr_over);
	free(over);
	if (r < 0)
		tell_failed(d, repo, r, &rec,
		    SYS(d->cfg->sys, now_mono) - began_ns);
	else if (deferred_end_retry(d, repo->id, members, left)) {
		/* A damaged stack was reported, and is not served, so nothing
		 * has recovered. */
		if (retry.nr_found[STORE_CORRUPT] == 0)
			tell_recovered(&retry);
		deferred_publish(d);
	}
	free(rec.why);
	return r;
}
