#include "client/restore/restore_print.h"

#include <stdio.h>

#include "proto/lib/cli.h"
#include "proto/lib/json.h"
#include "proto/lib/time_text.h"

static void add_command(struct text *line, const struct refd_update *u,
    enum refd_object_format format)
{
	char old[REFD_OID_MAX_HEX + 1], new[REFD_OID_MAX_HEX + 1];

	refd_oid_hex(&u->old_oid, format, old);
	refd_oid_hex(&u->new_oid, format, new);
	if (u->action == REFD_CREATE)
		text_addf(line, "create %s %s", u->name, new);
	else if (u->action == REFD_DELETE)
		text_addf(line, "delete %s %s", u->name, old);
	else
		text_addf(line, "update %s %s %s", u->name, new, old);
}

/* For refd update --stdin. */
static void print_command(struct text *line)
{
	text_addc(line, '\n');
	print_bytes(stdout, line->data, line->len);
}

static void print_updates(const struct changes *changes,
    enum refd_object_format format, bool for_people)
{
	struct text line = { 0 };
	size_t i;

	for (i = 0; i < changes->nr; i++) {
		text_clear(&line);
		add_command(&line, &changes->updates[i], format);
		if (for_people)
			say("%s", line.data);
		else
			print_command(&line);
	}
	text_done(&line);
}

void restore_print_commands(const struct changes *changes,
    enum refd_object_format format)
{
	print_updates(changes, format, false);
}

void restore_print_plan(const struct changes *changes,
    enum refd_object_format format)
{
	print_updates(changes, format, true);
}

/* ---- notes ---- */

static void note(const struct plan_ref *ref)
{
	switch (ref->verdict) {
	case PLAN_RESTORE:
		if (ref->git_since)
			say_warning("%s: git %s the ref after its last record; "
				    "this change is undone, too",
			    ref->name,
			    refd_oid_is_null(&ref->now) ? "deleted" :
							  "changed");
		if (ref->git_around)
			say_warning("%s: git changed the ref between the "
				    "records before and after --at; the value "
				    "before the later record is restored",
			    ref->name);
		break;
	case PLAN_LEFT_GIT:
		say_warning("%s: left unchanged, because only git %s the ref, "
			    "at an unknown time; --undo-git restores the ref",
		    ref->name,
		    refd_oid_is_null(&ref->now) ? "deleted" : "changed");
		break;
	case PLAN_LEFT_SYMBOLIC:
		say_warning("%s: left unchanged, because the ref is or was "
			    "symbolic",
		    ref->name);
		break;
	case PLAN_LEFT_WORKTREE:
		say_warning("%s: left unchanged, because the ref belongs to a "
			    "work tree",
		    ref->name);
		break;
	}
}

void restore_print_notes(const struct restore_plan *plan)
{
	size_t i;

	for (i = 0; i < plan->nr; i++)
		note(&plan->refs[i]);
	if (plan->nr_made)
		say_warning("cannot restore the reflogs of %zu deleted ref%s",
		    plan->nr_made, plan->nr_made > 1 ? "s" : "");
}

/* ---- forms ---- */

static const char *left_name(enum restore_verdict verdict)
{
	switch (verdict) {
	case PLAN_RESTORE:
		break;
	case PLAN_LEFT_GIT:
		return "git";
	case PLAN_LEFT_SYMBOLIC:
		return "symbolic";
	case PLAN_LEFT_WORKTREE:
		return "worktree";
	}
	return NULL;
}

static void add_ref(struct json *j, const struct plan_ref *ref,
    enum refd_object_format format)
{
	char hex[REFD_OID_MAX_HEX + 1];

	json_begin(j, NULL, '{');
	json_text(j, "ref", ref->name);
	if (ref->verdict == PLAN_RESTORE) {
		json_text(j, "old", refd_oid_hex(&ref->now, format, hex));
		json_text(j, "new", refd_oid_hex(&ref->then, format, hex));
		if (ref->git_since || ref->git_around)
			json_flag(j, "git", true);
	}
	json_text(j, "why", left_name(ref->verdict));
	json_end(j, '}');
}

static void add_refs(struct json *j, const char *key,
    const struct restore_plan *plan, bool is_left)
{
	size_t i;

	json_begin(j, key, '[');
	for (i = 0; i < plan->nr; i++)
		if ((plan->refs[i].verdict != PLAN_RESTORE) == is_left)
			add_ref(j, &plan->refs[i], plan->object_format);
	json_end(j, ']');
}

void restore_print_json(const struct restore_plan *plan,
    const struct point_in_time *m, const char *repo, bool dry_run)
{
	struct json j = { .to = stdout };
	char number[32];

	json_begin(&j, NULL, '{');
	json_text(&j, "repo", repo);
	json_text(&j, "to", point_in_time_number(m, number));
	if (m->ms)
		json_count(&j, "time_ms", m->ms);
	json_flag(&j, "dry_run", dry_run);
	add_refs(&j, "updates", plan, false);
	add_refs(&j, "left", plan, true);
	json_count(&j, "unknown", plan->nr_unknown);
	json_finish(&j, '}');
}

static void add_count(FILE *to, const char **before, const char *verb,
    size_t nr)
{
	if (!nr)
		return;
	print_part(to, "%s%s %zu ref%s", *before, verb, nr, nr > 1 ? "s" : "");
	*before = ", ";
}

void restore_print_summary(const struct restore_plan *plan,
    const struct point_in_time *m, FILE *to)
{
	const char *before = "";
	char number[32], when[64];

	print_part(to, "restore to record %s", point_in_time_number(m, number));
	if (m->ms)
		print_part(to, " (%s)", time_text_local(m->ms, when));
	print_part(to, ": ");
	add_count(to, &before, "update", plan->nr_moved);
	add_count(to, &before, "create", plan->nr_made);
	add_count(to, &before, "delete", plan->nr_deleted);
	if (!*before)
		print_part(to, "nothing to change");
	if (plan->nr_unknown)
		print_part(to, "; refs left unchanged, without history: %zu",
		    plan->nr_unknown);
	print_lines(to, "\n");
}
