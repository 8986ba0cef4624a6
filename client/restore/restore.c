/*
 * The refs are read before history. So if a ref changes meanwhile, its old
 * value does not match, and the update is refused.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/git/quote.h"
#include "client/request/patterns.h"
#include "client/restore/point_in_time.h"
#include "client/restore/restore_plan.h"
#include "client/update/update.h"
#include "proto/lib/cli.h"
#include "proto/lib/consent.h"
#include "proto/lib/json.h"
#include "proto/lib/progress.h"
#include "proto/lib/time_text.h"
#include "proto/pattern.h"

/* ---- what is printed ---- */

/*
 * Prints a restore plan for people and for programs. One thread; nothing is
 * flushed.
 */

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

/* Prints the changes as input of git update-ref --stdin. */
static void restore_print_commands(const struct changes *changes,
    enum refd_object_format format)
{
	print_updates(changes, format, false);
}

/* The same lines for people, on standard error. */
static void restore_print_plan(const struct changes *changes,
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

/* Warnings, on standard error. */
static void restore_print_notes(const struct restore_plan *plan)
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

/* The whole plan as one JSON object on a line. */
static void restore_print_json(const struct restore_plan *plan,
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

/* "restore to record 4711: update 3 refs, ..." and a newline. */
static void restore_print_summary(const struct restore_plan *plan,
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

/* Each restored ref is a new file, so each adds to the time. */
#define REF_MS 10
/* The size of a batch. More updates with the longest names would not fit the
 * protocol's limit of bytes. */
#define BATCH_MAX 50000

struct restoring {
	struct update_options update;
	struct updater up;
	struct point_in_time point;
	const char *at;
	char *git_dir; /* owned; update's too; NULL: of the working directory */
	const char *patterns[REFD_PATTERNS_MAX];
	size_t nr_patterns;
	bool dry_run, force, undo_git;
	int timeout_ms; /* 0: by the number of refs */
	struct refs_then then;
	struct refs_now now;
	struct restore_plan plan;
};

/* ---- options ---- */

static const char *take_ref(void *values, const char *s)
{
	struct restoring *rs = values;

	patterns_add(rs->patterns, &rs->nr_patterns, s);
	return NULL;
}

static const char *take_repo(void *values, const char *dir)
{
	struct restoring *rs = values;
	struct text reason = { 0 };
	struct gitdir gd = { 0 };

	if (!gitdir_at(&gd, dir, &reason))
		die("%s", reason.data);
	free(rs->git_dir);
	rs->git_dir = xstrdup(gd.path);
	rs->update.git_dir = rs->git_dir;
	gitdir_done(&gd);
	text_done(&reason);
	return NULL;
}

static const struct command_option options[] = {
	{ OPTION_STRING("at", 0, "TIME|RECORD",
	      "the time, or the record of refd log, to go back to",
	      struct restoring, at),
	    .required = true },
	{ OPTION_TAKE("repo", 0, "DIR",
	    "the repository, instead of the current one", take_repo) },
	{ OPTION_TAKE("ref", 0, "PATTERN",
	      "restore only refs that match PATTERN", take_ref),
	    .repeats = true },
	{ OPTION_FLAG("dry-run", 'n', "print the updates and change nothing",
	      struct restoring, dry_run),
	    .excludes = 'd' },
	{ OPTION_FLAG("force", 0, "do not ask, and allow the deletion of refs",
	      struct restoring, force),
	    .excludes = 'd' },
	{ OPTION_FLAG("undo-git", 0, "also restore refs that only git changed",
	    struct restoring, undo_git) },
	{ OPTION_FLAG("batch-updates", '0',
	    "restore each ref independently of the others", struct restoring,
	    update.batch) },
	{ OPTION_SET("json", 0, "print JSON, for programs", struct restoring,
	    update.output, OUTPUT_JSON) },
	{ OPTION_STRING("socket", 0, "PATH",
	    "the daemon's socket, if not the configured one", struct restoring,
	    update.socket) },
	{ OPTION_NUMBER("timeout", 0, "MS", "give up after MS milliseconds",
	    struct restoring, timeout_ms, 1, REFD_DEADLINE_MAX_MS) },
	{ 0 }
};

/* ---- history ---- */

static void read_refs_then(struct restoring *rs)
{
	struct refd_request req;
	struct refd_answer ans;
	bool more;
	size_t i;

	point_in_time_request(&req, &rs->up.gd);
	memcpy(req.select.patterns, rs->patterns, sizeof(rs->patterns));
	req.select.nr_patterns = rs->nr_patterns;
	req.select.after.lsn = rs->point.begin;
	do {
		progress_show("Reading history", rs->then.nr, 0, "", "");
		point_in_time_ask(rs->up.daemon, &req, &ans);
		if (ans.has_gap && ans.gap > rs->point.position.at.lsn)
			die("the changes up to record %" PRIu64
			    " were removed from history meanwhile",
			    ans.gap);
		for (i = 0; i < ans.nr_changes; i++)
			refs_then_add(&rs->then, &ans.changes[i]);
		more = ans.more;
		refd_answer_done(&ans);
	} while (more);
	progress_clear();
}

/* A pattern with a typing error would restore nothing, and look done. */
static void require_refs(const struct restoring *rs)
{
	size_t i, k, nr = rs->then.nr + rs->now.nr;
	const char *name;

	for (i = 0; i < rs->nr_patterns; i++) {
		for (k = 0; k < nr; k++) {
			name = k < rs->then.nr ?
			    rs->then.refs[k]->name :
			    rs->now.refs[k - rs->then.nr].name;
			if (refd_pattern_matches(rs->patterns[i], name))
				break;
		}
		if (k == nr)
			die("no ref of the repository matches '%s', neither "
			    "now nor in history: \"%s\" lists the refs",
			    rs->patterns[i],
			    quote_command("refd", "log", "--repo",
				rs->up.gd.path, NULL));
	}
}

/* ---- the transaction ---- */

static uint32_t updates_max(const struct restoring *rs)
{
	return refd_hello(rs->up.daemon)->max_updates;
}

static void set_timeout(struct restoring *rs, size_t nr)
{
	size_t most = REFD_DEADLINE_MAX_MS - REFD_UPDATE_DEADLINE_MS;

	rs->update.timeout_ms = REFD_UPDATE_DEADLINE_MS +
	    (int)(nr < most / REF_MS ? nr * REF_MS : most);
	if (rs->timeout_ms)
		rs->update.timeout_ms = rs->timeout_ms;
}

/* Deletions come in batches of their own, because a new name may conflict with
 * a name that is deleted in the same transaction. */
static int commit_batches(struct restoring *rs, const struct changes *changes)
{
	size_t max = updates_max(rs) < BATCH_MAX ? updates_max(rs) : BATCH_MAX;
	size_t at = 0, end = rs->plan.nr_deleted;
	struct changes some = { 0 };
	int rc = EXIT_DONE, one;

	for (; at < changes->nr; at += some.nr) {
		if (at == end)
			end = changes->nr;
		some.updates = changes->updates + at;
		some.nr = end - at < max ? end - at : max;
		progress_show("Restoring refs", at, changes->nr, "", "");
		one = updater_commit(&rs->up, &some);
		rc = rc ? rc : one;
	}
	progress_clear();
	return rc;
}

static int commit(struct restoring *rs, const struct changes *changes)
{
	set_timeout(rs, changes->nr);
	if (rs->update.batch)
		return commit_batches(rs, changes);
	if (changes->nr > updates_max(rs))
		die("%zu refs are too many for a transaction of at most %u: "
		    "select refs by --ref, or use --batch-updates for several "
		    "transactions",
		    changes->nr, updates_max(rs));
	return updater_commit(&rs->up, changes);
}

/* ---- consent ---- */

static void require_force(const struct restoring *rs)
{
	if (rs->point.is_before_first)
		die("history has no record of this repository before --at: "
		    "check --at, or use --force to restore the state before "
		    "the first record");
	if (rs->plan.nr_deleted)
		die("this would delete %zu ref%s: list the changes by "
		    "--dry-run, then allow the deletion by --force",
		    rs->plan.nr_deleted, rs->plan.nr_deleted > 1 ? "s" : "");
}

/* A script may use standard input for a list of repositories, so the question
 * is asked only on a terminal. */
static bool ask(const struct restoring *rs, const struct changes *changes)
{
	char question[64];

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return true;
	restore_print_plan(changes, rs->plan.object_format);
	snprintf(question, sizeof(question), "Restore %zu ref%s?", changes->nr,
	    changes->nr > 1 ? "s" : "");
	return consent_ask(question) == CONSENT_YES;
}

static int commit_if_allowed(struct restoring *rs,
    const struct changes *changes)
{
	if (rs->dry_run || !changes->nr)
		return EXIT_DONE;
	if (!rs->force) {
		require_force(rs);
		if (!ask(rs, changes)) {
			say("nothing was changed");
			return EXIT_FAILED;
		}
	}
	return commit(rs, changes);
}

static int restore(struct restoring *rs)
{
	bool json = rs->update.output == OUTPUT_JSON;
	struct changes changes = { 0 };
	int rc;

	restore_plan_changes(&rs->plan, &changes);
	if (json) {
		restore_print_json(&rs->plan, &rs->point, rs->up.gd.path,
		    rs->dry_run);
	} else {
		restore_print_notes(&rs->plan);
		restore_print_summary(&rs->plan, &rs->point,
		    rs->dry_run ? stderr : stdout);
	}
	if (rs->dry_run && !json)
		restore_print_commands(&changes, rs->plan.object_format);
	cli_flush();
	rc = commit_if_allowed(rs, &changes);
	changes_done(&changes);
	return rc;
}

static int run_restore(const struct command *c, int argc, char **argv)
{
	struct restoring rs = { .update = { .form = FORM_UPDATE,
				    .never_git = true,
				    .timeout_ms = REFD_UPDATE_DEADLINE_MS } };
	char number[32], *message;
	struct text why = { 0 };
	int rc;

	cli_parse(c, &rs, argc, &argv);
	if (!point_in_time_parse(rs.at, &rs.point, &why))
		die("%s", why.data);
	text_done(&why);
	if (rs.timeout_ms)
		rs.update.timeout_ms = rs.timeout_ms;
	updater_open(&rs.up, &rs.update);
	point_in_time_find(&rs.point, rs.up.daemon, &rs.up.gd);
	message = xasprintf("restore: to %s",
	    point_in_time_number(&rs.point, number));
	rs.update.message = message;
	rs.now.object_format = rs.up.revs.object_format;
	refs_now_load(&rs.now, &rs.up.gd);
	rs.then.point = rs.point.position.at;
	read_refs_then(&rs);
	require_refs(&rs);
	restore_plan_make(&rs.plan, &rs.then, &rs.now, rs.undo_git, rs.patterns,
	    rs.nr_patterns);
	rc = restore(&rs);
	restore_plan_done(&rs.plan);
	refs_then_done(&rs.then);
	refs_now_done(&rs.now);
	updater_close(&rs.up);
	free(rs.git_dir);
	free(message);
	cli_flush();
	return rc;
}

const struct command restore_command = {
	.name = "restore",
	.summary = "set refs back to a point in time",
	.purpose = "Sets the refs of a repository back to their values at an "
		   "earlier time, with the daemon's history. Lists all updates "
		   "and asks before it changes refs.",
	.example = "refd restore --at '10 minutes ago' --dry-run",
	.outcome = "Lists the refs that would change, and changes nothing.",
	.manual = "refd-restore(1)",
	.options = options,
	.run = run_restore,
};
