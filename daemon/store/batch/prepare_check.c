/*
 * Checks old values and directory/file conflicts, as git's lock_raw_ref() and
 * check_old_oid() do, and then finds the log lines.
 *
 * The happy path: all refs are held, and the backend has completed the values,
 * so that no value can change unnoticed after the check. Each old value is as
 * the update expects. The log of a ref gets a line if the ref is written. The
 * logs of symbolic refs that lead to the ref, and of HEAD, always get the line,
 * as in git: after an update from X to X, HEAD's log has a line from X to X.
 * The backend prepares the logs.
 *
 * What fails: the update, or its atomic transaction, with git's words.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/batch/backend.h"
#include "proto/refname.h"

#define RESOLVE_MAX 5 /* git's SYMREF_MAXDEPTH */

/* ---- the values of symbolic refs ---- */

static bool take_name(char name[REFD_REFNAME_MAX + 1], const char *from)
{
	if (strlen(from) > REFD_REFNAME_MAX)
		return false;
	strcpy(name, from);
	return true;
}

/* The change of the same transaction that writes the ref NAME before C, or
 * NULL. */
static const struct change *find_earlier(struct pass *p, struct change *c,
    const char *name)
{
	struct change at = { .slice = c->slice };
	const struct change *other;
	size_t i;

	if (pass_place(p, c->slice, name, &at) < 0)
		return NULL;
	for (i = pass_first_asked(p, &at, at.edit.name); i < p->nr_asked; i++) {
		other = p->changes[i];
		if (strcmp(other->edit.name, at.edit.name) != 0 ||
		    other->edit.dirfd != at.edit.dirfd)
			break;
		if (other->slice == c->slice && other->u < c->u &&
		    change_is_live(other) && other->action == CHANGE_WRITE &&
		    strcmp(other->u->ask->name, name) == 0)
			return other;
	}
	return NULL;
}

/* Reads the value of TARGET without locks, as git does, because the value is
 * only compared and logged. With EARLIER, the values are those after the
 * earlier changes of the transaction. false: a value may exist but can't be
 * read. If TARGET does not exist, OID is unchanged. */
static bool resolve(struct pass *p, struct change *c, const char *target,
    bool earlier, struct refd_oid *oid)
{
	struct change at = { .slice = c->slice, .repo_slice = c->repo_slice };
	char name[REFD_REFNAME_MAX + 1];
	const struct change *other;
	struct loose_value value;
	enum loose_kind kind;
	unsigned depth;

	if (!take_name(name, target))
		return false;
	for (depth = 0; depth < RESOLVE_MAX; depth++) {
		if (!refd_refname_may_write(name) ||
		    pass_place(p, c->slice, name, &at) < 0)
			return false;
		other = earlier ? find_earlier(p, c, name) : NULL;
		if (other != NULL && change_new_target(other) == NULL) {
			*oid = other->u->ask->new_oid;
			return true;
		}
		if (other != NULL) {
			if (!take_name(name, change_new_target(other)))
				return false;
			continue;
		}
		if (c->repo_slice->backend->look(p, &at, &value) < 0)
			return false;
		kind = value.kind;
		if (kind == LOOSE_SYMREF && !take_name(name, value.target))
			kind = LOOSE_BROKEN;
		if (kind == LOOSE_OID)
			*oid = value.oid;
		loose_value_done(&value);
		if (kind != LOOSE_SYMREF)
			return kind != LOOSE_BROKEN;
	}
	return false;
}

static void find_new_value(struct pass *p, struct change *c)
{
	const char *target = change_new_target(c);

	if (c->action != CHANGE_WRITE)
		return;
	c->new_oid = c->u->ask->new_oid;
	if (target != NULL)
		resolve(p, c, target, true, &c->new_oid);
}

/* ---- old values ---- */

static bool must_be_absent(const struct change *c)
{
	const struct refd_update *ask = c->u->ask;

	switch (ask->action) {
	case REFD_CREATE:
	case REFD_SYMREF_CREATE:
		return true;
	case REFD_VERIFY:
		return !ask->has_old || refd_oid_is_null(&ask->old_oid);
	case REFD_SYMREF_VERIFY:
		return !ask->has_old;
	case REFD_UPDATE:
	case REFD_SYMREF_UPDATE:
		return ask->has_old && ask->old_target == NULL &&
		    refd_oid_is_null(&ask->old_oid);
	case REFD_DELETE:
	case REFD_SYMREF_DELETE:
		return false;
	}
	return false;
}

static void found(struct change *c)
{
	c->u->has_found = true;
	if (c->exists)
		c->u->found = c->old_oid;
}

void change_cant_resolve(struct change *c)
{
	if (!change_is_live(c))
		return;
	found(c);
	change_fail_detail(c, REFD_MISSING, REFD_DETAIL_UNRESOLVED,
	    c->u->ask->name, change_shown_name(c), NULL);
}

static void check_old_target(struct change *c)
{
	const char *want = c->u->ask->old_target;

	if (!c->exists)
		change_cant_resolve(c);
	else if (c->target == NULL)
		change_fail_detail(c, REFD_NOTSYMREF, REFD_DETAIL_NOT_SYMREF,
		    c->u->ask->name, want, NULL);
	else if (strcmp(c->target, want) != 0)
		change_fail_detail(c, REFD_STALE, REFD_DETAIL_SYMREF_DIFFERS,
		    c->u->ask->name, c->target, want);
}

static void check_old_value(struct change *c)
{
	const enum refd_object_format format = c->edit.format;
	const struct refd_update *ask = c->u->ask;
	char is[REFD_OID_MAX_HEX + 1], want[REFD_OID_MAX_HEX + 1];
	/* A symbolic ref that dangles, or git's broken ref: a file with the
	 * null id, which git compares as an absent ref. */
	bool is_null = refd_oid_is_null(&c->old_oid);
	bool dangles = c->target != NULL && is_null;

	if (ask->old_target != NULL) {
		check_old_target(c);
	} else if (must_be_absent(c) && c->exists && (dangles || !is_null)) {
		found(c);
		change_fail_detail(c, REFD_EXISTS,
		    dangles ? REFD_DETAIL_DANGLING : REFD_DETAIL_EXISTS,
		    ask->name, NULL, NULL);
	} else if (change_needs_value(c) && !c->exists) {
		change_cant_resolve(c);
	} else if (change_needs_value(c) && is_null) {
		found(c);
		change_fail_detail(c, REFD_MISSING, REFD_DETAIL_ABSENT,
		    ask->name, refd_oid_hex(&ask->old_oid, format, want), NULL);
	} else if (change_needs_value(c) &&
	    !refd_oid_eq(&c->old_oid, &ask->old_oid)) {
		found(c);
		change_fail_detail(c, REFD_STALE, REFD_DETAIL_DIFFERS,
		    ask->name, refd_oid_hex(&c->old_oid, format, is),
		    refd_oid_hex(&ask->old_oid, format, want));
	}
}

/* ---- siblings ---- */

/* In the order of the pass, every asked name between the name of C and a name
 * below C begins with the name of C. So only the name after C must be looked
 * at. */
static bool may_have_below(const struct change *c)
{
	const struct change *next = c->next_in_repo;

	return !c->is_asked ||
	    (next != NULL && next->is_asked &&
		strncmp(next->edit.name, c->edit.name, strlen(c->edit.name)) ==
		    0);
}

void change_check_siblings(struct pass *p, struct change *c)
{
	char below[REFD_REFNAME_MAX + 2];
	struct change *other;
	size_t i;

	if (!may_have_below(c))
		return;
	strcpy(below, c->edit.name);
	strcat(below, "/");
	i = pass_first_asked(p, c, below);
	if (i == p->nr_asked)
		return;
	other = p->changes[i];
	if (other->slice != c->slice || other->edit.dirfd != c->edit.dirfd ||
	    strncmp(other->edit.name, below, strlen(below)) != 0)
		return;
	change_fail_detail(c, REFD_CONFLICT,
	    c->u < other->u ? REFD_DETAIL_NAMES_CLASH :
			      REFD_DETAIL_NAMES_CLASH_EARLY,
	    c->u->ask->name, c->edit.name, other->edit.name);
}

/* ---- all checks ---- */

static bool is_branch(const struct change *c)
{
	return strncmp(c->edit.name, "refs/heads/", 11) == 0 ||
	    strcmp(c->edit.name, "HEAD") == 0;
}

static void check_object(struct change *c)
{
	char hex[REFD_OID_MAX_HEX + 1];

	if (c->action != CHANGE_WRITE || change_new_target(c) != NULL)
		return;
	refd_oid_hex(&c->u->ask->new_oid, c->edit.format, hex);
	switch (c->u->object) {
	case TXN_OBJECT_UNKNOWN:
	case TXN_OBJECT_COMMIT:
		return;
	case TXN_OBJECT_TAG:
	case TXN_OBJECT_OTHER:
		if (is_branch(c))
			change_fail_detail(c, REFD_NOTCOMMIT,
			    REFD_DETAIL_NO_COMMIT, hex, c->edit.name, NULL);
		return;
	}
}

static void check_head(struct change *c)
{
	const char *target = change_new_target(c);

	if (strcmp(c->edit.name, "HEAD") != 0)
		return;
	if (c->action == CHANGE_DELETE)
		change_cant_lock(c, REFD_DENIED,
		    "without its HEAD this would be no repository any more");
	else if (c->action == CHANGE_WRITE && target != NULL &&
	    strncmp(target, "refs/", 5) != 0)
		change_cant_lock(c, REFD_DENIED,
		    "refusing to point HEAD outside of refs/");
}

/* The ref already has the new value. The update is recorded all the same,
 * because the value may be another writer's and not durable. */
static bool is_confirmed(const struct change *c)
{
	return c->action == CHANGE_WRITE && c->exists && c->target == NULL &&
	    change_new_target(c) == NULL &&
	    refd_oid_eq(&c->old_oid, &c->u->ask->new_oid);
}

/* Reads the value of a symbolic ref that is not followed. */
static void read_target(struct pass *p, struct change *c)
{
	if (c->target == NULL || resolve(p, c, c->target, false, &c->old_oid))
		return;
	if (!c->takes_any &&
	    (change_needs_value(c) || must_be_absent(c) ||
		c->u->ask->old_target != NULL))
		change_fail_detail(c, REFD_BROKEN, REFD_DETAIL_UNREADABLE,
		    c->u->ask->name, NULL, NULL);
}

/* ---- a gate ---- */

/* Has the ref the value that the gate told? */
static bool is_as_told(const struct change *c)
{
	const char *target = change_new_target(c);

	if (target != NULL || c->target != NULL)
		return target != NULL && c->target != NULL &&
		    strcmp(target, c->target) == 0;
	return refd_oid_eq(&c->old_oid, &c->u->ask->new_oid);
}

/* Git runs the hook for packed-refs too, where no ref changes, and for every
 * symbolic ref on the way, so not every report is a change. */
static bool is_unchanged(const struct change *c,
    const struct txn_before *before)
{
	if (c->target != NULL)
		return change_new_target(c) == NULL;
	return before->is_known && refd_oid_eq(&before->oid, &c->old_oid);
}

/* Was C changed, by anybody, since the values of the transaction were read? */
static bool is_outdated(const struct change *c)
{
	return !is_as_told(c) ||
	    repo_last_record(c->slice->repo, c->edit.name) >
	    c->slice->txn->seen_lsn;
}

/* Checks an update of a gate, which git has made or not. Only the disk says
 * which value the ref has now. If another writer came in between, the record
 * only confirms the value on the disk. Such a record is no change in history,
 * because the other writer reports the change. */
static void check_gated(struct pass *p, struct change *c)
{
	struct txn_update *u = c->u;
	struct txn_before before = { .is_known = false };

	if (u->txn->before != NULL)
		before = u->txn->before[u - u->txn->updates];
	if (c->target != NULL)
		resolve(p, c, c->target, false, &c->old_oid);
	if (!change_is_live(c))
		return;
	u->has_found = true;
	u->found = c->old_oid;
	if (is_unchanged(c, &before)) {
		txn_decide(u, REFD_ABORTED, "git has not changed the ref");
		return;
	}
	if (u->txn->req.gate == REFD_GATE_SEEN && is_outdated(c)) {
		txn_decide(u, REFD_ABORTED, "the ref has changed since");
		return;
	}
	c->new_oid = c->old_oid;
	if (!is_as_told(c))
		before = (struct txn_before){ true, c->old_oid };
	c->has_before = before.is_known;
	c->before = before.oid;
}

static void check(struct pass *p, struct change *c)
{
	struct replica *r = p->ap->replica;

	if (change_is_gated(c)) {
		check_gated(p, c);
		return;
	}
	REPLICA(r, permit, p, c);
	if (!change_is_live(c))
		return;
	read_target(p, c);
	if (change_is_live(c) && !c->takes_any)
		check_old_value(c);
	check_head(c);
	if (change_is_live(c) && !c->exists)
		c->repo_slice->backend->conflict(p, c);
	if (change_is_live(c) && !c->exists)
		REPLICA(r, compare_around, p, c);
	if (!change_is_live(c))
		return;
	find_new_value(p, c);
	if (is_confirmed(c))
		c->action = CHANGE_NOTHING;
	check_object(c);
}

void pass_check(struct pass *p, struct repo_slice *g)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_is_live(c) && c->is_end)
			check(p, c);
}

/* ---- log lines ---- */

bool change_forces_log(const struct change *c)
{
	if (!c->slice->txn->req.create_reflog)
		return false;
	switch (c->u->ask->action) {
	case REFD_UPDATE:
	case REFD_CREATE:
	case REFD_SYMREF_UPDATE:
	case REFD_SYMREF_CREATE:
		return true;
	case REFD_DELETE:
	case REFD_VERIFY:
	case REFD_SYMREF_DELETE:
	case REFD_SYMREF_VERIFY:
		break;
	}
	return false;
}

/* C writes a symbolic ref to a missing ref. Neither this ref nor the symbolic
 * refs that lead to it get a line. */
static bool leads_nowhere(const struct change *c)
{
	return c->action == CHANGE_WRITE && change_new_target(c) != NULL &&
	    refd_oid_is_null(&c->new_oid);
}

static bool is_logged(const struct change *c)
{
	switch (c->action) {
	case CHANGE_WRITE:
		return !leads_nowhere(c);
	case CHANGE_LOG:
		/* The deletion of a missing ref is not logged. */
		return c->of->action == CHANGE_DELETE ? c->of->exists :
							!leads_nowhere(c->of);
	case CHANGE_DELETE:
	case CHANGE_NOTHING:
		break;
	}
	return false;
}

static bool may_create_log(const struct change *c)
{
	return change_forces_log(c) ||
	    reflog_policy_creates(c->slice->log_policy, change_shown_name(c));
}

void pass_prepare_logs(struct pass *p, struct repo_slice *g)
{
	struct change *c;

	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_is_live(c) &&
		    (is_logged(c) || c->action == CHANGE_DELETE))
			g->backend->log(p, c, may_create_log(c));
}
