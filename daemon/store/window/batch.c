/*
 * Creates a batch, decides its changes, and frees the batch.
 *
 * The happy path: the updates of a window become changes, sorted by repository,
 * directory and name. Thus two windows never take locks in opposite order.
 * Found changes are appended.
 *
 * What fails: an allocation. batch_init() returns false, and batch_done() frees
 * the partial batch.
 */
#include "daemon/store/window/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_config.h"

bool change_is_moved(const struct change *c, enum refd_status status)
{
	return repo_move_may_cause(status) &&
	    repo_is_moved(c->share->repos, c->share->repo);
}

void change_fail(struct change *c, enum refd_status status, const char *fmt,
    ...)
{
	char text[2 * REFD_PATH_MAX];
	va_list ap;

	if (!change_is_live(c))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (change_is_moved(c, status)) {
		status = REFD_NOREPO;
		snprintf(text, sizeof(text),
		    "cannot update ref '%s': the repository '%s' was moved or "
		    "replaced meanwhile",
		    c->u->ask->name, c->share->repo->path);
	}
	txn_decide(c->u, status, text);
	c->share->broken = true;
}

void change_fail_detail(struct change *c, enum refd_status status,
    enum refd_detail_kind kind, const char *arg0, const char *arg1,
    const char *arg2)
{
	if (!change_is_live(c))
		return;
	txn_decide_detail(c->u, status, kind, arg0, arg1, arg2);
	c->share->broken = true;
}

void change_cant_lock(struct change *c, enum refd_status status,
    const char *fmt, ...)
{
	char text[2 * REFD_PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	change_fail(c, status, "cannot lock ref '%s': %s", c->u->ask->name,
	    text);
}

void change_fail_errno(struct change *c, int err, const char *doing)
{
	change_fail(c, txn_status_of(err), "cannot update ref '%s': %s: %s",
	    c->u->ask->name, doing, strerror(-err));
}

void change_fail_packed(struct change *c, int err, const char *doing)
{
	switch (err) {
	case -EBADMSG:
		change_fail(c, REFD_IO, "packed-refs has a malformed line");
		break;
	case -EILSEQ:
		change_fail(c, REFD_IO,
		    "packed-refs is not sorted, though its header says so; "
		    "refd verify finds the line");
		break;
	case -EFBIG:
		change_fail(c, REFD_UNSUPPORTED,
		    "packed-refs is larger than refd reads it (%zu MiB, or %zu "
		    "MiB where it is not sorted: git pack-refs --all sorts it)",
		    PACKED_STREAM_MAX >> 20, PACKED_UNSORTED_MAX >> 20);
		break;
	case -ETIMEDOUT:
		change_fail(c, REFD_DEADLINE,
		    "packed-refs could not be rewritten in time");
		break;
	default:
		change_fail_errno(c, err, doing);
	}
}

void change_defer(struct batch *b, const struct change *c)
{
	const struct txn_update *u = c->u;

	if (b->ap->defer_update != NULL)
		b->ap->defer_update(b->ap->arg, c->share->lsn,
		    (uint32_t)(u - u->txn->updates));
}

void change_again(struct change *c, enum txn_again why)
{
	if (!change_is_live(c))
		return;
	c->u->again = why;
	c->share->broken = true;
}

void batch_settle(struct batch *b)
{
	enum txn_again again;
	struct share *s;
	size_t i, k;

	for (i = 0; i < b->nr_shares; i++) {
		s = &b->shares[i];
		if (!s->broken || !s->txn->req.atomic)
			continue;
		/* If one update is decided, abort the others. If none is
		 * decided, give all of them back together. */
		again = TXN_AGAIN_NO;
		for (k = 0; k < s->part->nr; k++) {
			struct txn_update *u = s->part->updates[k];

			if (u->status != REFD_PENDING) {
				again = TXN_AGAIN_NO;
				break;
			}
			if (u->again > again)
				again = u->again;
		}
		for (k = 0; k < s->part->nr; k++) {
			struct txn_update *u = s->part->updates[k];

			if (u->status != REFD_PENDING)
				continue;
			u->again = again;
			if (again == TXN_AGAIN_NO)
				txn_decide(u, REFD_ABORTED, NULL);
		}
	}
}

/* ---- setting a batch up ---- */

/* Can PART change packed-refs? */
static bool rewrites_packed(const struct txn_part *part)
{
	size_t i;

	if (part->to_packed)
		return true;
	for (i = 0; i < part->nr; i++)
		if (part->updates[i]->status == REFD_PENDING &&
		    txn_update_deletes(part->updates[i]))
			return true;
	return false;
}

bool batch_takes(const struct txn_part *part, enum parts parts)
{
	return parts == PARTS_ALL ||
	    rewrites_packed(part) == (parts == PARTS_PACKED);
}

/* The order of the asked changes. */
static int change_compare(const struct change *c, const struct repo *repo,
    int dirfd, const char *name)
{
	if (c->share->repo != repo)
		return c->share->repo < repo ? -1 : 1;
	if (c->edit.dirfd != dirfd)
		return c->edit.dirfd < dirfd ? -1 : 1;
	return strcmp(c->edit.name, name);
}

static int by_place(const void *va, const void *vb)
{
	const struct change *const *a = va, *const *b = vb;

	return change_compare(*a, (*b)->share->repo, (*b)->edit.dirfd,
	    (*b)->edit.name);
}

/*
 * Opens the client's git-dir if it is a linked worktree. The client chose the
 * path, and the path may lead elsewhere since admission. The opened directory
 * must be at the place where recovery looks for the worktree.
 */
static int find_git_dir(struct batch *b, struct share *s)
{
	char path[REFD_PATH_MAX];
	size_t len = strlen(s->repo->path);
	const struct worktree *w;
	int fd, r;

	s->git_fd = s->repo->fd;
	if (strcmp(s->txn->req.git_dir, s->repo->path) == 0)
		return 0;
	fd = repo_open_below_root(b->ap->repos, s->txn->req.git_dir);
	if (fd < 0)
		return fd;
	r = SYS(b->sys, fd_path, fd, path, sizeof(path));
	SYS(b->sys, close, fd);
	if (r < 0 || strcmp(path, s->repo->path) == 0)
		return r;
	if (strncmp(path, s->repo->path, len) != 0 ||
	    strncmp(path + len, "/worktrees/", 11) != 0 ||
	    strchr(path + len + 11, '/') != NULL)
		return -ENOENT;
	r = batch_worktree(b, s->repo, path + len + 11, &w);
	if (r < 0)
		return r;
	s->git_fd = w->fd;
	s->worktree = w->id;
	return 0;
}

/* A linked worktree is not bare. */
enum reflog_policy txn_log_policy(const struct txn *txn, bool in_worktree)
{
	const char *value = txn->req.log_all_ref_updates;
	enum reflog_policy policy = txn->repo->log_policy;

	if (value != NULL || txn->repo->log_unset)
		reflog_policy_parse(value, txn->repo->bare && !in_worktree,
		    &policy);
	return policy;
}

static bool share_init(struct batch *b, struct share *s, struct txn_part *part)
{
	const struct refd_request *req = &part->txn->req;

	s->part = part;
	s->txn = part->txn;
	s->repos = b->ap->repos;
	s->repo = part->txn->repo;
	s->worktree = "";
	s->mode = txn_durability(part->txn, b->ap->durability);
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
	s->git_err = find_git_dir(b, s);
	s->log_policy = txn_log_policy(s->txn, s->worktree[0] != '\0');
	return s->message != NULL;
}

static void change_init(struct batch *b, struct change *c, struct share *s,
    struct txn_update *u)
{
	int r;

	c->u = u;
	c->share = s;
	c->edit.sys = b->sys;
	c->is_asked = c->is_end = true;
	r = batch_place(b, s, u->ask->name, c);
	/* check_places() reports the error. */
	if (r < 0)
		c->edit.dirfd = r;
	u->again = TXN_AGAIN_NO;
	c->action = CHANGE_WRITE;
	if (change_only_looks(c))
		c->action = CHANGE_NOTHING;
	else if (txn_update_deletes(u))
		c->action = CHANGE_DELETE;
	c->to_packed =
	    s->part->to_packed && update_may_be_packed(u, s->log_policy);
}

static void attach_groups(struct batch *b)
{
	struct group *g = NULL;
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		c->edit.value_nr = (unsigned)i;
		if (g == NULL || g->repo != c->share->repo) {
			g = &b->groups[b->nr_groups++];
			g->repo = c->share->repo;
		}
		c->group = g;
		c->edit.token = &g->token;
	}
}

struct change *batch_found(struct batch *b, struct change *from,
    const char *name)
{
	struct change **more, *c;
	size_t size;

	if (b->nr_changes == b->size) {
		size = 2 * b->size + 16;
		more = realloc(b->changes, size * sizeof(struct change *));
		if (more == NULL)
			return NULL;
		b->changes = more;
		b->size = size;
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
	c->share = from->share;
	c->group = from->group;
	c->edit.sys = b->sys;
	c->edit.token = &c->group->token;
	c->worktree = "";
	b->changes[b->nr_changes++] = c;
	return c;
}

bool batch_enlist(struct batch *b, struct change *c)
{
	struct change *first;

	HASH_FIND_STR(b->found, c->edit.name, first);
	if (first != NULL) {
		c->next_same = first->next_same;
		first->next_same = c;
		return true;
	}
	HASH_ADD_KEYPTR(hh, b->found, c->edit.name, strlen(c->edit.name), c);
	return c->hh.tbl != NULL;
}

size_t batch_first_asked(const struct batch *b, const struct change *c,
    const char *name)
{
	size_t low = 0, high = b->nr_asked, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (change_compare(b->changes[mid], c->share->repo,
			c->edit.dirfd, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_same(const struct change *c, const struct change *other)
{
	return other != c && other->share == c->share &&
	    other->edit.dirfd == c->edit.dirfd &&
	    strcmp(other->edit.name, c->edit.name) == 0;
}

struct change *batch_find_same(struct batch *b, const struct change *c)
{
	struct change *other;
	size_t i;

	for (i = batch_first_asked(b, c, c->edit.name); i < b->nr_asked; i++) {
		other = b->changes[i];
		if (is_same(c, other))
			return other;
		if (change_compare(other, c->share->repo, c->edit.dirfd,
			c->edit.name) != 0)
			break;
	}
	HASH_FIND_STR(b->found, c->edit.name, other);
	while (other != NULL && !is_same(c, other))
		other = other->next_same;
	return other;
}

static size_t count_updates(const struct window *w)
{
	size_t i, nr = 0;

	for (i = 0; i < w->nr_parts; i++)
		nr += w->parts[i].nr;
	return nr;
}

static bool take_part(struct batch *b, struct txn_part *part)
{
	struct share *s = &b->shares[b->nr_shares++];
	struct change *c;
	size_t i;

	if (!share_init(b, s, part))
		return false;
	if (s->mode > b->strongest)
		b->strongest = s->mode;
	for (i = 0; i < part->nr; i++) {
		if (part->updates[i]->status != REFD_PENDING) {
			b->has_notes = true;
			continue;
		}
		c = &b->asked[b->nr_changes];
		change_init(b, c, s, part->updates[i]);
		b->changes[b->nr_changes++] = c;
	}
	return true;
}

bool batch_init(struct batch *b, struct applier *ap, struct window *w,
    enum parts parts)
{
	size_t i, nr = count_updates(w);

	memset(b, 0, sizeof(*b));
	b->ap = ap;
	b->window = w;
	sys_dirs_init(&b->dirs, ap->sys);
	b->sys = &b->dirs.sys;
	b->logless_fd = -1;
	durability_init(b);
	b->size = nr + 1;
	b->shares = calloc(w->nr_parts + 1, sizeof(*b->shares));
	b->groups = calloc(w->nr_parts + 1, sizeof(*b->groups));
	b->asked = calloc(nr + 1, sizeof(*b->asked));
	b->changes = calloc(b->size, sizeof(struct change *));
	if (b->shares == NULL || b->groups == NULL || b->asked == NULL ||
	    b->changes == NULL)
		return false;
	for (i = 0; i < w->nr_parts; i++)
		if (batch_takes(&w->parts[i], parts) &&
		    !take_part(b, &w->parts[i]))
			return false;
	b->nr_asked = b->nr_changes;
	qsort(b->changes, b->nr_changes, sizeof(*b->changes), by_place);
	attach_groups(b);
	return true;
}

static void change_done(struct change *c)
{
	free(c->target);
	free(c->own_name);
	free(c->void_text);
	if (!c->is_asked)
		free(c);
}

void batch_done(struct batch *b)
{
	size_t i;

	for (i = 0; i < b->nr_shares && b->shares != NULL; i++) {
		free(b->shares[i].head.target);
		free(b->shares[i].message);
		free(b->shares[i].plan.members);
	}
	HASH_CLEAR(hh, b->found);
	for (i = 0; i < b->nr_changes && b->changes != NULL; i++)
		change_done(b->changes[i]);
	for (i = 0; i < b->nr_groups && b->groups != NULL; i++) {
		free(b->groups[i].head.target);
		packed_snapshot_put(b->groups[i].snap);
		if (b->groups[i].has_sync_fd)
			SYS(b->sys, close, b->groups[i].sync_fd);
	}
	sys_dirs_forget(&b->dirs);
	batch_close_worktrees(b);
	free(b->shares);
	free(b->groups);
	free(b->asked);
	free(b->changes);
}
