/*
 * Creates a pass, decides its changes, and frees the pass.
 *
 * The happy path: the updates of a batch become changes, sorted by repository,
 * directory and name, so two batches never take locks in opposite order. Found
 * changes are appended.
 *
 * What fails: an allocation. Then pass_init() returns false, and pass_done()
 * frees the partial pass. A git-dir that can't be opened is noted, and its
 * updates fail later.
 */
#include "daemon/store/batch/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_config.h"
#include "proto/lib/name_key.h"
#include "proto/lib/pages.h"

void pass_settle(struct pass *p)
{
	enum txn_again again;
	struct slice *s;
	size_t i, k;

	for (i = 0; i < p->nr_slices; i++) {
		s = &p->slices[i];
		if (!s->broken || !s->txn->req.atomic)
			continue;
		/* If one update is decided, aborts all other updates. If none
		 * is decided, gives all of them back together. */
		again = TXN_AGAIN_NO;
		for (k = 0; k < s->txn_slice->nr; k++) {
			struct txn_update *u = s->txn_slice->updates[k];

			if (u->status != REFD_PENDING) {
				again = TXN_AGAIN_NO;
				break;
			}
			if (u->again > again)
				again = u->again;
		}
		for (k = 0; k < s->txn_slice->nr; k++) {
			struct txn_update *u = s->txn_slice->updates[k];

			if (u->status != REFD_PENDING)
				continue;
			u->again = again;
			if (again == TXN_AGAIN_NO)
				txn_decide(u, REFD_ABORTED, NULL);
		}
	}
}

/* ---- the slice of a transaction ---- */

/*
 * Opens the client's git-dir if it is a linked worktree. The client chose the
 * path, and the path may lead elsewhere since admission, so the opened
 * directory must be at the place where recovery looks for the worktree.
 */
static int find_git_dir(struct pass *p, struct slice *s)
{
	char path[REFD_PATH_MAX];
	size_t len = strlen(s->repo->path);
	const struct worktree *b;
	int fd, r;

	s->git_fd = s->repo->fd;
	if (strcmp(s->txn->req.git_dir, s->repo->path) == 0)
		return 0;
	fd = repo_open_below_root(p->ap->repos, s->txn->req.git_dir);
	if (fd < 0)
		return fd;
	r = SYS(p->sys, fd_path, fd, path, sizeof(path));
	SYS(p->sys, close, fd);
	if (r < 0 || strcmp(path, s->repo->path) == 0)
		return r;
	if (strncmp(path, s->repo->path, len) != 0 ||
	    strncmp(path + len, "/worktrees/", 11) != 0 ||
	    strchr(path + len + 11, '/') != NULL)
		return -ENOENT;
	r = pass_worktree(p, s->repo, path + len + 11, &b);
	if (r < 0)
		return r;
	s->git_fd = b->fd;
	s->worktree = b->id;
	return 0;
}

/* A linked worktree is not bare. */
enum reflog_policy pass_log_policy(const struct txn *txn, bool in_worktree)
{
	const char *value = txn->req.log_all_ref_updates;
	enum reflog_policy policy = txn->repo->log_policy;

	if (value != NULL || txn->repo->log_unset)
		reflog_policy_parse(value, txn->repo->bare && !in_worktree,
		    &policy);
	return policy;
}

static bool slice_init(struct pass *p, struct slice *s,
    struct txn_slice *txn_slice)
{
	const struct refd_request *req = &txn_slice->txn->req;

	s->txn_slice = txn_slice;
	s->txn = txn_slice->txn;
	s->repos = p->ap->repos;
	s->repo = txn_slice->txn->repo;
	s->worktree = "";
	s->mode = txn_durability(txn_slice->txn, p->ap->durability);
	s->committer = req->committer != NULL ? req->committer :
						"unknown <unknown> 0 +0000";
	s->message = reflog_normalise(req->message != NULL ? req->message : "");
	if (s->repo == NULL)
		return s->message != NULL;
	s->shared_perm = s->repo->shared_perm;
	if (req->shared_repository != NULL)
		repo_config_parse_shared(req->shared_repository,
		    &s->shared_perm);
	s->file_mode = repo_file_mode(s->shared_perm, req->umask);
	s->dir_mode = repo_dir_mode(s->shared_perm, req->umask);
	s->git_err = find_git_dir(p, s);
	s->log_policy = pass_log_policy(s->txn, s->worktree[0] != '\0');
	return s->message != NULL;
}

/* ---- setting a pass up ---- */

/* Can TXN_SLICE change packed-refs? */
static bool rewrites_packed(const struct txn_slice *txn_slice)
{
	const struct repo *repo = txn_slice->txn->repo;
	size_t i;

	if (repo != NULL && repo->format != REPO_FILES)
		return false;
	if (txn_slice->to_packed)
		return true;
	for (i = 0; i < txn_slice->nr; i++)
		if (txn_slice->updates[i]->status == REFD_PENDING &&
		    txn_update_deletes(txn_slice->updates[i]))
			return true;
	return false;
}

bool pass_takes(const struct txn_slice *txn_slice, enum slices slices)
{
	if (slices == SLICES_APART)
		return txn_slice->apart == TXN_APART_NOW;
	return slices == SLICES_ALL ||
	    rewrites_packed(txn_slice) == (slices == SLICES_PACKED);
}

/* The order of the asked changes. */
static int change_compare(const struct change *c, const struct repo *repo,
    int dirfd, const char *name)
{
	if (c->slice->repo != repo)
		return c->slice->repo < repo ? -1 : 1;
	if (c->edit.dirfd != dirfd)
		return c->edit.dirfd < dirfd ? -1 : 1;
	return strcmp(c->edit.name, name);
}

/* An update before it becomes a change. */
struct update_place {
	struct name_key key;
	struct txn_update *u;
	int dirfd;
	unsigned slice;
};

static void set_keys(struct update_place *places, size_t nr)
{
	size_t i, common = SIZE_MAX;

	for (i = 1; i < nr; i++)
		common = name_key_common(places[0].key.name, places[i].key.name,
		    common);
	for (i = 0; i < nr && nr > 1; i++)
		name_key_set(&places[i].key, places[i].key.name, common);
}

/* The order of change_compare(). ARG: the slices of the pass. */
static int by_place(const void *va, const void *vb, void *arg)
{
	const struct update_place *a = va, *b = vb;
	const struct slice *slices = arg;
	const struct repo *repo_a = slices[a->slice].repo,
			  *repo_b = slices[b->slice].repo;

	if (repo_a != repo_b)
		return repo_a < repo_b ? -1 : 1;
	if (a->dirfd != b->dirfd)
		return a->dirfd < b->dirfd ? -1 : 1;
	return name_key_compare(&a->key, &b->key);
}

static void change_init(struct pass *p, struct change *c, struct slice *s,
    struct txn_update *u)
{
	int r;

	c->u = u;
	c->slice = s;
	c->edit.sys = p->sys;
	c->edit.format = s->repo->object_format;
	c->is_asked = c->is_end = true;
	r = pass_place(p, s, txn_update_place(u), c);
	/* check_places() reports the error. */
	if (r < 0)
		c->edit.dirfd = r;
	u->again = TXN_AGAIN_NO;
	c->action = CHANGE_WRITE;
	if (change_only_looks(c) || change_is_gated(c))
		c->action = CHANGE_NOTHING;
	else if (txn_update_deletes(u))
		c->action = CHANGE_DELETE;
	c->to_packed =
	    s->txn_slice->to_packed && files_may_pack(u, s->log_policy);
}

static const struct ref_backend *const backends[REPO_FORMATS] = {
	[REPO_FILES] = &files_backend,
	[REPO_REFTABLE] = &tables_backend,
};

static void attach_to(struct repo_slice *g, struct change *c)
{
	c->repo_slice = g;
	c->edit.token = &g->token;
	if (g->last == NULL)
		g->changes = c;
	else
		g->last->next_in_repo = c;
	g->last = c;
}

static void attach_repos(struct pass *p)
{
	struct repo_slice *g = NULL;
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		c->edit.value_nr = (unsigned)i;
		if (g == NULL || g->repo != c->slice->repo) {
			g = &p->repo_slices[p->nr_repo_slices++];
			g->repo = c->slice->repo;
			g->backend = backends[g->repo->format];
		}
		attach_to(g, c);
	}
}

struct change *pass_found(struct pass *p, struct change *from, const char *name)
{
	struct change **more, *c;
	size_t size;

	if (p->nr_changes == p->size) {
		size = 2 * p->size + 16;
		more = realloc(p->changes, size * sizeof(struct change *));
		if (more == NULL)
			return NULL;
		p->changes = more;
		p->size = size;
	}
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->own_name = strdup(name);
	if (c->own_name == NULL) {
		free(c);
		return NULL;
	}
	c->u = from->u;
	c->slice = from->slice;
	c->edit.sys = p->sys;
	c->edit.format = from->edit.format;
	attach_to(from->repo_slice, c);
	c->worktree = "";
	p->changes[p->nr_changes++] = c;
	return c;
}

bool pass_enlist(struct pass *p, struct change *c)
{
	struct change *first;

	HASH_FIND_STR(p->found, c->edit.name, first);
	if (first != NULL) {
		c->next_same = first->next_same;
		first->next_same = c;
		return true;
	}
	HASH_ADD_KEYPTR(hh, p->found, c->edit.name, strlen(c->edit.name), c);
	return c->hh.tbl != NULL;
}

size_t pass_first_asked(const struct pass *p, const struct change *c,
    const char *name)
{
	size_t low = 0, high = p->nr_asked, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (change_compare(p->changes[mid], c->slice->repo,
			c->edit.dirfd, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_same(const struct change *c, const struct change *other)
{
	return other != c && other->slice == c->slice &&
	    other->edit.dirfd == c->edit.dirfd &&
	    strcmp(other->edit.name, c->edit.name) == 0;
}

struct change *pass_find_same(struct pass *p, const struct change *c)
{
	struct change *other;
	size_t i;

	for (i = pass_first_asked(p, c, c->edit.name); i < p->nr_asked; i++) {
		other = p->changes[i];
		if (is_same(c, other))
			return other;
		if (change_compare(other, c->slice->repo, c->edit.dirfd,
			c->edit.name) != 0)
			break;
	}
	HASH_FIND_STR(p->found, c->edit.name, other);
	while (other != NULL && !is_same(c, other))
		other = other->next_same;
	return other;
}

/* ---- a new round ---- */

static void change_done(struct change *c)
{
	free(c->target);
	free(c->own_name);
	free(c->abort.text);
	if (!c->is_asked)
		free(c);
}

/* Frees the found changes of G. */
static void drop_found(struct pass *p, struct repo_slice *g)
{
	size_t i, nr = p->nr_asked;
	struct change *c;

	HASH_CLEAR(hh, p->found);
	for (i = p->nr_asked; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->repo_slice == g) {
			change_done(c);
			continue;
		}
		c->next_same = NULL;
		p->changes[nr++] = c;
		if (!pass_enlist(p, c))
			change_fail_errno(c, -ENOMEM, "can't list a reference");
	}
	p->nr_changes = nr;
}

static void forget_head(struct head *head)
{
	free(head->target);
	*head = (struct head){ .is_known = false };
}

static void change_begin_again(struct pass *p, struct repo_slice *g,
    struct change *c)
{
	const enum txn_again again = c->u->again;
	struct txn_update *u = c->u;
	struct slice *s = c->slice;

	change_done(c);
	memset(c, 0, sizeof(*c));
	change_init(p, c, s, u);
	u->again = again;
	attach_to(g, c);
}

void pass_begin_again(struct pass *p, struct repo_slice *g)
{
	size_t i;

	drop_found(p, g);
	forget_head(&g->head);
	for (i = 0; i < p->nr_slices; i++)
		if (p->slices[i].repo == g->repo)
			forget_head(&p->slices[i].head);
	g->changes = g->last = NULL;
	for (i = 0; i < p->nr_asked; i++)
		if (p->changes[i]->repo_slice == g)
			change_begin_again(p, g, p->changes[i]);
}

bool pass_go_apart(struct pass *p, struct repo_slice *g)
{
	const struct slice *first = NULL;
	bool several = false;
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (!change_is_live(c))
			continue;
		if (first == NULL)
			first = c->slice;
		several = several || c->slice != first;
	}
	for (c = g->changes; several && c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c))
			continue;
		c->slice->txn_slice->apart = TXN_APART_NEEDED;
		change_again(c, TXN_AGAIN_ALONE);
	}
	return several;
}

/* ---- the life of a pass ---- */

/* Adds the updates to PLACES, of which NR_ASKED are in use. Here the place of
 * an update only serves to sort. change_init() then sets it in the change. */
static bool take_slice(struct pass *p, struct txn_slice *txn_slice,
    struct update_place *places)
{
	struct slice *s = &p->slices[p->nr_slices++];
	struct txn_update *u;
	struct change at;
	size_t i;
	int r;

	if (!slice_init(p, s, txn_slice))
		return false;
	if (s->mode > p->strongest)
		p->strongest = s->mode;
	for (i = 0; i < txn_slice->nr; i++) {
		u = txn_slice->updates[i];
		if (u->status != REFD_PENDING) {
			p->has_notes = true;
			continue;
		}
		r = pass_place(p, s, txn_update_place(u), &at);
		places[p->nr_asked++] =
		    (struct update_place){ .key.name = at.edit.name,
			    .u = u,
			    .dirfd = r < 0 ? r : at.edit.dirfd,
			    .slice = (unsigned)(s - p->slices) };
	}
	return true;
}

/* Changes lie in memory in the order of all later steps. */
static bool take_updates(struct pass *p, struct batch *b, enum slices slices,
    struct update_place *places)
{
	size_t i;

	for (i = 0; i < b->nr_slices; i++)
		if (pass_takes(&b->slices[i], slices) &&
		    !take_slice(p, &b->slices[i], places))
			return false;
	set_keys(places, p->nr_asked);
	qsort_r(places, p->nr_asked, sizeof(*places), by_place, p->slices);
	for (i = 0; i < p->nr_asked; i++) {
		p->changes[i] = &p->asked[i];
		change_init(p, &p->asked[i], &p->slices[places[i].slice],
		    places[i].u);
	}
	p->nr_changes = p->nr_asked;
	return true;
}

bool pass_init(struct pass *p, struct applier *ap, struct batch *b,
    enum slices slices)
{
	size_t nr = batch_nr_updates(b);
	struct update_place *places;
	bool ok;

	memset(p, 0, sizeof(*p));
	p->ap = ap;
	p->batch = b;
	sys_dirs_init(&p->dirs, ap->sys);
	p->sys = &p->dirs.sys;
	p->logless_fd = -1;
	durability_init(p);
	p->size = nr + 1;
	p->slices = calloc(b->nr_slices + 1, sizeof(*p->slices));
	p->repo_slices = calloc(b->nr_slices + 1, sizeof(*p->repo_slices));
	p->asked_bytes = (nr + 1) * sizeof(*p->asked);
	p->asked = pages_grow(NULL, 0, p->asked_bytes);
	p->changes = calloc(p->size, sizeof(struct change *));
	places = calloc(nr + 1, sizeof(*places));
	ok = p->slices != NULL && p->repo_slices != NULL && p->asked != NULL &&
	    p->changes != NULL && places != NULL &&
	    take_updates(p, b, slices, places);
	free(places);
	if (ok)
		attach_repos(p);
	return ok;
}

void pass_done(struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_slices && p->slices != NULL; i++) {
		free(p->slices[i].head.target);
		free(p->slices[i].message);
		if (p->slices[i].plan.members != NULL)
			pages_free(p->slices[i].plan.members,
			    p->slices[i].plan_bytes);
	}
	HASH_CLEAR(hh, p->found);
	for (i = 0; i < p->nr_changes && p->changes != NULL; i++)
		change_done(p->changes[i]);
	for (i = 0; i < p->nr_repo_slices && p->repo_slices != NULL; i++) {
		free(p->repo_slices[i].head.target);
		if (p->repo_slices[i].has_sync_fd)
			SYS(p->sys, close, p->repo_slices[i].sync_fd);
	}
	sys_dirs_forget(&p->dirs);
	pass_close_worktrees(p);
	free(p->slices);
	free(p->repo_slices);
	if (p->asked != NULL)
		pages_free(p->asked, p->asked_bytes);
	free(p->changes);
}
