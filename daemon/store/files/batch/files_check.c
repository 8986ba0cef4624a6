/*
 * Files: new values in stage/, locks and loose values, packed values, and
 * directory/file conflicts; values without a lock.
 *
 * The happy path: values are staged before any lock, so that no writer waits
 * for the staging. packed-refs is read while all locks are held and after the
 * loose files, so no ref can move from loose to packed between the two reads.
 *
 * What fails:
 *	a lock is held		the change is given back, tried later
 *	all else		the update, or its atomic transaction, with
 *				git's words
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/files/batch/files.h"

/* ---- the new value, before any lock ---- */

int files_stage_value(struct pass *p, struct change *c)
{
	int fd = edit_stage(&c->edit, &c->u->ask->new_oid, change_new_target(c),
	    c->slice->file_mode);

	if (fd < 0)
		return fd;
	durability_staged(p, c, fd);
	return 0;
}

void files_stage(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	int r;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c))
			continue;
		r = pass_need_token(p, g);
		if (r == 0)
			r = durability_begin(p, c);
		if (r == 0 && c->action == CHANGE_WRITE && !c->to_packed)
			r = files_stage_value(p, c);
		if (r < 0)
			change_fail_errno(c, r, "can't write the new value");
	}
}

/* ---- the lock and the file ---- */

static void file_blocks(struct change *c)
{
	char path[2 * REFD_PATH_MAX];

	change_whole_path(c, c->edit.name, ".lock", path);
	change_fail_detail(c, REFD_CONFLICT, REFD_DETAIL_NOT_DIRECTORY,
	    c->u->ask->name, path, NULL);
}

/* Fails C, because a parent of the name is a file. As in git, a ref with an
 * expected old value is missing if the parent is a ref. */
static void conflicts_with_parent(struct pass *p, struct change *c)
{
	char parent[REFD_REFNAME_MAX + 1];
	struct loose_value value;
	bool is_ref = false;
	char *slash;

	strcpy(parent, c->edit.name);
	while ((slash = strrchr(parent, '/')) != NULL) {
		*slash = '\0';
		if (loose_read(p->sys, c->edit.dirfd, parent, c->edit.format,
			&value) < 0 ||
		    value.kind == LOOSE_ABSENT)
			continue;
		is_ref = value.kind == LOOSE_OID || value.kind == LOOSE_SYMREF;
		loose_value_done(&value);
		break;
	}
	if (!is_ref)
		file_blocks(c);
	else if (change_needs_value(c) || c->u->ask->old_target != NULL)
		change_cant_resolve(c);
	else
		change_fail_detail(c, REFD_CONFLICT,
		    REFD_DETAIL_NAME_TAKEN_EARLY, c->u->ask->name, parent,
		    c->edit.name);
}

/* A ref above the name of C is in the way. The value of this ref may be a value
 * that no machine has acknowledged, so the replica decides first. */
static void blocked(struct pass *p, struct change *c)
{
	REPLICA(p->ap->replica, permit, p, c);
	if (change_is_live(c))
		conflicts_with_parent(p, c);
}

static void lock_failed(struct pass *p, struct change *c, int err)
{
	if (err == -EEXIST)
		change_locked(c, c->edit.name);
	else if (err == -ENOTDIR)
		blocked(p, c);
	else if (err == -EXDEV || err == -EPERM || err == -EOPNOTSUPP)
		change_fail(c, REFD_UNSUPPORTED,
		    "the file system can't link lock files: %s",
		    strerror(-err));
	else
		change_fail_errno(c, err, "can't create the lock file");
}

/* May C be read without its lock? Git may hold the lock while git waits for the
 * gate, so then the value is read without a lock. -ENOTDIR means a name below a
 * ref, whose lock nobody needs. A lock of refd has a second name, in stage/, so
 * a lock with a single name is not refd's. */
static bool is_read_unlocked(struct pass *p, const struct change *c, int err)
{
	char lock[REFD_PATH_MAX];
	struct sys_stat st;

	if (!change_is_gated(c) || (err != -EEXIST && err != -ENOTDIR))
		return false;
	return err == -ENOTDIR ||
	    (token_lock_path(lock, c->edit.name) == 0 &&
		SYS(p->sys, lstatat, c->edit.dirfd, lock, &st) == 0 &&
		st.nlink == 1);
}

bool files_hold(struct pass *p, struct change *c, struct loose_value *value)
{
	int r;

	if (!change_stays_inside(p, c, c->edit.name))
		return false;
	r = edit_lock(&c->edit, c->slice->dir_mode);
	c->made_dirs = c->repo_slice->token.made_dirs;
	if (r < 0 && !is_read_unlocked(p, c, r)) {
		lock_failed(p, c, r);
		return false;
	}
	r = edit_read(&c->edit, value);
	if (r < 0) {
		change_fail_errno(c, r, "can't read the reference");
		return false;
	}
	c->is_loose = value->kind == LOOSE_OID || value->kind == LOOSE_SYMREF;
	c->is_others = c->is_loose && value->owner != (uint32_t)geteuid();
	c->old_mtime_ns = c->is_loose ? value->mtime_ns : 0;
	c->is_vacant = value->is_vacant;
	return true;
}

int files_look(struct pass *p, const struct change *at,
    struct loose_value *value)
{
	struct repo_slice *g = at->repo_slice;
	int r;

	r = loose_read(p->sys, at->edit.dirfd, at->edit.name,
	    g->repo->object_format, value);
	if (r < 0 ||
	    (value->kind != LOOSE_ABSENT && value->kind != LOOSE_DIR) ||
	    at->edit.dirfd != g->repo->fd || g->files.snap == NULL)
		return r;
	r = packed_lookup(g->files.snap, at->edit.name, &value->oid);
	if (r > 0)
		value->kind = LOOSE_OID;
	return r < 0 ? r : 0;
}

/* ---- files of other accounts ---- */

void files_check_sticky(const struct pass *p, struct change *c)
{
	char whole[2 * REFD_PATH_MAX];

	if (change_is_gated(c) || !c->is_others || !change_is_live(c) ||
	    (c->action != CHANGE_WRITE && c->action != CHANGE_DELETE) ||
	    !pass_is_kept(p, c->edit.dirfd, c->edit.name))
		return;
	change_whole_path(c, c->edit.name, "", whole);
	change_cant_replace(p, c, whole);
}

/* ---- packed-refs ---- */

static void fail_repo_packed(struct repo_slice *g, int err)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		change_fail_packed(c, err, "can't read packed-refs");
}

static void fail_repo(struct repo_slice *g, int err, const char *doing)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		change_fail_errno(c, err, doing);
}

static void packed_failed(struct change *c, int err)
{
	change_fail_packed(c, err, "can't read packed-refs");
}

static void look_up_packed(struct change *c)
{
	int r = packed_lookup(c->repo_slice->files.snap, c->edit.name,
	    &c->packed_oid);

	if (r < 0)
		packed_failed(c, r);
	c->had_packed = r > 0;
	if (c->had_packed && !c->is_loose) {
		c->exists = true;
		c->old_oid = c->packed_oid;
	}
}

void files_held(struct pass *p, struct repo_slice *g)
{
	struct change *c;
	int r;

	(void)p;
	if (!g->has_token)
		return;
	/* If the time of the lock is unknown, recovery from a power loss takes
	 * every older file for a later write. */
	r = token_locked_at(&g->token, &g->locked_at_ns);
	if (r < 0) {
		fail_repo(g, r, "can't look at the lock file");
		return;
	}
	r = packed_snapshot(g->repo->packed, &g->files.snap);
	if (r < 0)
		fail_repo_packed(g, r);
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_is_live(c) && c->edit.dirfd == g->repo->fd)
			look_up_packed(c);
}

/* ---- directories and files ---- */

/* Looks for a packed ref with the name of a parent directory. A loose ref with
 * this name is impossible, because the lock of C already needed the
 * directory. */
static int find_packed_prefix(struct change *c, char prefix[REFD_PATH_MAX])
{
	struct repo_slice *g = c->repo_slice;
	size_t len = g->files.clear_len;
	int r;

	/* Most names of a pass are in one directory, so the last result is
	 * kept. */
	if (len > 0 &&
	    (strncmp(c->edit.name, g->files.clear_dir, len) != 0 ||
		c->edit.name[len] != '/'))
		len = 0;
	r = packed_find_above(g->files.snap, c->edit.name, len, prefix);
	if (r != 0)
		return r;
	g->files.clear_dir = c->edit.name;
	g->files.clear_len = change_dir_len(c);
	return 0;
}

static void dirs_failed(struct change *c, int err, const char *doing)
{
	if (err == -E2BIG)
		change_fail(c, REFD_CONFLICT,
		    "there are more than %d directories and other files below "
		    "'%s': remove those that are empty",
		    LOOSE_WALK_MAX, change_shown_name(c));
	else
		change_fail_errno(c, err, doing);
}

/* Fails C with PACKED if the conflicting ref is packed. */
static void check_below(struct pass *p, struct change *c,
    enum refd_detail_kind packed)
{
	char path[REFD_REFNAME_MAX + 2], below[REFD_PATH_MAX];
	char *loose = NULL;
	int r = 0;

	if (!c->is_vacant)
		r = loose_find_below(p->sys, c->edit.dirfd, c->edit.name,
		    &loose);
	if (r > 0) {
		change_fail_detail(c, REFD_CONFLICT,
		    REFD_DETAIL_NAME_TAKEN_EARLY, c->u->ask->name, loose,
		    change_shown_name(c));
	} else if (r < 0) {
		dirs_failed(c, r, "can't look for conflicting names");
	} else if (c->edit.dirfd == c->repo_slice->repo->fd) {
		strcpy(path, c->edit.name);
		strcat(path, "/");
		r = packed_find_below(c->repo_slice->files.snap, path, below);
		if (r > 0)
			change_fail_detail(c, REFD_CONFLICT, packed,
			    c->u->ask->name, below, change_shown_name(c));
		else if (r < 0)
			packed_failed(c, r);
	}
	free(loose);
}

static void directory_blocks(struct change *c)
{
	char path[2 * REFD_PATH_MAX];

	change_whole_path(c, c->edit.name, "", path);
	change_fail_detail(c, REFD_CONFLICT, REFD_DETAIL_DIRECTORY,
	    c->u->ask->name, path, change_shown_name(c));
}

void files_conflict(struct pass *p, struct change *c)
{
	enum refd_detail_kind packed = REFD_DETAIL_NAME_TAKEN;
	char path[REFD_PATH_MAX];
	int r = 0, dirs = 0;

	if (c->action == CHANGE_WRITE && !c->is_vacant)
		dirs =
		    loose_clear_dirs(p->sys, c->edit.dirfd, c->edit.name, NULL);
	/* If the directory stays, git looks for conflicts at once. */
	if (dirs == -ENOTEMPTY)
		packed = REFD_DETAIL_NAME_TAKEN_EARLY;
	if (c->edit.dirfd == c->repo_slice->repo->fd)
		r = find_packed_prefix(c, path);
	if (r < 0) {
		packed_failed(c, r);
		return;
	}
	if (r > 0) {
		change_fail_detail(c, REFD_CONFLICT, packed, c->u->ask->name,
		    path, change_shown_name(c));
		return;
	}
	check_below(p, c, packed);
	change_check_siblings(p, c);
	if (!change_is_live(c))
		return;
	if (dirs == -ENOTEMPTY)
		directory_blocks(c);
	else if (dirs < 0)
		dirs_failed(c, dirs, "can't remove an empty directory");
}

/* ---- a gate ---- */

static bool is_absent(struct pass *p, int dirfd, const char *path)
{
	struct sys_stat st;
	int r = SYS(p->sys, lstatat, dirfd, path, &st);

	return r == -ENOENT || r == -ENOTDIR || (r == 0 && S_ISDIR(st.mode));
}

/*
 * Git locks each ref that it changes, except when it packs. Then git only locks
 * packed-refs, and `git pack-refs --auto` has read the refs before. A loose
 * file overrules the line that git will write. But without a file, the line
 * would become the value, and bring a deleted ref or an older value back.
 */
static bool is_packed_late(struct pass *p, const struct change *c)
{
	const struct refd_update *ask = c->u->ask;
	const struct repo_slice *g = c->repo_slice;
	char lock[REFD_PATH_MAX];
	struct refd_oid oid;
	int r;

	if (ask->action != REFD_UPDATE || c->edit.dirfd != g->repo->fd ||
	    token_lock_path(lock, c->edit.name) < 0 ||
	    !is_absent(p, c->edit.dirfd, lock) ||
	    !is_absent(p, c->edit.dirfd, c->edit.name))
		return false;
	r = packed_lookup(g->files.snap, c->edit.name, &oid);
	return r == 0 || (r > 0 && !refd_oid_eq(&oid, &ask->new_oid));
}

static void refuse(struct change *c)
{
	struct txn *txn = c->slice->txn;

	if (txn->refused != REFD_OK)
		return;
	txn->refused = REFD_STALE;
	txn->why = repo_why("git has read '%s' before another writer changed "
			    "it, and would pack the former value: pack the "
			    "refs again",
	    c->edit.name);
}

/* Without packed-refs, an absent file says nothing, so no change gets a
 * value. */
void files_glance(struct pass *p, struct repo_slice *g)
{
	struct loose_value value;
	struct change *c;
	bool may_pack;

	if (packed_snapshot(g->repo->packed, &g->files.snap) < 0)
		return;
	may_pack = !is_absent(p, g->repo->fd, "packed-refs.lock");
	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_has_place(c))
			continue;
		if (may_pack && is_packed_late(p, c))
			refuse(c);
		if (files_look(p, c, &value) == 0)
			change_glanced(c, &value);
	}
	packed_snapshot_put(g->files.snap);
	g->files.snap = NULL;
}
