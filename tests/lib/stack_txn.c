#include "tests/lib/stack_txn.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_log.h"
#include "daemon/store/tables/stack/stack_reader.h"
#include "daemon/store/tables/stack/stack_set.h"
#include "daemon/store/tables/stack/stack_update.h"

static const char *const names[] = { "", "wt" };

static int place_of(const char *worktree)
{
	return worktree != NULL && worktree[0] != '\0';
}

struct record_member stack_txn_member(uint32_t index, const char *worktree,
    const char *name, char new_c)
{
	return (struct record_member){ .index = index,
		.status = REFD_OK,
		.answers = true,
		.action = new_c == '0' ? RECORD_DELETE : RECORD_WRITE,
		.name = name,
		.worktree = worktree,
		.new_oid = world_oid(new_c),
		.log = new_c != '0' };
}

struct work {
	struct stack_txn *t;
	struct world *w;
	struct repo *repo;
	struct token token;
	struct record rec;
	char committer[80];
	size_t nr;
	struct part {
		int git_fd, place;
		struct stack *stack;
		struct stack_update update;
		bool is_used, is_begun;
		struct work *k;
		size_t nr, members[8];
	} parts[STACK_TXN_PLACES];
};

/* stack_record_of_fn: the value, or with an odd number the line. */
static void set_record(void *arg, size_t i, struct reftable_record *rec)
{
	const struct part *part = arg;
	const struct record_member *m =
	    &part->k->t->members[part->members[i / 2]];

	rec->name = m->name;
	rec->section = i % 2 == 0 ? REFTABLE_REFS : REFTABLE_LOGS;
	if (i % 2 == 0 && m->action == RECORD_DELETE)
		rec->is_deletion = true;
	else if (i % 2 == 0 && m->target != NULL)
		rec->ref = (struct reftable_ref){ .kind = REFTABLE_REF_SYMREF,
			.target = { m->target, strlen(m->target) } };
	else if (i % 2 == 0)
		rec->ref = (struct reftable_ref){ .kind = REFTABLE_REF_OID,
			.oid = m->new_oid };
	else
		stack_log_set(&rec->log, &m->old_oid, &m->new_oid,
		    part->k->committer, part->k->rec.message);
}

struct picked {
	struct part *part;
	size_t kept[16], nr;
};

/* Leaves out values of log-only members, and lines of others. */
static void set_picked(void *arg, size_t i, struct reftable_record *rec)
{
	const struct picked *p = arg;

	set_record(p->part, p->kept[i], rec);
}

static void pick(struct part *part, struct picked *p)
{
	const struct record_member *m;
	size_t i;

	*p = (struct picked){ .part = part };
	for (i = 0; i < part->nr; i++) {
		m = &part->k->t->members[part->members[i]];
		if (m->action == RECORD_WRITE || m->action == RECORD_DELETE)
			p->kept[p->nr++] = 2 * i;
		if (m->log)
			p->kept[p->nr++] = 2 * i + 1;
	}
}

static int look_up(struct part *part)
{
	const struct reftable_record *ref;
	struct stack_reader reader;
	struct record_member *m;
	size_t i;
	int r;

	r = stack_reader_init(&reader, part->update.base, rh_budget());
	for (i = 0; i < part->nr && r >= 0; i++) {
		m = &part->k->t->members[part->members[i]];
		m->base_index = part->update.base->max_index;
		r = stack_reader_find(&reader, m->name, &ref);
		if (r > 0 && ref->ref.kind != REFTABLE_REF_SYMREF) {
			m->had_old = true;
			m->old_oid = ref->ref.oid;
		}
		m->old_index = r > 0 ? ref->update_index : reader.deleted_index;
		/* HEAD follows its branch. */
		if (m->action == RECORD_LOG) {
			m->had_old = part->k->t->members[0].had_old;
			m->old_oid = part->k->t->members[0].old_oid;
		}
	}
	stack_reader_done(&reader);
	return r < 0 ? r : 0;
}

static int stage_part(struct part *part)
{
	struct stack_update *u = &part->update;
	struct picked picked;
	size_t i;
	int r;

	stack_update_init(u, part->stack, part->git_fd, &part->k->token,
	    2 * (unsigned)part->place);
	part->is_begun = true;
	r = stack_update_begin(u);
	if (r == 0)
		r = look_up(part);
	pick(part, &picked);
	if (r == 0)
		r = stack_table_make(u, picked.nr, set_picked, &picked);
	if (r == 0)
		r = stack_update_lock(u);
	if (r == 0)
		r = stack_base_check(u);
	if (r >= 0)
		r = stack_sync_base(u, INT64_MIN, false);
	if (r == 0)
		r = stack_update_list(u);
	for (i = 0; i < part->nr; i++)
		part->k->t->members[part->members[i]].update_index = u->index;
	return r;
}

static int commit(struct work *k)
{
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.repo = k->repo->id,
		.mount = k->repo->fs->mount,
		.token = k->token.id,
		.final = true };
	int r;

	k->rec.members = k->t->members;
	k->rec.nr_members = k->nr;
	refd_txid_make(&k->t->h.txid);
	row.txid = k->t->h.txid;
	r = token_locked_at(&k->token, &row.locked_at_ns);
	if (r < 0)
		return r;
	row.body = record_encode(&k->rec, &row.len);
	assert(row.body != NULL);
	r = journal_commit(k->w->store.journal, &row, 1, true);
	free((void *)(uintptr_t)row.body);
	k->t->h.lsn = row.lsn;
	return r > 0 ? -EIO : r;
}

static int each(struct work *k, int (*step)(struct part *part))
{
	int i, r = 0;

	for (i = 0; i < STACK_TXN_PLACES && r == 0; i++)
		if (k->parts[i].is_used)
			r = step(&k->parts[i]);
	return r;
}

static int sync_part(struct part *part)
{
	stack_sync_begin(&part->update, NULL, false);
	return stack_sync_end(&part->update);
}

static int place_part(struct part *part)
{
	return stack_update_place(&part->update);
}

static int unlock_part(struct part *part)
{
	return stack_update_unlock(&part->update);
}

static int open_part(struct part *part)
{
	int r = repo_open_worktree(part->k->w->sys, part->k->repo,
	    names[part->place]);

	if (r < 0)
		return r;
	part->git_fd = r;
	r = stack_set_get(part->k->repo->stacks, names[part->place],
	    part->git_fd, &part->stack);
	return r < 0 ? r : stage_part(part);
}

static int run(struct work *k)
{
	const enum stack_txn_step end = k->t->end;
	int r = each(k, open_part);

	if (r == 0 && end > STACK_TXN_STAGED)
		r = commit(k);
	if (r == 0 && end > STACK_TXN_LOGGED)
		r = each(k, sync_part);
	if (r == 0 && end > STACK_TXN_SYNCED)
		r = each(k, place_part);
	if (r == 0 && end > STACK_TXN_PLACED)
		r = each(k, unlock_part);
	return r == 0 && end < STACK_TXN_DONE ? -EAGAIN : r;
}

/* Without a result, as after a crash, everything stays on the disk. */
static int end_part(struct part *part, int r)
{
	if (part->is_begun) {
		if (r < 0)
			part->update.list.progress = PROGRESS_DEFERRED;
		stack_update_end(&part->update);
	}
	if (part->stack != NULL)
		stack_put(part->stack);
	if (part->git_fd >= 0 && part->git_fd != part->k->repo->fd)
		SYS(part->k->w->sys, close, part->git_fd);
	return 0;
}

int stack_txn_apply(struct stack_txn *t, const struct record_member *members,
    size_t nr)
{
	struct work k = { .t = t, .w = t->h.w, .nr = nr };
	struct part *part;
	size_t i;
	int r;

	assert(nr <= 8);
	snprintf(k.committer, sizeof(k.committer),
	    "A U Thor <a@example.org> %u +0000", 1700000000 + k.w->seconds++);
	memcpy(t->members, members, nr * sizeof(*members));
	k.rec = (struct record){ .object_format = world_format(),
		.committer = k.committer,
		.message = "hand",
		.file_mode = 0644,
		.dir_mode = 0755,
		.atomic = t->h.atomic,
		.has_indices = true };
	k.repo = world_repo(k.w, WORLD_REPO);
	if (k.repo == NULL)
		return -EIO;
	for (i = 0; i < STACK_TXN_PLACES; i++)
		k.parts[i] =
		    (struct part){ .git_fd = -1, .place = (int)i, .k = &k };
	for (i = 0; i < nr; i++) {
		part = &k.parts[place_of(members[i].worktree)];
		part->is_used = true;
		part->members[part->nr++] = i;
		if (members[i].index >= k.rec.nr_updates)
			k.rec.nr_updates = members[i].index + 1;
	}
	r = token_init(&k.token, k.w->sys, k.repo->stage_fd,
	    pipeline_next_token(k.w->store.pipeline));
	if (r == 0)
		r = run(&k);
	atomic_store(&k.repo->touched, true);
	atomic_store(&k.repo->fs->touched, true);
	for (i = 0; i < STACK_TXN_PLACES; i++)
		end_part(&k.parts[i], r);
	if (r == 0)
		token_done(&k.token);
	repo_put(&k.w->store.repos, k.repo);
	return r;
}

void stack_txn_ok(struct stack_txn *t, struct world *w, const char *name,
    char new_c)
{
	const struct record_member m = stack_txn_member(0, "", name, new_c);
	int r;

	t->h.w = w;
	t->end = STACK_TXN_DONE;
	r = stack_txn_apply(t, &m, 1);
	assert(r == 0);
}

static void drop_indices(const char *log, char *out)
{
	for (; *log != '\0'; log++) {
		if (*log == '@')
			log += strcspn(log, " ");
		*out++ = *log;
	}
	*out = '\0';
}

const char *stack_txn_look(struct world *w, const struct stack_txn_ref *ref,
    bool happened)
{
	const char want = happened ? ref->after : ref->before;
	const char is = stack_txn_value(w, ref->worktree, ref->name, NULL);
	static char text[400];
	char log[200];

	if (is != want) {
		snprintf(text, sizeof(text), "%s:%s is %c, not %c",
		    ref->worktree, ref->name, is, want);
		return text;
	}
	drop_indices(stack_txn_log(w, ref->worktree, ref->name), log);
	if (ref->log_after == NULL ||
	    strcmp(log, happened ? ref->log_after : ref->log_before) == 0)
		return NULL;
	snprintf(text, sizeof(text), "the log of %s:%s is %s", ref->worktree,
	    ref->name, log);
	return text;
}
