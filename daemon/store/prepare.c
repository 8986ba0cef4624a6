/*
 * From a batch to its commit point: everything that publishing will need.
 *
 * The happy path:
 *	same	each repository's path still leads to it
 *	stage	new values are written beside the locks, before any is taken
 *	lock	every ref, in order; the clock of the held time starts here
 *	read	loose, then packed-refs after the miss
 *	check	old value, directory/file conflicts
 *	logs	directories and files that lines will be appended to; HEAD.lock
 *		where the branch is the one HEAD points to
 *	packed	packed-refs.lock, packed-refs.new written and synced, for the
 *		deletions
 *
 * What fails:
 *	the path leads elsewhere	given back, to be opened again
 *	a lock is held			given back, tried later
 *	a lock can't be had, a value	that update fails, or its atomic
 *	is another, no space		transaction
 *	it takes too long		the rest of the non-atomic ones goes
 *					in the next window
 * batch_release() undoes whatever stands, however far this came.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch.h"

static void check_same(struct batch *b)
{
	struct group *g = NULL;
	bool same = true;
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (c->group != g) {
			g = c->group;
			same = repo_is_same(b->ap->repos, g->repo);
			if (!same)
				repo_doom(b->ap->repos, g->repo);
		}
		if (!same)
			change_again(c, TXN_AGAIN_REOPEN);
	}
}

/* A worktree that is gone must not turn into the main one. */
static void check_git_dirs(struct batch *b)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (c->share->git_err == -ENOENT)
			change_fail(c, REFD_NOREPO,
			    "'%s' is no longer a git directory of '%s'",
			    c->share->txn->req.git_dir, c->share->repo->path);
		else if (c->share->git_err < 0)
			change_fail_errno(c, c->share->git_err,
			    "can't open the worktree");
	}
}

/* The group's token, made with the first change that needs it. */
static int need_token(struct batch *b, struct group *g)
{
	int r;

	if (g->has_token)
		return 0;
	r = token_init(&g->token, b->sys, g->repo->stage_fd,
	    atomic_fetch_add(&b->ap->next_token, 1));
	g->has_token = r == 0;
	return r;
}

static void stage_values(struct batch *b)
{
	char value[TOKEN_NAME_MAX], content[LOOSE_CONTENT_MAX];
	struct change *c;
	int r, len;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (!change_is_live(c))
			continue;
		r = need_token(b, c->group);
		if (r == 0 && c->action == CHANGE_WRITE) {
			token_value_name(value, c->group->token.id,
			    c->value_nr);
			/* Even a failed one may have left a file. */
			c->staged = true;
			len = loose_format(&c->u->ask->new_oid, NULL, content);
			r = loose_stage(b->sys, c->group->repo->stage_fd, value,
			    content, (size_t)len, c->share->file_mode);
		}
		if (r < 0)
			change_fail_errno(c, r, "can't write the new value");
	}
}

/* Which part of the name is a file, so that no directory can be made there. */
static void conflicts_with_parent(struct batch *b, struct change *c)
{
	char parent[REFD_REFNAME_MAX + 1];
	struct sys_stat st;
	char *slash;

	strcpy(parent, c->name);
	while ((slash = strrchr(parent, '/')) != NULL) {
		*slash = '\0';
		if (SYS(b->sys, lstatat, c->dirfd, parent, &st) == 0)
			break;
	}
	change_fail(c, REFD_CONFLICT, "'%s' exists; cannot create '%s'", parent,
	    c->name);
}

void change_lock_failed(struct batch *b, struct change *c, int err)
{
	if (err == -EEXIST)
		change_again(c, TXN_AGAIN_LOCKED);
	else if (err == -ENOTDIR)
		conflicts_with_parent(b, c);
	else if (err == -EXDEV || err == -EPERM || err == -EOPNOTSUPP)
		change_fail(c, REFD_UNSUPPORTED,
		    "the file system can't link lock files: %s",
		    strerror(-err));
	else
		change_fail_errno(c, err, "can't create the lock file");
}

static void lock_refs(struct batch *b)
{
	struct change *c;
	int64_t now;
	size_t i;
	int r;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (!change_is_live(c))
			continue;
		now = SYS(b->sys, now_mono);
		if (b->locked_ns == 0)
			b->locked_ns = now;
		if (!c->share->txn->req.atomic &&
		    now - b->locked_ns > b->ap->prepare_max_ns) {
			change_again(c, TXN_AGAIN_LATER);
			continue;
		}
		r = token_lock(&c->group->token, c->dirfd, c->name,
		    c->share->dir_mode);
		if (r == 0)
			c->locked = true;
		else
			change_lock_failed(b, c, r);
	}
}

static void read_loose(struct batch *b)
{
	struct loose_value value;
	struct change *c;
	size_t i;
	int r;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (!change_is_live(c))
			continue;
		r = loose_read(b->sys, c->dirfd, c->name, &value);
		if (r < 0) {
			change_fail_errno(c, r, "can't read the reference");
			continue;
		}
		switch (value.kind) {
		case LOOSE_ABSENT:
		case LOOSE_DIR:
			break;
		case LOOSE_OID:
			c->exists = c->is_loose = true;
			c->old_oid = value.oid;
			break;
		case LOOSE_SYMREF:
			change_fail(c, REFD_UNSUPPORTED,
			    "'%s' is a symbolic reference", c->name);
			break;
		case LOOSE_BROKEN:
			change_fail(c, REFD_BROKEN,
			    "unable to resolve reference '%s': reference "
			    "broken",
			    c->name);
			break;
		}
		loose_value_done(&value);
	}
}

static void fail_group(struct batch *b, struct group *g, int err,
    const char *doing)
{
	size_t i;

	for (i = 0; i < b->nr_changes; i++)
		if (b->changes[i].group == g)
			change_fail_errno(&b->changes[i], err, doing);
}

/* packed-refs, looked at after every loose miss and under every lock: from
 * here on nothing of ours can move between the two. */
static void read_packed(struct batch *b)
{
	struct change *c;
	struct group *g;
	size_t i;
	int r;

	for (i = 0; i < b->nr_groups; i++) {
		g = &b->groups[i];
		if (!g->has_token)
			continue;
		token_locked_at(&g->token, &g->locked_at_ns);
		r = packed_snapshot(g->repo->packed, &g->snap);
		if (r < 0)
			fail_group(b, g, r,
			    r == -EBADMSG ? "packed-refs has a malformed line" :
					    "can't read packed-refs");
	}
	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (!change_is_live(c) || c->dirfd != c->group->repo->fd)
			continue;
		c->had_packed =
		    packed_lookup(c->group->snap, c->name, &c->packed_oid);
		if (c->had_packed && !c->exists) {
			c->exists = true;
			c->old_oid = c->packed_oid;
		}
	}
}

static void found(struct change *c)
{
	c->u->has_found = true;
	if (c->exists)
		c->u->found = c->old_oid;
}

static void check_old_value(struct change *c)
{
	const struct refd_update *ask = c->u->ask;
	char is[REFD_OID_HEX + 1], want[REFD_OID_HEX + 1];
	bool must_be_absent, must_be_equal;

	must_be_absent = ask->action == REFD_CREATE ||
	    (ask->action == REFD_VERIFY && !ask->has_old) ||
	    (ask->has_old && refd_oid_is_null(&ask->old_oid) &&
		ask->action != REFD_DELETE);
	must_be_equal = ask->has_old && !refd_oid_is_null(&ask->old_oid);
	if (must_be_absent && c->exists) {
		found(c);
		change_fail(c, REFD_EXISTS, "reference already exists");
	} else if (must_be_equal && !c->exists) {
		found(c);
		change_fail(c, REFD_MISSING, "unable to resolve reference '%s'",
		    c->name);
	} else if (must_be_equal && !refd_oid_eq(&c->old_oid, &ask->old_oid)) {
		found(c);
		change_fail(c, REFD_STALE, "is at %s but expected %s",
		    refd_oid_hex(&c->old_oid, is),
		    refd_oid_hex(&ask->old_oid, want));
	}
}

/* A ref whose name is a proper prefix of this one can only be packed: a
 * loose one would be a file where the lock's directory stands. */
static bool has_packed_prefix(struct change *c, char *prefix)
{
	struct refd_oid oid;
	char *slash;

	strcpy(prefix, c->name);
	while ((slash = strrchr(prefix, '/')) != NULL) {
		*slash = '\0';
		if (packed_lookup(c->group->snap, prefix, &oid))
			return true;
	}
	return false;
}

static void check_conflicts(struct batch *b, struct change *c)
{
	char path[REFD_REFNAME_MAX + 2];
	const char *below;
	char *loose = NULL;
	int r;

	if (has_packed_prefix(c, path)) {
		change_fail(c, REFD_CONFLICT, "'%s' exists; cannot create '%s'",
		    path, c->name);
		return;
	}
	strcpy(path, c->name);
	strcat(path, "/");
	below = packed_find_below(c->group->snap, path);
	r = loose_find_below(b->sys, c->dirfd, c->name, &loose);
	if (r < 0)
		change_fail_errno(c, r, "can't look for conflicting names");
	else if (r > 0 || below != NULL)
		change_fail(c, REFD_CONFLICT, "'%s' exists; cannot create '%s'",
		    r > 0 ? loose : below, c->name);
	free(loose);
	if (!change_is_live(c))
		return;
	r = loose_clear_dirs(b->sys, c->dirfd, c->name, &loose);
	if (r == -ENOTEMPTY)
		change_fail(c, REFD_CONFLICT,
		    "there is a non-empty directory '%s' blocking reference "
		    "'%s'",
		    c->name, c->name);
	else if (r < 0)
		change_fail_errno(c, r, "can't remove an empty directory");
	free(loose);
}

static void check_values(struct batch *b)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (!change_is_live(c))
			continue;
		check_old_value(c);
		if (change_is_live(c) && c->action == CHANGE_WRITE &&
		    !c->exists)
			check_conflicts(b, c);
		/* Nothing to write; recorded all the same, since the value
		 * that is confirmed may be another's and not on disk yet. */
		if (c->action == CHANGE_WRITE && c->exists &&
		    refd_oid_eq(&c->old_oid, &c->u->ask->new_oid))
			c->action = CHANGE_NOTHING;
	}
}

/* ---- deletions ---- */

/* Gives all deletions of G back, or fails them. */
static void deletions_failed(struct batch *b, struct group *g, int err)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (c->group != g || c->action != CHANGE_DELETE)
			continue;
		if (err == -EEXIST)
			change_again(c, TXN_AGAIN_LOCKED);
		else if (err == -EBADMSG)
			change_fail(c, REFD_IO,
			    "packed-refs has a malformed line");
		else
			change_fail_errno(c, err, "can't rewrite packed-refs");
	}
}

static int rewrite_packed(struct group *g, const char **names, size_t nr,
    mode_t file_mode, mode_t dir_mode)
{
	int r;

	r = token_lock(&g->token, g->repo->fd, "packed-refs", dir_mode);
	if (r < 0)
		return r;
	g->packed_locked = true;
	return packed_rewrite_begin(g->repo->packed, names, nr, file_mode,
	    &g->packed_changed);
}

static void prepare_deletions(struct batch *b)
{
	const char **names;
	struct change *c;
	struct group *g;
	size_t i, k, nr;
	struct share *s;
	int r;

	names = calloc(b->nr_changes + 1, sizeof(*names));
	for (i = 0; i < b->nr_groups; i++) {
		g = &b->groups[i];
		s = NULL;
		for (k = nr = 0; k < b->nr_changes && names != NULL; k++) {
			c = &b->changes[k];
			if (c->group != g || c->action != CHANGE_DELETE ||
			    !change_is_live(c))
				continue;
			s = c->share;
			if (c->dirfd == g->repo->fd)
				names[nr++] = c->name;
		}
		if (names == NULL)
			deletions_failed(b, g, -ENOMEM);
		if (nr == 0)
			continue;
		r = rewrite_packed(g, names, nr, s->file_mode, s->dir_mode);
		if (r < 0)
			deletions_failed(b, g, r);
	}
	free(names);
}

void batch_prepare(struct batch *b)
{
	check_same(b);
	check_git_dirs(b);
	batch_settle(b);
	stage_values(b);
	batch_settle(b);
	lock_refs(b);
	batch_settle(b);
	read_loose(b);
	read_packed(b);
	check_values(b);
	batch_settle(b);
	batch_prepare_logs(b);
	batch_settle(b);
	prepare_deletions(b);
	batch_settle(b);
}
