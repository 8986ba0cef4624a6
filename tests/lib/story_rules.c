#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/record.h"
#include "tests/lib/story_internal.h"

#define MEMBERS_MAX 64

/* What the journal has of a ref in a transaction. */
struct made {
	uint32_t index; /* of the update */
	char name[64], value;
	char from, to; /* of the line */
	enum record_action action;
	bool log;
};

/* A transaction as the journal has it. */
struct known {
	size_t nr_updates, nr;
	enum refd_status status[STORY_UPDATES];
	struct made made[MEMBERS_MAX];
};

static char letter(const struct refd_oid *oid)
{
	return refd_oid_is_null(oid) ? '0' : (char)oid->bytes[0];
}

static void add_member(struct known *k, const struct record_member *m)
{
	struct made *made;

	if (m->index >= STORY_UPDATES)
		return;
	if (m->index >= k->nr_updates)
		k->nr_updates = m->index + 1;
	if (m->answers)
		k->status[m->index] = m->status;
	if (m->name == NULL || (m->worktree != NULL && *m->worktree != '\0'))
		return;
	for (made = k->made; made < k->made + k->nr; made++)
		if (made->index == m->index && strcmp(made->name, m->name) == 0)
			return; /* of an abort, or a copy */
	assert(k->nr < MEMBERS_MAX);
	*made = (struct made){ .index = m->index,
		.from = m->had_old ? letter(&m->old_oid) : '0',
		.to = letter(&m->new_oid),
		.action = m->action,
		.log = m->log };
	made->value = m->target != NULL ? '>' : made->to;
	snprintf(made->name, sizeof(made->name), "%s", m->name);
	k->nr++;
}

static int add_row(void *arg, const struct journal_row *row)
{
	struct record rec;
	size_t i;

	if (record_decode(row->body, row->len, &rec) != 0)
		return 0;
	for (i = 0; i < rec.nr_members; i++)
		add_member(arg, &rec.members[i]);
	record_done(&rec);
	return 0;
}

static void look_up(struct acting *a, const struct story_event *txn,
    struct known *k)
{
	struct journal_reader *reader;
	size_t i;
	int r;

	*k = (struct known){ 0 };
	for (i = 0; i < STORY_UPDATES; i++)
		k->status[i] = REFD_PENDING;
	r = journal_reader_open(a->w->store.journal, &reader);
	if (r == 0)
		r = journal_lookup(reader, JOURNAL_ANY_UID, &txn->txid, add_row,
		    k);
	assert(r == 0);
	journal_reader_close(reader);
}

const char *story_answer(struct acting *a, const struct story_event *txn)
{
	static char text[256];
	struct known k;
	size_t i, len = 0;

	look_up(a, txn, &k);
	for (i = 0; i < k.nr_updates; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
		    i > 0 ? ", " : "", refd_status_name(k.status[i]));
	return k.nr_updates > 0 ? text : "nothing";
}

void story_note(struct acting *a, const char *name, char value)
{
	struct story_event *event = &a->events[a->nr_events++];

	assert(a->nr_events <= STORY_EVENTS);
	*event = (struct story_event){ .value = value, .is_early = !a->w->up };
	snprintf(event->name, sizeof(event->name), "%s", name);
}

/* ---- answers ---- */

static bool is_above(const char *a, const char *b)
{
	return strncmp(a, b, strlen(a)) == 0 && b[strlen(a)] == '/';
}

/* Another program made a ref in the place of a ref of update UPDATE. Recovery
 * then gives the update up. */
static bool is_taken(const struct acting *a, const struct known *k,
    size_t update)
{
	const struct story_event *e;
	size_t i, n;

	for (i = 0; i < a->nr_events; i++) {
		e = &a->events[i];
		for (n = 0; e->name[0] != '\0' && n < k->nr; n++)
			if (k->made[n].index == update &&
			    (is_above(e->name, k->made[n].name) ||
				is_above(k->made[n].name, e->name)))
				return true;
	}
	return false;
}

/* The same for an atomic transaction: all updates go. */
static bool is_lost_to_name(const struct acting *a, const struct story_event *e,
    const struct known *k, size_t update)
{
	size_t i;

	for (i = 0; i < e->nr_asked; i++)
		if ((e->atomic || i == update) && is_taken(a, k, i))
			return true;
	return false;
}

/* A pruned commit may be there or not, whatever the answer. */
static bool may_be_pruned(const struct story_event *e, size_t update)
{
	size_t i;

	for (i = 0; i < e->nr_asked; i++)
		if ((e->atomic || i == update) && e->updates[i].is_pruned)
			return true;
	return false;
}

static void check_answers(struct acting *a, const struct story_event *e,
    const struct known *k)
{
	size_t i, nr_ok = 0;

	for (i = 0; i < e->nr; i++) {
		nr_ok += k->status[i] == REFD_OK;
		if (e->updates[i].told == TOLD_OK && k->status[i] != REFD_OK &&
		    !may_be_pruned(e, i) && !is_lost_to_name(a, e, k, i))
			story_fail(a,
			    "%s: update %zu was ok, and is %s by its id", e->id,
			    i, refd_status_name(k->status[i]));
		if (e->updates[i].told == TOLD_NO && k->status[i] == REFD_OK)
			story_fail(a,
			    "%s: update %zu was refused, and is ok by its id",
			    e->id, i);
	}
	/* After a power loss, recovery of files gives up a name alone. */
	if (e->atomic && nr_ok > 0 && nr_ok < e->nr &&
	    (a->run->tables || !is_lost_to_name(a, e, k, 0)))
		story_fail(a, "%s: an atomic transaction is torn", e->id);
}

/* ---- refs ---- */

/* Was the fault of this run a failing CALL? */
static bool has_failed(const struct acting *a, const char *call)
{
	return a->run->fault != NULL && a->run->fault->kind == SWEEP_ERRNO &&
	    strncmp(a->hit, call, strlen(call)) == 0;
}

/* The values that a ref may have, and the lines that the log of the ref must
 * have. */
struct rule {
	const char *name;
	bool may_be[256];
	bool is_wild, is_log_wild; /* another program wrote anything */
	char needs[64][4];
	size_t nr_needs;
	/* The values that git wrote, whose lines may stand in the log. Recovery
	 * adds no lost line below a line of git. */
	bool by_git[256], is_by_git;
};

static void follow_git(struct rule *rule, const struct story_event *e)
{
	if (strcmp(e->name, "packed-refs") == 0)
		rule->is_wild = true;
	if (strcmp(e->name, rule->name) != 0)
		return;
	rule->is_wild |= e->value == '*';
	rule->is_log_wild |= e->is_early || e->value == '*' || e->value == '0';
	rule->may_be[(unsigned char)e->value] = true;
	rule->by_git[(unsigned char)e->value] = rule->is_by_git = true;
}

static void follow_value(struct rule *rule, char value, bool is_certain)
{
	if (is_certain)
		memset(rule->may_be, 0, sizeof(rule->may_be));
	rule->may_be[(unsigned char)value] = true;
}

/* An update of the ref of RULE, answered ok. */
static bool is_asked(const struct rule *rule, const struct story_update *u)
{
	return u->told == TOLD_OK && u->is_direct &&
	    strcmp(u->name, rule->name) == 0;
}

static void follow_asked(struct acting *a, struct rule *rule,
    const struct story_event *e, const struct known *k)
{
	size_t i, n;

	for (i = 0; i < e->nr; i++) {
		if (!is_asked(rule, &e->updates[i]))
			continue;
		follow_value(rule, e->updates[i].value,
		    !may_be_pruned(e, i) &&
			(k->status[i] == REFD_OK ||
			    !is_lost_to_name(a, e, k, i)));
		for (n = 0; n < k->nr && k->made[n].index != i; n++)
			;
		/* A checkpoint leaves the answer, and not the line. */
		rule->is_log_wild |= n == k->nr;
	}
}

static void follow_txn(struct acting *a, struct rule *rule,
    const struct story_event *e, const struct known *k)
{
	const struct made *m;
	size_t i;

	follow_asked(a, rule, e, k);
	for (i = 0; i < k->nr; i++) {
		m = &k->made[i];
		if (strcmp(m->name, rule->name) != 0 ||
		    k->status[m->index] != REFD_OK)
			continue;
		rule->is_log_wild |= may_be_pruned(e, m->index);
		if (m->action == RECORD_DELETE)
			rule->nr_needs = 0;
		if (m->log && rule->nr_needs < 64)
			snprintf(rule->needs[rule->nr_needs++], 4, "%c>%c",
			    m->from, m->to);
		if ((m->action == RECORD_WRITE || m->action == RECORD_DELETE) &&
		    !is_asked(rule, &e->updates[m->index]))
			follow_value(rule, m->value,
			    !may_be_pruned(e, m->index));
	}
}

/* If a call fails in a start that gives up an update, because git has taken the
 * name, the line of the update stays in the log of HEAD (docs/known.md, 95). */
static bool may_keep_line(const struct acting *a, const struct rule *rule)
{
	return strcmp(rule->name, "HEAD") == 0 && has_failed(a, "");
}

static void check_log(struct acting *a, struct rule *rule)
{
	char copy[1024], *at = copy, *line;
	size_t i;

	snprintf(copy, sizeof(copy), "%s", story_log(a, rule->name));
	while ((line = story_word(&at)) != NULL) {
		for (i = 0; i < rule->nr_needs; i++)
			if (strcmp(rule->needs[i], line) == 0)
				break;
		if (i < rule->nr_needs)
			rule->needs[i][0] = '\0';
		else if ((strlen(line) != 3 ||
			     !rule->by_git[(unsigned char)line[2]]) &&
		    !may_keep_line(a, rule))
			story_fail(a, "the log of %s has %s: %s", rule->name,
			    line, story_log(a, rule->name));
	}
	if (rule->is_by_git || (a->may_lack_lines && a->run->fault != NULL))
		return;
	for (i = 0; i < rule->nr_needs; i++)
		if (rule->needs[i][0] != '\0')
			story_fail(a, "the log of %s lacks %s: %s", rule->name,
			    rule->needs[i], story_log(a, rule->name));
}

static void check_ref(struct acting *a, const char *name,
    const struct known *known)
{
	struct rule rule = { .name = name };
	char is = story_ref(a, name);
	size_t i;

	rule.may_be[strcmp(name, "HEAD") == 0 ? '>' : '0'] = true;
	for (i = 0; i < a->nr_events; i++)
		if (a->events[i].name[0] != '\0')
			follow_git(&rule, &a->events[i]);
		else
			follow_txn(a, &rule, &a->events[i], &known[i]);
	if (!rule.is_wild && !rule.may_be[(unsigned char)is])
		story_fail(a, "%s is %c", name, is);
	if (!rule.is_wild && !rule.is_log_wild)
		check_log(a, &rule);
}

/* ---- all ---- */

static void check_refs(struct acting *a, const struct known *known)
{
	size_t i, n;

	for (i = 0; i < a->nr_events; i++) {
		if (a->events[i].name[0] != '\0')
			check_ref(a, a->events[i].name, known);
		for (n = 0; n < known[i].nr; n++)
			check_ref(a, known[i].made[n].name, known);
		for (n = 0; n < a->events[i].nr; n++)
			check_ref(a, a->events[i].updates[n].name, known);
	}
}

void story_rules(struct acting *a)
{
	struct known known[STORY_EVENTS];
	const char *litter = world_litter(a->w);
	size_t i;

	if (a->locks[0] == '\0' && a->w->deferred == 0 && litter != NULL)
		story_fail(a, "%s", litter);
	if (memfs_bad_fds(a->w->fs) > 0)
		story_fail(a, "a closed descriptor was used");
	if (memfs_bad_syncs(a->w->fs) > 0)
		story_fail(a, "a failed sync was tried again");
	for (i = 0; i < a->nr_events; i++) {
		known[i] = (struct known){ 0 };
		if (a->events[i].name[0] != '\0')
			continue;
		look_up(a, &a->events[i], &known[i]);
		check_answers(a, &a->events[i], &known[i]);
	}
	if (a->w->deferred == 0 && !a->is_away)
		check_refs(a, known);
	/* The barrier of the rig (world_repo()) does not write the id of the
	 * repository again after a failed syncfs, as the daemon's does. So a
	 * power loss can take the id, and the records wait. */
	else if (a->run->fault != NULL && !has_failed(a, "syncfs"))
		story_fail(a, "%llu records wait",
		    (unsigned long long)a->w->deferred);
}
