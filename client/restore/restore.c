/*
 * The refs are read before history: what is changed meanwhile then differs from
 * the old value that is asked for, and is refused rather than undone.
 */
#include "client/restore/restore.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client/restore/moment.h"
#include "client/restore/undo.h"
#include "client/restore/tell.h"
#include "client/update/update.h"

/* Beyond what an update may take: many refs are made anew, a file each. */
#define REF_MS 10
/* Of a batch: with the longest of names these are within the protocol's limit
 * of bytes. */
#define BATCH_MAX 50000

struct restoring {
	struct update_options update;
	struct updater up;
	struct moment moment;
	const char *at;
	const char *patterns[REFD_PATTERNS_MAX];
	size_t nr_patterns;
	bool dry_run, force, undo_git, has_timeout;
	struct former former;
	struct present now;
	struct undo undo;
};

static const char usage_text[] =
    "usage: refd restore --at TIME|RECORD [--repo DIR] [--ref PATTERN]...\n"
    "                    [--dry-run | --force] [--undo-git] "
    "[--batch-updates]\n"
    "                    [--json] [--socket PATH] [--timeout MS]\n";

static void __attribute__((noreturn)) usage(FILE *to, int rc)
{
	fputs(usage_text, to);
	exit(rc);
}

/* ---- options ---- */

static void take_pattern(struct restoring *rs, const char *s)
{
	if (rs->nr_patterns == REFD_PATTERNS_MAX)
		die("more than %d patterns", REFD_PATTERNS_MAX);
	if (strlen(s) > REFD_REFNAME_MAX)
		die("a pattern is too long");
	rs->patterns[rs->nr_patterns++] = s;
}

static const char *take_repo(const char *dir)
{
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	char *path;

	if (!gitdir_at(&gd, dir, &why))
		die("%s", why.data);
	path = xstrdup(gd.path);
	gitdir_done(&gd);
	text_done(&why);
	return path;
}

static int take_timeout(const char *s)
{
	uint64_t ms;

	if (!parse_number(s, REFD_DEADLINE_MAX_MS, &ms) || ms == 0)
		usage(stderr, EXIT_USAGE);
	return (int)ms;
}

static void take(struct restoring *rs, int c, const char *value)
{
	switch (c) {
	case 'a':
		rs->at = value;
		break;
	case 'r':
		rs->update.git_dir = take_repo(value);
		break;
	case 'f':
		take_pattern(rs, value);
		break;
	case 'n':
		rs->dry_run = true;
		break;
	case 'F':
		rs->force = true;
		break;
	case 'g':
		rs->undo_git = true;
		break;
	case '0':
		rs->update.batch = true;
		break;
	case 'j':
		rs->update.output = OUTPUT_JSON;
		break;
	case 's':
		rs->update.socket = value;
		break;
	case 't':
		rs->update.timeout_ms = take_timeout(value);
		rs->has_timeout = true;
		break;
	case 'h':
		usage(stdout, EXIT_DONE);
	default:
		usage(stderr, EXIT_USAGE);
	}
}

static void parse(struct restoring *rs, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "at", required_argument, NULL, 'a' },
		{ "repo", required_argument, NULL, 'r' },
		{ "ref", required_argument, NULL, 'f' },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "force", no_argument, NULL, 'F' },
		{ "undo-git", no_argument, NULL, 'g' },
		{ "batch-updates", no_argument, NULL, '0' },
		{ "json", no_argument, NULL, 'j' },
		{ "socket", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct text why = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "hn0", long_options, NULL)) >= 0)
		take(rs, c, optarg);
	if (optind < argc || !rs->at || (rs->dry_run && rs->force))
		usage(stderr, EXIT_USAGE);
	if (!moment_parse(rs->at, &rs->moment, &why))
		die("%s", why.data);
	text_done(&why);
}

/* ---- what was ---- */

static void read_former(struct restoring *rs)
{
	struct refd_request req;
	struct refd_answer ans;
	bool more;
	size_t i;

	moment_request(&req, &rs->up.gd);
	memcpy(req.select.patterns, rs->patterns, sizeof(rs->patterns));
	req.select.nr_patterns = rs->nr_patterns;
	req.select.after.lsn = rs->moment.begin;
	do {
		moment_ask(rs->up.daemon, &req, &ans);
		if (ans.has_gap && ans.gap > rs->moment.position.at.lsn)
			die("what happened up to record %" PRIu64
			    " was forgotten meanwhile",
			    ans.gap);
		for (i = 0; i < ans.nr_changes; i++)
			former_add(&rs->former, &ans.changes[i]);
		more = ans.more;
		refd_answer_done(&ans);
	} while (more);
}

/* ---- the transaction ---- */

static uint32_t updates_max(const struct restoring *rs)
{
	return refd_hello(rs->up.daemon)->max_updates;
}

static void set_timeout(struct restoring *rs, size_t nr)
{
	size_t most = REFD_DEADLINE_MAX_MS - REFD_UPDATE_DEADLINE_MS;

	if (rs->has_timeout)
		return;
	rs->update.timeout_ms = REFD_UPDATE_DEADLINE_MS +
	    (int)(nr < most / REF_MS ? nr * REF_MS : most);
}

/* Deletions by themselves: a name that comes back may need their room, which
 * no transaction gives it. */
static int commit_batches(struct restoring *rs, const struct changes *changes)
{
	size_t max = updates_max(rs) < BATCH_MAX ? updates_max(rs) : BATCH_MAX;
	size_t at = 0, end = rs->undo.nr_deleted;
	struct changes some = { 0 };
	int rc = EXIT_DONE, one;

	for (; at < changes->nr; at += some.nr) {
		if (at == end)
			end = changes->nr;
		some.updates = changes->updates + at;
		some.nr = end - at < max ? end - at : max;
		one = updater_commit(&rs->up, &some);
		rc = rc ? rc : one;
	}
	return rc;
}

static int commit(struct restoring *rs, const struct changes *changes)
{
	set_timeout(rs, changes->nr);
	if (rs->update.batch)
		return commit_batches(rs, changes);
	if (changes->nr > updates_max(rs))
		die("%zu refs, and a transaction takes %u: choose with --ref, "
		    "or --batch-updates for several transactions",
		    changes->nr, updates_max(rs));
	return updater_commit(&rs->up, changes);
}

/* ---- consent ---- */

static void require_force(const struct restoring *rs)
{
	if (rs->moment.is_before_first)
		die("history has no record of this repository up to that "
		    "moment: check --at, or restore the state before the "
		    "first record by --force");
	if (rs->undo.nr_deleted)
		die("this would delete %zu ref%s: see --dry-run, and delete by "
		    "--force",
		    rs->undo.nr_deleted, rs->undo.nr_deleted > 1 ? "s" : "");
}

static bool is_yes(const char *line)
{
	return !strcasecmp(line, "y\n") || !strcasecmp(line, "yes\n");
}

/* Standard input that is not the terminal has other uses: a script reads the
 * list of its repositories there. */
static bool ask(const struct changes *changes)
{
	char line[8];

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return true;
	tell_plan(changes);
	fprintf(stderr, "Restore %zu ref%s? [y/N] ", changes->nr,
	    changes->nr > 1 ? "s" : "");
	return fgets(line, sizeof(line), stdin) && is_yes(line);
}

static int commit_if_allowed(struct restoring *rs,
    const struct changes *changes)
{
	if (rs->dry_run || !changes->nr)
		return EXIT_DONE;
	if (!rs->force) {
		require_force(rs);
		if (!ask(changes)) {
			say("nothing was changed");
			return EXIT_FAILED;
		}
	}
	return commit(rs, changes);
}

static int run(struct restoring *rs)
{
	bool json = rs->update.output == OUTPUT_JSON;
	struct changes changes = { 0 };
	int rc;

	undo_changes(&rs->undo, &changes);
	if (json) {
		tell_json(&rs->undo, &rs->moment, rs->up.gd.path, rs->dry_run);
	} else {
		tell_notes(&rs->undo);
		tell_summary(&rs->undo, &rs->moment,
		    rs->dry_run ? stderr : stdout);
	}
	if (rs->dry_run && !json)
		tell_commands(&changes);
	flush_output();
	rc = commit_if_allowed(rs, &changes);
	changes_done(&changes);
	return rc;
}

int command_restore(int argc, char **argv)
{
	struct restoring rs = { .update = { .form = FORM_UPDATE,
				    .never_git = true,
				    .timeout_ms = REFD_UPDATE_DEADLINE_MS } };
	char number[32], *message;
	int rc;

	parse(&rs, argc, argv);
	updater_open(&rs.up, &rs.update);
	moment_find(&rs.moment, rs.up.daemon, &rs.up.gd);
	message =
	    xasprintf("restore: to %s", moment_number(&rs.moment, number));
	rs.update.message = message;
	present_load(&rs.now, &rs.up.gd);
	rs.former.moment = rs.moment.position.at;
	read_former(&rs);
	undo_make(&rs.undo, &rs.former, &rs.now, rs.undo_git, rs.patterns,
	    rs.nr_patterns);
	rc = run(&rs);
	undo_done(&rs.undo);
	former_done(&rs.former);
	present_done(&rs.now);
	updater_close(&rs.up);
	free(message);
	flush_output();
	return rc;
}
