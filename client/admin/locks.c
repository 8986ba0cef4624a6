/*
 * refd locks: lists the lock files that transactions wait for or sessions hold,
 * with their age and their holders. With --clear-dead, refd-admin does the work
 * (daemon/admin/locks.c).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/admin/show.h"
#include "client/commands.h"
#include "client/program.h"
#include "client/request/question.h"
#include "client/request/rows.h"
#include "proto/lib/cli.h"
#include "proto/lib/colour.h"
#include "proto/lib/json.h"
#include "proto/lib/lock_pid.h"

/* ---- the holder of a lock ---- */

#define COMMAND_MAX 100

static bool is_git_there(const char *proc, const void *arg)
{
	const char *wanted = arg;
	char *path = xasprintf("%s/comm", proc);
	struct text comm = { 0 };
	char dir[4096];
	ssize_t n = -1;

	if (!text_read_file(&comm, path, SMALL_FILE_BYTES) &&
	    has_prefix(comm.data, "git")) {
		free(path);
		path = xasprintf("%s/cwd", proc);
		n = readlink(path, dir, sizeof(dir) - 1);
	}
	free(path);
	text_done(&comm);
	if (n < 0)
		return false;
	dir[n] = '\0';
	return has_prefix(dir, wanted) &&
	    (!dir[strlen(wanted)] || dir[strlen(wanted)] == '/');
}

/* "4711 (git pack-refs --all)" */
static void holder_name(struct text *t, uint64_t pid)
{
	char *path = xasprintf("/proc/%" PRIu64 "/cmdline", pid);
	struct text command = { 0 };
	size_t i;

	text_addf(t, "%" PRIu64, pid);
	/* The beginning of a long command line is enough. */
	text_read_file(&command, path, SMALL_FILE_BYTES);
	if (command.len) {
		for (i = 0; i + 1 < command.len; i++)
			if (!command.data[i])
				command.data[i] = ' ';
		if (command.len > COMMAND_MAX)
			command.data[COMMAND_MAX] = '\0';
		text_adds(t, " (");
		text_add_visible(t, command.data);
		text_addc(t, ')');
	}
	text_done(&command);
	free(path);
}

#define DETAIL_INDENT 4
/* Columns of a row in front of the path. */
#define ROW 29

/* The report on one lock file. */
struct lock_report {
	const char *file;
	struct row waits, held; /* the first row of each kind; zeroes: none */
	size_t nr_waits;
	uint64_t waited_ms; /* the longest wait */
	bool is_there;
	uint64_t age_s;
	struct lock_holder holder;
	bool is_guess; /* by the working directory of the holder */
};

static struct lock_report *lock_of(struct lock_report **locks, size_t *nr,
    const char *file)
{
	size_t i;

	for (i = 0; i < *nr; i++)
		if (!strcmp((*locks)[i].file, file))
			return &(*locks)[i];
	*locks = xrealloc(*locks, (*nr + 1) * sizeof(**locks));
	memset(&(*locks)[*nr], 0, sizeof(**locks));
	(*locks)[*nr].file = file;
	return &(*locks)[(*nr)++];
}

static struct lock_report *collect(const struct refd_answer *ans, size_t *nr)
{
	struct lock_report *locks = NULL, *lock;
	struct row row = { 0 };

	*nr = 0;
	while (row_next(ans, "lock", &row)) {
		lock = lock_of(&locks, nr, row_value(&row, "file"));
		if (!strcmp(row_value(&row, "kind"), "held")) {
			lock->held = row;
			continue;
		}
		if (row_number(&row, "age_ms") >= lock->waited_ms) {
			lock->waited_ms = row_number(&row, "age_ms");
			lock->waits = row;
		}
		lock->nr_waits++;
	}
	return locks;
}

/* The repository of FILE, or the directory around it. */
static char *repo_of(const char *file)
{
	char *copy = xstrdup(file), *at = strstr(copy, "/refs/");

	if (!at)
		at = strstr(copy, "/reftable/");
	if (!at)
		at = strrchr(copy, '/');
	if (at)
		*at = '\0';
	return copy;
}

/* A git process with its working directory in the repository, or 0, because the
 * open files may not show the holder. git works in the directory of a bare
 * repository, otherwise in the directory above .git, so both are looked at. */
static long guess(const char *file)
{
	char *repo = repo_of(file), *end;
	long pid = lock_pid_search(is_git_there, repo);

	end = strrchr(repo, '/');
	if (!pid && end && !strcmp(end, "/.git")) {
		*end = '\0';
		pid = lock_pid_search(is_git_there, repo);
	}
	free(repo);
	return pid;
}

static void find_holder(struct lock_report *lock, const struct stat *st)
{
	lock->holder =
	    lock_pid_find(st->st_dev, st->st_ino, lock_pid_open(lock->file));
	if (lock->holder.pid)
		return;
	lock->holder.pid = guess(lock->file);
	lock->is_guess = lock->holder.pid != 0;
}

static void look(struct lock_report *lock)
{
	struct stat st;

	lock->is_there = !lstat(lock->file, &st);
	if (lock->is_there)
		lock->age_s = lock_age_s(time(NULL), st.st_ctime);
	if (lock->held.ans)
		lock->holder.pid = (long)row_number(&lock->held, "pid");
	else if (lock->is_there)
		find_holder(lock, &st);
}

/* ---- for people ---- */

/* Sets *COLOUR to the colour of the line. */
static void add_holder(struct text *t, const struct lock_report *lock,
    enum colour *colour)
{
	*colour = COLOUR_PLAIN;
	if (!lock->is_there) {
		text_adds(t, "not there now, or not to be seen by this user");
		return;
	}
	if (lock->holder.verdict == HOLDER_ENDED) {
		text_addf(t,
		    "taken by process %ld, which has ended: it may be stale",
		    lock->holder.pid);
		*colour = COLOUR_WARNING;
		return;
	}
	if (lock->held.ans)
		text_adds(t, "held by a prepared session of process ");
	else if (lock->is_guess)
		text_adds(t, "perhaps of process ");
	else if (lock->holder.verdict == HOLDER_RUNS)
		text_adds(t, "taken by process ");
	else if (lock->holder.verdict == HOLDER_HAS_OPEN)
		text_adds(t, "open in process ");
	if (lock->holder.pid) {
		holder_name(t, (uint64_t)lock->holder.pid);
		return;
	}
	text_adds(t, "open in no process that could be seen: it may be stale");
	*colour = COLOUR_WARNING;
}

static void add_first(struct text *t, const struct lock_report *lock)
{
	text_addf(t, "first waits: transaction %s of ",
	    row_value(&lock->waits, "txn"));
	show_user(t, row_number(&lock->waits, "uid"));
	text_adds(t, ", process ");
	holder_name(t, row_number(&lock->waits, "pid"));
}

/* A path that does not fit into the line has the next line. */
static void print_row(const struct lock_report *lock)
{
	struct text age = { 0 }, waited = { 0 }, t = { .is_shown = true };
	size_t columns = show_columns();
	bool fits = !columns || ROW + strlen(lock->file) <= columns;

	text_adds(&waited, lock->nr_waits ? "" : "-");
	if (lock->nr_waits)
		show_time(&waited, lock->waited_ms * 1000);
	text_adds(&age, lock->is_there ? "" : "-");
	if (lock->is_there)
		show_age(&age, lock->age_s);
	text_addf(&t, "%-8s  %7zu  %-8s%s", age.data, lock->nr_waits,
	    waited.data, fits ? "  " : "\n");
	text_add_colour(&t, COLOUR_REF, lock->file);
	text_addc(&t, '\n');
	text_print(&t);
	text_done(&age);
	text_done(&waited);
}

static void print_lock(const struct lock_report *lock)
{
	struct text t = { .is_shown = true }, line = { 0 };
	enum colour colour;

	print_row(lock);
	add_holder(&line, lock, &colour);
	show_lines(&t, colour, line.data, DETAIL_INDENT, show_columns());
	text_clear(&line);
	if (lock->nr_waits) {
		add_first(&line, lock);
		show_lines(&t, COLOUR_PLAIN, line.data, DETAIL_INDENT,
		    show_columns());
	}
	text_done(&line);
	text_print(&t);
}

static void print_heading(void)
{
	colour_print(stdout, COLOUR_HEADING,
	    "AGE       WAITING  LONGEST   LOCK");
	print_lines(stdout, "\n");
}

/* ---- for programs ---- */

static void print_json(const struct lock_report *lock)
{
	struct json json = { .to = stdout }, *j = &json;
	struct text command = { 0 };

	json_begin(j, NULL, '{');
	json_text(j, "file", lock->file);
	json_flag(j, "there", lock->is_there);
	json_count(j, "age_s", lock->age_s);
	json_count(j, "waiting", lock->nr_waits);
	json_count(j, "waited_ms", lock->waited_ms);
	json_flag(j, "session", lock->held.ans != NULL);
	if (lock->holder.pid) {
		holder_name(&command, (uint64_t)lock->holder.pid);
		json_count(j, "pid", (uint64_t)lock->holder.pid);
		json_flag(j, "guessed", lock->is_guess);
		json_flag(j, "ended", lock->holder.verdict == HOLDER_ENDED);
		json_text(j, "holder", command.data);
		text_done(&command);
	}
	json_finish(j, '}');
}

struct locks_question {
	struct question q; /* first: the options of a question */
	bool clear_dead, yes;
	int wait_s; /* -1: the default of refd-admin */
};

static int clear_dead(const struct command *c, const struct locks_question *opt,
    int nr, char **repos)
{
	char **args = xcalloc((size_t)nr + 6, sizeof(*args));
	int n = 0;

	args[n++] = xstrdup(c->name);
	args[n++] = xstrdup("--clear-dead");
	if (opt->yes)
		args[n++] = xstrdup("--yes");
	if (opt->wait_s >= 0)
		args[n++] = xasprintf("--wait=%d", opt->wait_s);
	if (opt->q.json)
		args[n++] = xstrdup("--json");
	args[n++] = xstrdup("--");
	memcpy(args + n, repos, (size_t)nr * sizeof(*args));
	return program_admin(c, n + nr, args);
}

static int run_locks(const struct command *c, int argc, char **argv)
{
	struct locks_question opt = { .wait_s = -1 };
	struct question *q = &opt.q;
	struct refd_answer ans;
	struct lock_report *locks;
	size_t i, nr;
	int nr_repos = cli_parse(c, &opt, argc, &argv);

	if (opt.clear_dead && !nr_repos)
		cli_usage(c, "--clear-dead needs a repository");
	if (opt.clear_dead)
		return clear_dead(c, &opt, nr_repos, argv);
	if (nr_repos)
		cli_usage(c,
		    "unexpected argument '%s': a repository is for "
		    "--clear-dead",
		    argv[0]);
	if (opt.yes || opt.wait_s >= 0)
		cli_usage(c, "--yes and --wait are for --clear-dead");
	question_ask(q->socket, REFD_VERB_LOCKS, QUESTION_MS, &ans);
	locks = collect(&ans, &nr);
	if (nr > 0 && !q->json)
		print_heading();
	for (i = 0; i < nr; i++) {
		look(&locks[i]);
		if (q->json)
			print_json(&locks[i]);
		else
			print_lock(&locks[i]);
	}
	free(locks);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static const struct command_option options[] = { QUESTION_JSON, COLOUR_OPTION,
	QUESTION_SOCKET,
	{ OPTION_FLAG("clear-dead", 0,
	    "remove the locks of a repository that nobody holds",
	    struct locks_question, clear_dead) },
	{ OPTION_FLAG("yes", 0, "with --clear-dead: do not ask",
	    struct locks_question, yes) },
	{ OPTION_NUMBER("wait", 0, "SECONDS",
	    "with --clear-dead: wait for the end of processes",
	    struct locks_question, wait_s, 0, 24 * 3600) },
	{ 0 } };

const struct command locks_command = {
	.name = "locks",
	.summary = "list waits for locks, or remove dead locks",
	.arguments = "[<repository>...]",
	.purpose = "Lists the locks of refs that updates wait for, with their "
		   "holders and the waiting clients. With --clear-dead, "
		   "removes the locks that nobody holds.",
	.example = "refd locks",
	.manual = "refd-locks(1)",
	.most = COMMAND_ARGUMENTS_ANY,
	.options = options,
	.run = run_locks,
};
