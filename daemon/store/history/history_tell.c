/*
 * Converts a row of the journal into changes for the client. A later row can
 * take members back, so the rows that refer to the row are read, too.
 *
 * Happy path: the row's head matches, then the identities in its body, then its
 * members one by one: refs written and deleted, and rejected refs if requested.
 *
 * Special cases:
 *	taken back		a later row aborts the row, or a deferred copy:
 *				the change is told with its final outcome, or
 *				not at all
 *	taken back much later	by recovery, perhaps after the change was told:
 *				the abort record is told separately
 *	larger than an answer	the answer ends between two changes
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/history/history_internal.h"
#include "proto/arena.h"
#include "proto/pattern.h"

/* The size of a full answer, about. There is a limit, because answers wait in
 * the daemon's memory for their clients. */
#define BYTES_MAX (128 * 1024)
/* A change, or a record's head, without its strings. */
#define FRAME_BYTES 160

/* ---- what was taken back ---- */

/*
 * Finds the members of a row that were taken back.
 *
 * Happy path: reads the rows that refer to the row or to its deferred copies;
 * there are few. The rows come in the order of their LSNs, so the last word
 * about a member counts. The results live as long as the answer.
 *
 * Failure modes: a negative errno.
 */

struct history_taken {
	enum refd_status status; /* OK: not taken back */
	const char *text;        /* or NULL */
};

struct history_takings {
	struct refd_arena *arena;
	struct history_taken *list; /* by the member's index; NULL: none */
	size_t nr;
};

/* The index of a damaged record could be out of range. */
static int add_taking(struct history_takings *all,
    const struct record_member *m)
{
	struct history_taken *taken;

	if (m->status == REFD_OK || m->index >= all->nr)
		return 0;
	if (all->list == NULL)
		all->list =
		    refd_arena_zalloc(all->arena, all->nr * sizeof(*all->list));
	if (all->list == NULL)
		return -ENOMEM;
	taken = &all->list[m->index];
	*taken = (struct history_taken){ .status = m->status };
	if (m->text != NULL)
		taken->text =
		    refd_arena_string(all->arena, m->text, strlen(m->text));
	return m->text != NULL && taken->text == NULL ? -ENOMEM : 0;
}

static int take_about(void *arg, const struct journal_row *row)
{
	struct history_takings *all = arg;
	struct record rec;
	size_t i;
	int r;

	if (row->kind != JOURNAL_ABORT)
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	for (i = 0; i < rec.nr_members && r == 0; i++)
		r = add_taking(all, &rec.members[i]);
	record_done(&rec);
	return r;
}

/* ---- selection ---- */

static bool is_in_time(const struct refd_selection *s, int64_t time_us)
{
	uint64_t ms = time_us > 0 ? (uint64_t)time_us / 1000 : 0;

	return (s->since_ms == 0 || ms >= s->since_ms) &&
	    (s->until_ms == 0 || ms <= s->until_ms);
}

bool history_wants_row(const struct history *h,
    const struct store_question *ask, const struct journal_row *row)
{
	static const struct refd_txid any;
	const struct refd_request *req = &ask->req;

	if (row->kind != JOURNAL_SLICE &&
	    (row->kind != JOURNAL_ABORT || req->verb != REFD_VERB_WATCH))
		return false;
	return row->lsn > h->trimmed &&
	    (req->git_dir == NULL || row->repo == ask->repo) &&
	    (refd_txid_eq(&req->txid, &any) ||
		refd_txid_eq(&req->txid, &row->txid)) &&
	    is_in_time(&req->select, row->time_us);
}

/* As the index: the whole value, or the first word. */
static bool is_who(const struct refd_identity *id, const char *user)
{
	size_t word = strcspn(id->value, " ");

	return strcmp(id->value, user) == 0 ||
	    (strlen(user) == word && memcmp(id->value, user, word) == 0);
}

/* Did a requested user send the record? */
static bool wants_user(const struct refd_selection *s,
    const struct journal_row *row, const struct record *rec)
{
	size_t i;

	if (!s->has_uid && s->user == NULL)
		return true;
	if (s->has_uid && row->uid == s->uid)
		return true;
	for (i = 0; i < rec->nr_identities && s->user != NULL; i++)
		if (is_who(&rec->identities[i], s->user))
			return true;
	return false;
}

static bool wants_name(const struct refd_selection *s, const char *name)
{
	size_t i;

	if (s->nr_patterns == 0)
		return true;
	for (i = 0; i < s->nr_patterns; i++)
		if (refd_pattern_matches(s->patterns[i], name))
			return true;
	return false;
}

const char *history_name(const struct record_member *m,
    char buf[HISTORY_NAME_MAX])
{
	if (m->status != REFD_OK)
		return m->answers ? m->name : NULL;
	if (m->action != RECORD_WRITE && m->action != RECORD_DELETE)
		return NULL;
	if (m->worktree[0] == '\0')
		return m->name;
	snprintf(buf, HISTORY_NAME_MAX, "worktrees/%s/%s", m->worktree,
	    m->name);
	return buf;
}

bool history_wants_record(const struct refd_selection *select,
    const struct journal_row *row, const struct record *rec)
{
	char buf[HISTORY_NAME_MAX];
	const char *name;
	size_t i;

	if (!wants_user(select, row, rec))
		return false;
	if (rec->nr_members * select->nr_patterns > HISTORY_MATCHES_MAX)
		return true;
	for (i = 0; i < rec->nr_members; i++) {
		name = history_name(&rec->members[i], buf);
		if (name != NULL && wants_name(select, name))
			return true;
	}
	return false;
}

/* ---- abort records ---- */

struct target {
	uint64_t lsn, start;
	bool is_copy;
};

static int note_target(void *arg, const struct journal_row *row)
{
	struct target *target = arg;

	target->start = row->start;
	target->is_copy = row->kind == JOURNAL_DEFERRED;
	if (target->is_copy)
		target->lsn = row->refers_to;
	return 0;
}

/* If the start of the daemon that wrote a row also aborted the row, the row was
 * never told. So the abort is not told either. *LSN: the row that was told; 0:
 * none. */
static int find_target(struct history *h, const struct journal_row *row,
    uint64_t *lsn)
{
	struct target target = { .lsn = row->refers_to };
	int r;

	r = journal_read(h->reader, row->refers_to - 1, row->refers_to + 1,
	    false, 1, note_target, &target);
	*lsn = target.is_copy || target.start != row->start ? target.lsn : 0;
	return r > 0 ? -EIO : r;
}

/* ---- telling ---- */

static const char *copy_string(struct history_telling *t, const char *s,
    bool *ok)
{
	size_t len = strlen(s);
	char *p = refd_arena_string(t->ans->arena, s, len);

	t->bytes += len;
	*ok = *ok && p != NULL;
	return p;
}

static const char *copy_some(struct history_telling *t, const char *s, bool *ok)
{
	return s == NULL || *s == '\0' ? NULL : copy_string(t, s, ok);
}

struct row_telling {
	struct history_telling *t;
	const struct journal_row *row;
	const struct record *rec;
	const char *path;               /* of the repository; "" if not known */
	struct history_takings takings; /* with an arena: looked up */
	uint64_t refers_to;             /* of an abort record */
	struct refd_record *head;
};

/* No value is too long for the wire, because every value came over the wire. */
static struct refd_record *make_head(struct row_telling *rt)
{
	struct history_telling *t = rt->t;
	const struct journal_row *row = rt->row;
	const struct record *rec = rt->rec;
	struct refd_record *head;
	bool ok = true;
	size_t i;

	head = refd_arena_zalloc(t->ans->arena, sizeof(*head));
	if (head == NULL)
		return NULL;
	head->lsn = row->lsn;
	head->time_ms = row->time_us > 0 ? (uint64_t)row->time_us / 1000 : 0;
	head->uid = row->uid;
	head->pid = row->pid > 0 ? (uint64_t)row->pid : 0;
	head->txid = row->txid;
	head->voids = rt->refers_to;
	if (rec->is_gated && t->ask->req.select.origin)
		head->origin =
		    rec->is_seen ? REFD_ORIGIN_SEEN : REFD_ORIGIN_GATE;
	head->repo = copy_string(t, rt->path, &ok);
	head->object_format = rec->object_format;
	head->committer = copy_some(t, rec->committer, &ok);
	head->message = copy_some(t, rec->message, &ok);
	for (i = 0; i < rec->nr_identities; i++) {
		head->identities[i].name =
		    copy_string(t, rec->identities[i].name, &ok);
		head->identities[i].value =
		    copy_string(t, rec->identities[i].value, &ok);
	}
	head->nr_identities = rec->nr_identities;
	t->bytes += FRAME_BYTES;
	return ok ? head : NULL;
}

/* Does the member change a value, or was the value only verified? */
static bool is_change(const struct record *rec, const struct record_member *m)
{
	if (rec->is_gated)
		return m->target != NULL || !m->has_before ||
		    !refd_oid_eq(&m->before, &m->new_oid);
	if (m->action == RECORD_DELETE)
		return true;
	return m->target != NULL || !m->had_old ||
	    !refd_oid_eq(&m->old_oid, &m->new_oid);
}

/* TAKEN is the final outcome, or NULL if M stands as recorded. */
static bool fill_change(const struct row_telling *rt,
    const struct record_member *m, const struct history_taken *taken,
    struct refd_change *c)
{
	struct history_telling *t = rt->t;
	bool ok = true;

	c->status = taken != NULL ? taken->status : m->status;
	c->text = copy_some(t, taken != NULL ? taken->text : m->text, &ok);
	if (m->status != REFD_OK) {
		c->has_old = m->has_found;
		c->old_oid = m->found;
	} else {
		/* Null where there was none. */
		c->has_old = !rt->rec->is_gated || m->has_before;
		c->old_oid = rt->rec->is_gated ? m->before : m->old_oid;
		c->has_new = m->action == RECORD_DELETE || m->target == NULL ||
		    !refd_oid_is_null(&m->new_oid);
		c->new_oid = m->new_oid;
		c->target = copy_some(t, m->target, &ok);
	}
	t->bytes += FRAME_BYTES;
	return ok;
}

/* The final outcome of M, or NULL if M stands as recorded. Most rows have no
 * matching member, so the aborts of the row are looked up only for the first
 * one. */
static int find_taken(struct row_telling *rt, const struct record_member *m,
    const struct history_taken **taken)
{
	struct history_takings *all = &rt->takings;
	int r = 0;

	*taken = NULL;
	if (m->status != REFD_OK || rt->row->kind == JOURNAL_ABORT)
		return 0;
	if (all->arena == NULL) {
		all->arena = rt->t->ans->arena;
		all->nr = rt->rec->nr_updates;
		r = journal_read_about(rt->t->h->reader, rt->row->lsn,
		    take_about, all);
	}
	if (r == 0 && all->list != NULL && m->index < all->nr &&
	    all->list[m->index].status != REFD_OK)
		*taken = &all->list[m->index];
	return r > 0 ? -EIO : r;
}

/* Is M, with a matching name, told by its outcome? */
static bool is_told(const struct row_telling *rt, const struct record_member *m,
    const struct history_taken *taken)
{
	const struct refd_request *req = &rt->t->ask->req;
	bool is_log = req->verb == REFD_VERB_LOG;

	if (rt->refers_to != 0)
		return true;
	if (m->status != REFD_OK || taken != NULL)
		return is_log || req->select.all;
	/* A gate without a change has only confirmed a value, so there is
	 * nothing to tell. */
	return (is_log && !rt->rec->is_gated) || is_change(rt->rec, m);
}

/* Member number I of the row, from 0. */
static int tell_member(struct row_telling *rt, size_t i)
{
	const struct record_member *m = &rt->rec->members[i];
	struct history_telling *t = rt->t;
	struct refd_answer *ans = t->ans;
	const struct history_taken *taken;
	struct refd_change *changes;
	char buf[HISTORY_NAME_MAX];
	const char *name = history_name(m, buf);
	bool ok = true;
	int r;

	if (name == NULL || !wants_name(t->select, name))
		return 0;
	r = find_taken(rt, m, &taken);
	if (r < 0 || !is_told(rt, m, taken))
		return r;
	if (ans->nr_changes == t->limit || t->bytes > BYTES_MAX) {
		t->is_full = true;
		return 0;
	}
	if (rt->head == NULL)
		rt->head = make_head(rt);
	changes =
	    refd_arena_array(ans->arena, ans->nr_changes + 1, sizeof(*changes));
	if (rt->head == NULL || changes == NULL)
		return -ENOMEM;
	ans->changes = changes;
	changes = &changes[ans->nr_changes];
	memset(changes, 0, sizeof(*changes));
	changes->record = rt->head;
	changes->nr = (uint32_t)i + 1;
	changes->name = copy_string(t, name, &ok);
	if (!fill_change(rt, m, taken, changes) || !ok)
		return -ENOMEM;
	ans->nr_changes++;
	ans->next = (struct refd_position){ rt->row->lsn, (uint32_t)i + 1 };
	return 0;
}

/* The changes of a row between the requested positions. */
static void clip(const struct refd_selection *s, uint64_t lsn, size_t *from,
    size_t *to)
{
	if (s->has_after && s->after.lsn == lsn && s->after.nr > 0)
		*from = s->after.nr;
	if (s->has_before && s->before.lsn == lsn && s->before.nr > 0 &&
	    s->before.nr - 1 < *to)
		*to = s->before.nr - 1;
}

/* There may be 100,000 members, with 16 patterns each, so an answer may end
 * within a row. When the time is up, the next answer continues after the last
 * member. */
static int tell_members(struct row_telling *rt)
{
	struct history_telling *t = rt->t;
	size_t i, at, from = 0, to = rt->rec->nr_members;
	int r = 0;

	clip(t->select, rt->row->lsn, &from, &to);
	for (i = from; i < to && r == 0 && !t->is_full; i++) {
		at = t->select->reverse ? to - 1 - (i - from) : i;
		r = tell_member(rt, at);
		if (r < 0 || t->is_full || i + 1 == to ||
		    SYS(t->h->cfg->sys, now_mono) <= t->until_ns)
			continue;
		t->ans->next =
		    (struct refd_position){ rt->row->lsn, (uint32_t)at + 1 };
		t->is_full = true;
	}
	return r;
}

int history_tell(struct history_telling *t, const struct journal_row *row,
    const struct record *rec)
{
	struct history_repo *repo = &t->repos[row->repo % HISTORY_REPOS];
	struct row_telling rt = { .t = t, .row = row, .rec = rec };
	int r = 0;

	if (!wants_user(t->select, row, rec))
		return 0;
	if (!repo->is_learned || repo->id != row->repo)
		r = history_learn_repo(t->h, &t->ask->peer, row->repo, repo);
	if (r != 0 || !repo->may)
		return r;
	rt.path = repo->path != NULL ? repo->path : "";
	if (row->kind == JOURNAL_ABORT)
		r = find_target(t->h, row, &rt.refers_to);
	if (r == 0 && (row->kind == JOURNAL_SLICE || rt.refers_to != 0))
		r = tell_members(&rt);
	return r;
}
