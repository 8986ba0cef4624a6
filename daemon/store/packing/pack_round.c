/*
 * A round of packing. pack_round.h has the steps and the rules.
 *
 * Failure modes:
 *	packed-refs.lock is held	tried again for a second, then -EEXIST;
 *					batches of this daemon go first
 *	packed-refs can't be rewritten	nothing was changed
 *	or packed-refs.new synced
 *	packed-refs or its directory	no loose file goes; the caller stops
 *	can't be synced			trusting the file system
 *	packed-refs was replaced	the new file is synced before the next
 *					loose file goes; after a few times the
 *					round ends
 *	a ref is locked, changed, gone	the ref is left as it is
 *	a crash, a power loss		recovery removes the locks by the token,
 *					and packed-refs.new
 *
 * No update may fail because of a round, so a round never waits with a lock,
 * and leaves the refs of others loose.
 */
#include "daemon/store/packing/pack_round.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/sys_dirs.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/packing/pack_names.h"
#include "daemon/store/refs/token.h"

/* Git waits for a second too (core.packedRefsTimeout). */
#define LOCK_TRIES  100
#define LOCK_NAP_NS INT64_C(10000000)
/* Batches of this daemon hold the turn for about one flush. */
#define TURN_MS 1000
/* Deletions wait for a rewrite, so a rewrite that takes longer is given up. */
#define REWRITE_NS INT64_C(5000000000)
/* Another writer may replace packed-refs this often in a round. */
#define SYNCS_MAX 16

struct packing {
	struct pack_round *round;
	struct sys_dirs dirs;
	const struct sys *sys; /* of DIRS */
	struct pack_names names;
	struct token token;
	mode_t file_mode, dir_mode;
	/* A packed-refs that is durable; owned. */
	struct packed_snapshot *durable;
	unsigned syncs;
};

static void keep_token(struct packing *p, int r)
{
	if (r < 0)
		p->round->leaves_locks = true;
}

/* ---- packed-refs.lock ---- */

static int try_lock(struct packing *p)
{
	struct packed *packed = p->round->repo->packed;
	int r;

	if (!packed_turn_take(packed, TURN_MS))
		return -EEXIST;
	r = token_lock(&p->token, p->round->repo->fd, "packed-refs",
	    p->dir_mode);
	if (r < 0)
		packed_turn_give(packed);
	return r;
}

static int lock(struct packing *p)
{
	unsigned tries;
	int r;

	r = try_lock(p);
	for (tries = 1; r == -EEXIST && tries < LOCK_TRIES; tries++) {
		SYS(p->sys, sleep_ns, LOCK_NAP_NS);
		r = try_lock(p);
	}
	return r;
}

static void unlock(struct packing *p)
{
	keep_token(p,
	    token_unlock(&p->token, p->round->repo->fd, "packed-refs"));
	packed_turn_give(p->round->repo->packed);
}

/* ---- write ---- */

/* Has REF still the value with which it was found, and is REF unlocked at this
 * moment? */
static bool rests(struct packing *p, const struct pack_ref *ref)
{
	char path[REFD_PATH_MAX];
	struct loose_value value;
	struct sys_stat st;
	bool is_same;

	if (token_lock_path(path, ref->name) < 0 ||
	    SYS(p->sys, lstatat, p->names.dirfd, path, &st) != -ENOENT ||
	    loose_read(p->sys, p->names.dirfd, ref->name, p->names.format,
		&value) < 0)
		return false;
	is_same = value.kind == LOOSE_OID && value.exact &&
	    value.mtime_ns == ref->mtime_ns &&
	    refd_oid_eq(&value.oid, &ref->oid);
	loose_value_done(&value);
	return is_same;
}

/* 1: SNAP has the value of REF. */
static int has_value(const struct packed_snapshot *snap,
    const struct pack_ref *ref)
{
	struct refd_oid oid;
	int r;

	r = packed_lookup(snap, ref->name, &oid);
	return r > 0 ? refd_oid_eq(&oid, &ref->oid) : r;
}

/* Keeps the refs that rest, and makes EDITS of those with a different packed
 * value. The number of edits, or negative errno. */
static int choose(struct packing *p, struct packed_edit *edits)
{
	struct packed_snapshot *snap = NULL;
	struct pack_names *names = &p->names;
	struct pack_ref *ref;
	size_t i, nr = 0;
	int r, nr_edits = 0;

	r = packed_snapshot(p->round->repo->packed, &snap);
	for (i = 0; i < names->nr && r >= 0; i++) {
		if (!rests(p, &names->refs[i])) {
			p->round->nr_left++;
			continue;
		}
		ref = &names->refs[nr++];
		*ref = names->refs[i];
		r = has_value(snap, ref);
		if (r != 0)
			continue;
		edits[nr_edits++] = (struct packed_edit){ .name = ref->name,
			.oid = &ref->oid,
			.peeled = ref->is_tag ? &ref->peeled : NULL };
	}
	names->nr = nr;
	packed_snapshot_put(snap);
	return r < 0 ? r : nr_edits;
}

static int replace(struct packing *p, struct packed_edit *edits, size_t nr)
{
	struct packed *packed = p->round->repo->packed;
	bool changed;
	int r;

	r = packed_rewrite_begin(packed, edits, nr, p->file_mode, false,
	    SYS(p->sys, now_mono) + REWRITE_NS, &changed);
	if (r < 0 || !changed)
		return r;
	r = SYS(p->sys, fsync, packed_rewrite_fd(packed));
	if (r == 0)
		r = packed_rewrite_finish(packed);
	if (r < 0)
		packed_rewrite_abandon(packed);
	return r;
}

static int write_packed(struct packing *p)
{
	struct packed_edit *edits = calloc(p->names.nr + 1, sizeof(*edits));
	int r;

	if (edits == NULL)
		return -ENOMEM;
	r = lock(p);
	if (r == 0) {
		r = choose(p, edits);
		if (r >= 0)
			r = replace(p, edits, (size_t)r);
		unlock(p);
	}
	free(edits);
	return r;
}

/* ---- sync ---- */

/* 0, or negative errno, which is -EAGAIN if others replace packed-refs all the
 * time. */
static int make_durable(struct packing *p)
{
	struct packed *packed = p->round->repo->packed;
	struct packed_snapshot *snap;
	int r;

	if (p->syncs++ == SYNCS_MAX)
		return -EAGAIN;
	r = packed_snapshot(packed, &snap);
	if (r < 0)
		return r;
	r = packed_snapshot_sync(packed, snap);
	if (r < 0) {
		p->round->sync_err = r;
		packed_snapshot_put(snap);
		return r;
	}
	packed_snapshot_put(p->durable);
	p->durable = snap;
	return 0;
}

/* ---- prune ---- */

/* Under the lock of REF. Returns 1 if the loose file may go, 0 if not, and
 * -EAGAIN if packed-refs was replaced. */
static int may_go(struct packing *p, const struct pack_ref *ref)
{
	struct packed_snapshot *snap;
	struct loose_value value;
	bool is_same;
	int r;

	r = loose_read(p->sys, p->names.dirfd, ref->name, p->names.format,
	    &value);
	if (r < 0)
		return r;
	is_same = value.kind == LOOSE_OID && value.exact &&
	    refd_oid_eq(&value.oid, &ref->oid);
	loose_value_done(&value);
	if (!is_same)
		return 0;
	r = packed_snapshot(p->round->repo->packed, &snap);
	if (r < 0)
		return r;
	r = snap != p->durable ? -EAGAIN : has_value(snap, ref);
	packed_snapshot_put(snap);
	return r;
}

/* May the lock fail with R because of other writers? */
static bool is_left(int r)
{
	return r == -EEXIST || r == -ENOTDIR || r == -ENOENT || r == -ELOOP ||
	    r == -ENAMETOOLONG;
}

/* 0, or negative errno, with -EAGAIN as may_go(). */
static int prune_one(struct packing *p, const struct pack_ref *ref)
{
	const int dirfd = p->names.dirfd;
	int r, may;

	r = token_lock(&p->token, dirfd, ref->name, p->dir_mode);
	if (r < 0) {
		p->round->nr_left += is_left(r);
		return is_left(r) ? 0 : r;
	}
	may = may_go(p, ref);
	r = may > 0 ? SYS(p->sys, unlinkat, dirfd, ref->name) : may;
	keep_token(p, token_unlock(&p->token, dirfd, ref->name));
	loose_prune_parents(p->sys, dirfd, ref->name, 2);
	p->round->nr_packed += may > 0 && r == 0;
	p->round->nr_left += may == 0;
	return r;
}

/* 0, or negative errno, with -EAGAIN as make_durable(). */
static int prune_when_durable(struct packing *p, const struct pack_ref *ref)
{
	int r;

	while ((r = prune_one(p, ref)) == -EAGAIN) {
		r = make_durable(p);
		if (r < 0)
			break;
	}
	return r;
}

static int prune(struct packing *p)
{
	size_t i = 0;
	int r;

	r = make_durable(p);
	while (i < p->names.nr && r == 0) {
		r = prune_when_durable(p, &p->names.refs[i]);
		i += r == 0;
	}
	if (r != -EAGAIN)
		return r;
	p->round->nr_left += p->names.nr - i;
	return 0;
}

/* ---- the round ---- */

static int pack(struct packing *p)
{
	int r;

	r = pack_names_find(&p->names);
	p->round->is_full = p->names.is_full;
	if (r < 0 || p->names.nr == 0)
		return r;
	r = token_init(&p->token, p->sys, p->round->repo->stage_fd,
	    p->round->token_id);
	if (r < 0)
		return r;
	r = write_packed(p);
	sys_dirs_forget(&p->dirs);
	if (r == 0)
		r = prune(p);
	keep_token(p, token_done(&p->token));
	return r;
}

int pack_round(struct pack_round *round)
{
	struct repo *repo = round->repo;
	/* As permissive as refs/, which git made. */
	const uint32_t umask_bits = ~repo->mode & 0777;
	struct packing p = { .round = round,
		.file_mode = repo_file_mode(repo->shared_perm, umask_bits),
		.dir_mode = repo_dir_mode(repo->shared_perm, umask_bits) };
	int r;

	sys_dirs_init(&p.dirs, round->sys);
	p.sys = &p.dirs.sys;
	p.names = (struct pack_names){ .sys = p.sys,
		.dirfd = repo->fd,
		.format = repo->object_format,
		.peel = round->peel,
		.arg = round->arg };
	r = pack(&p);
	packed_snapshot_put(p.durable);
	pack_names_done(&p.names);
	sys_dirs_forget(&p.dirs);
	return r;
}
