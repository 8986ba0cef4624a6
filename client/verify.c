/*
 * refd verify: runs refd-admin, then confirms the restored refs to the daemon,
 * as the owner of the repository. For each ref, a transaction has the restored
 * value as old and as new value, so that history has the change. Nothing
 * changes, so no hook is asked. Without a daemon, verify warns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/git/identity.h"
#include "client/git/owner.h"
#include "client/program.h"
#include "client/request/connect.h"
#include "client/request/context.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"
#include "proto/lib/interrupt.h"

/* Bytes that tell of restored refs, enough for some 300,000 refs. If an owner
 * damages more refs, history hears of none of them. */
#define RESTORED_MAX (64 << 20)
#define CONFIRM_MS   10000
/* Of the work for one repository. */
#define CONFIRM_SECONDS 600
#define CONFIRM_BYTES   ((size_t)1 << 20)

/* The descriptor of RESTORED in refd-admin. */
#define RESTORED_FD 3

/* The fields that refd-admin writes for each restored ref. */
enum { REPO, REF, VALUE, FROM, FIELDS };

/* Returns the exit status of refd-admin. Control-C interrupts refd-admin, which
 * then prints the findings so far. */
static int run_admin(int argc, char **argv, FILE *restored)
{
	const char **args = xcalloc((size_t)argc + 3, sizeof(*args));
	struct launch l = { .argv = args,
		.kind = LAUNCH_TERMINAL,
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.err = STDERR_FILENO,
		.fds = { { fileno(restored), RESTORED_FD } } };
	char *path = program_path("refd-admin");
	struct launched c;
	int err;

	args[0] = path;
	args[1] = argv[0];
	args[2] = xasprintf("--restored-fd=%d", RESTORED_FD);
	memcpy(args + 3, argv + 1, (size_t)(argc - 1) * sizeof(*args));
	interrupt_catch();
	err = launch_start(&c, &l);
	if (err)
		die("cannot run %s: %s", path, strerror(-err));
	free((char *)args[2]);
	free(args);
	free(path);
	return launch_wait(&c);
}

/* ---- confirmation ---- */

/* Takes the fields at AT apart, and returns the place of the next row. */
static const char *take_row(const char *at, const char *end,
    const char *row[FIELDS])
{
	int i;

	for (i = 0; i < FIELDS; i++) {
		row[i] = at < end ? at : "";
		at += at < end ? strlen(at) + 1 : 0;
	}
	return at;
}

/* The restored refs of one repository. */
struct confirming {
	const char *repo, *rows, *end; /* borrowed */
	/* In the worker. */
	struct gitdir gd;
	struct gitconfig config;
	struct refd *daemon;
	char *committer;
};

static bool confirm(const struct confirming *c, const char *const row[FIELDS])
{
	struct refd_update u = { .action = REFD_UPDATE,
		.name = row[REF],
		.no_deref = true,
		.has_old = true };
	char *message = xasprintf("verify: restored from %s", row[FROM]);
	struct refd_request req;
	struct refd_answer ans;
	bool is_done;

	context_request(&req, &c->gd, &c->config);
	req.object_format = gitconfig_object_format(&c->config, &c->gd);
	req.committer = c->committer;
	req.message = message;
	req.updates = &u;
	req.nr_updates = 1;
	is_done =
	    refd_oid_parse(row[VALUE], req.object_format, &u.new_oid) == 0 &&
	    refd_txid_make(&req.txid) == 0;
	u.old_oid = u.new_oid;
	if (is_done) {
		connect_call(c->daemon, &req, clock_deadline_ms(CONFIRM_MS), 0,
		    &ans);
		is_done = ans.kind == REFD_ANSWER_RESULTS && ans.nr_results &&
		    ans.results[0].status == REFD_OK;
		refd_answer_done(&ans);
	}
	free(message);
	return is_done;
}

/* False: no daemon answers, and a message was printed. */
static bool open_repo(struct confirming *c)
{
	struct daemon_socket socket;
	struct text why = { 0 };

	if (!gitdir_at(&c->gd, c->repo, &why))
		die("%s", why.data);
	context_config(&c->config, &c->gd);
	c->committer = identity_committer(&c->config);
	connect_choose(&socket, NULL, &c->config, &c->gd);
	c->daemon = connect_new(&socket);
	free(socket.path);
	if (refd_connect(c->daemon, CONFIRM_MS) == 0)
		return true;
	say_warning("%s", refd_error(c->daemon));
	return false;
}

/* In a worker, which may die. */
static int confirm_repo(void *arg)
{
	struct confirming *c = arg;
	const bool is_open = open_repo(c);
	const char *row[FIELDS], *at = c->rows;

	while (at < c->end) {
		at = take_row(at, c->end, row);
		if (!is_open || !confirm(c, row))
			say_warning(
			    "%s: history does not have that it was restored",
			    row[REF]);
	}
	return 0;
}

/* With the rights of the owner, and without programs or hooks. */
static void confirm_as_owner(struct confirming *c)
{
	const struct work work = { .run = confirm_repo,
		.arg = c,
		.always_forks = true,
		.seconds = CONFIRM_SECONDS,
		.bytes = CONFIRM_BYTES };
	struct text why = { 0 };
	struct owned at;

	if (owner_work(&at, c->repo, work, &why) != 0)
		say_warning("%s: history does not have all that was restored: "
			    "%s",
		    c->repo, why.len ? why.data : "an error");
	text_done(&why);
}

static void confirm_all(FILE *restored)
{
	struct text all = { 0 };
	const char *row[FIELDS], *at, *end;
	struct confirming c;
	int r = lseek(fileno(restored), 0, SEEK_SET) < 0 ? -errno : 0;

	if (r == 0)
		r = text_read(&all, fileno(restored), RESTORED_MAX);
	if (r < 0)
		die("history does not have what was restored: cannot read a "
		    "temporary file: %s",
		    strerror(-r));
	end = all.data + all.len;
	for (at = all.data; at < end;) {
		c = (struct confirming){ .repo = at, .rows = at };
		do
			at = take_row(at, end, row);
		while (at < end && !strcmp(at, c.repo));
		c.end = at;
		confirm_as_owner(&c);
	}
	text_done(&all);
}

static int run_verify(const struct command *command, int argc, char **argv)
{
	FILE *restored;
	int rc;

	(void)command;
	restored = tmpfile();
	if (!restored)
		die("cannot make a temporary file: %s", strerror(errno));
	fflush(stdout);
	rc = run_admin(argc, argv, restored);
	confirm_all(restored);
	fclose(restored);
	return rc;
}

/* refd-admin parses the options. */
const struct command verify_command = {
	.name = "verify",
	.summary = "check the refs of a repository",
	.run = run_verify,
};
