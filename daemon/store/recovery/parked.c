/*
 * Records that recovery could not redo: tried again at every admission in
 * their repository, and with every checkpoint; by the one lane thread that is
 * in the repository, since their objects are looked at. A search for locks that
 * does not end is left to checkpoints (awaiting.c).
 *
 * What fails: a foreign lock still stands, then the ref is answered locked,
 * since the record would undo whatever is written before it is redone, also
 * where a symbolic ref leads to it; the disk, then nothing in the repository
 * may be written until it is mended.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/refs/loose.h"
#include "daemon/store/store_internal.h"
#include "proto/refname.h"

static void no_progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

/* That an update would write a file; of one file the first has the others. */
struct lead {
	struct txn_update *u;
	struct lead *next_same;
	UT_hash_handle hh;
	char key[]; /* worktree, "/", name */
};

/* One admission's retry, as recover_parked()'s argument. */
struct retry {
	struct store *store;
	struct repo *repo;
	struct txn *txn; /* or NULL */
	/* Of TXN's updates, looked up once, when something is still parked:
	 * there may be very many of both. */
	struct lead *leads;
	bool has_leads;
	uint64_t nr_found[STORE_FINDINGS];
};

/* What is only tried again, and fails as before, was told when it began. */
static void found(void *arg, const struct store_found *found)
{
	struct retry *retry = arg;
	const struct store_config *cfg = &retry->store->cfg;

	retry->nr_found[found->finding]++;
	switch (found->finding) {
	case STORE_REDONE:
	case STORE_ROLLED_FORWARD:
	case STORE_UNLOCKED:
	case STORE_LOG_REPAIRED:
	case STORE_LEFT:
	case STORE_DROPPED:
	case STORE_OBJECT_MISSING:
	case STORE_CORRUPT:
		if (cfg->found != NULL)
			cfg->found(cfg->found_arg, found);
		break;
	case STORE_PARKED:
	case STORE_REPO_MISSING:
	case STORE_FAILED:
		break;
	}
}

static int has_object(void *arg, struct repo *repo, const struct refd_oid *oid)
{
	return admit_has_object(((struct retry *)arg)->store, repo, oid);
}

static uint64_t next_token(void *arg)
{
	return store_next_token(((struct retry *)arg)->store);
}

static int sync_fs(void *arg, struct fs *fs)
{
	return checkpoint_sync_fs(((struct retry *)arg)->store, fs);
}

/* git's own limit. */
#define SYMREF_DEPTH 5
/* Repositories that are tried at a time: admissions wait for it. */
#define RETRIES 16

/* The worktree whose names TXN means, as records have it. */
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

/* A file, as records have it. */
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

/* Where FILE leads if it is a symbolic ref; false: it is none. */
static bool follow(const struct retry *retry, const struct file *file,
    struct loose_value *value)
{
	const struct sys *sys = retry->store->sys;
	int fd, r;

	fd = repo_open_worktree(sys, retry->repo, file->worktree);
	if (fd < 0)
		return false;
	r = loose_read(sys, fd, file->name, value);
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

/* What U would write. Its lock, when it is taken, is on whatever the way leads
 * to by then; the way is hardly ever changed. */
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
	unfinished_end(((struct retry *)arg)->store, lsn, index);
}

static void tell_failed(struct store *s, const struct repo *repo, int err)
{
	if (awaiting_failed(s, repo->id, err))
		store_tell(s, STORE_REPO_WAITS, repo->path, stale_why(err));
}

static void tell_recovered(const struct retry *retry)
{
	const struct repo *repo = retry->repo;
	const uint64_t *nr = retry->nr_found;
	char text[128];

	snprintf(text, sizeof(text),
	    "%" PRIu64 " refs redone, %" PRIu64 " left as another wrote them",
	    nr[STORE_REDONE] + nr[STORE_ROLLED_FORWARD],
	    nr[STORE_LEFT] + nr[STORE_OBJECT_MISSING]);
	store_tell(retry->store, STORE_REPO_RECOVERED, repo->path, text);
}

int parked_retry(struct store *s, struct repo *repo, struct txn *txn)
{
	struct retry retry = { .store = s, .repo = repo, .txn = txn };
	const struct store_report report = { found, no_progress, &retry };
	struct recovery rec = { .sys = s->sys,
		.repos = &s->repos,
		.log = s->log,
		.boot_id = s->boot_id,
		.report = &report,
		.has_object = has_object,
		.next_token = next_token,
		.sync_fs = sync_fs,
		.still_parked = refuse_name,
		.parking = &s->parking,
		.ended = ended,
		.live = failed_live(s, repo),
		.arg = &retry };
	uint64_t members, left, *over;
	int r;

	if (txn != NULL && awaiting_is_endless(s, repo->id))
		return -EUSERS;
	/* fs_failed.c notes its members before they are in the journal. */
	pthread_mutex_lock(&s->parking);
	r = awaiting_begin(s, repo->id, &members, &over, &rec.nr_over);
	pthread_mutex_unlock(&s->parking);
	if (r < 0)
		return r;
	rec.over = over;
	r = recover_parked(&rec, repo, &left);
	free_leads(&retry);
	if (r == 0)
		awaiting_unlocked(s, repo->id, over, rec.nr_over);
	free(over);
	if (r < 0)
		tell_failed(s, repo, r);
	else if (awaiting_ended(s, repo->id, members, left)) {
		tell_recovered(&retry);
		awaiting_publish(s);
	}
	return r;
}

/* The one that is open, with a reference; or opened by the journal's words. */
static struct repo *get_repo(struct store *s, const struct journal_repo *known)
{
	struct repo *repo;

	pthread_mutex_lock(&s->repos.mutex);
	for (repo = s->repos.open; repo != NULL; repo = repo->next)
		if (!repo->doomed && repo->id == known->id)
			break;
	if (repo != NULL)
		repo->refs++;
	pthread_mutex_unlock(&s->repos.mutex);
	if (repo == NULL && repos_get_known(&s->repos, known, &repo) < 0)
		return NULL;
	return repo;
}

void parked_retry_some(struct store *s, size_t slot)
{
	struct journal_repo some[RETRIES];
	struct repo *repo;
	size_t i, nr;

	/* What failed is let go of, so that it can be mended. */
	repos_trim(&s->repos, INT64_MAX / 2);
	nr = awaiting_next(s, some, RETRIES);
	for (i = 0; i < nr; i++) {
		lane_begin_at(s, slot, some[i].path);
		repo = get_repo(s, &some[i]);
		if (repo != NULL && lane_claim(s, slot, repo))
			parked_retry(s, repo, NULL);
		lane_let_go(s, slot);
		if (repo != NULL)
			repo_put(&s->repos, repo);
		free(some[i].path);
	}
}
