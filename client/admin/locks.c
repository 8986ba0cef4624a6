/*
 * refd locks: lists the lock files that transactions wait for or sessions hold,
 * with their age and their holders.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/admin/admin.h"
#include "client/admin/holder.h"
#include "client/admin/rows.h"
#include "client/admin/show.h"
#include "client/base/cli.h"
#include "client/request/question.h"
#include "proto/lib/json.h"

/* The report on one lock file. */
struct lock {
	const char *file;
	struct row waits, held; /* the first row of each kind; zeroes: none */
	size_t nr_waits;
	uint64_t waited_ms; /* the longest wait */
	bool is_there;
	uint64_t age_s;
	uint64_t pid;     /* the holder; 0: unknown */
	bool pid_guessed; /* by its working directory */
};

static struct lock *lock_of(struct lock **locks, size_t *nr, const char *file)
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

static struct lock *collect(const struct refd_answer *ans, size_t *nr)
{
	struct lock *locks = NULL, *lock;
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
		at = strrchr(copy, '/');
	if (at)
		*at = '\0';
	return copy;
}

/* git works in the directory of a bare repository, otherwise in the directory
 * above .git. */
static uint64_t guess(const char *file)
{
	char *repo = repo_of(file), *end;
	uint64_t pid = holder_guess(repo);

	end = strrchr(repo, '/');
	if (!pid && end && !strcmp(end, "/.git")) {
		*end = '\0';
		pid = holder_guess(repo);
	}
	free(repo);
	return pid;
}

static void look(struct lock *lock)
{
	struct stat st;
	time_t now = time(NULL);

	lock->is_there = !lstat(lock->file, &st);
	if (lock->is_there && now > st.st_ctime)
		lock->age_s = (uint64_t)(now - st.st_ctime);
	if (lock->held.ans) {
		lock->pid = row_number(&lock->held, "pid");
		return;
	}
	if (lock->is_there)
		lock->pid = holder_find(&st);
	if (lock->is_there && !lock->pid) {
		lock->pid = guess(lock->file);
		lock->pid_guessed = lock->pid != 0;
	}
}

/* ---- for people ---- */

static void add_holder(struct text *t, const struct lock *lock)
{
	text_adds(t, "    ");
	if (!lock->is_there) {
		text_adds(t, "not there now, or not to be seen by this user\n");
		return;
	}
	show_span(t, lock->age_s);
	text_adds(t, " old, ");
	if (lock->held.ans)
		text_adds(t, "held by a prepared session of process ");
	else if (lock->pid_guessed)
		text_adds(t, "perhaps of process ");
	else if (lock->pid)
		text_adds(t, "open in process ");
	if (lock->pid)
		holder_name(t, lock->pid);
	else
		text_adds(t,
		    "open in no process that could be seen: it may be "
		    "stale");
	text_addc(t, '\n');
}

static void add_waits(struct text *t, const struct lock *lock)
{
	if (!lock->nr_waits)
		return;
	text_addf(t, "    %zu wait%s, for ", lock->nr_waits,
	    lock->nr_waits == 1 ? "s" : "");
	show_time(t, lock->waited_ms * 1000);
	text_adds(t, "; first: transaction ");
	text_add_visible(t, row_value(&lock->waits, "txn"));
	text_adds(t, " of ");
	show_user(t, row_number(&lock->waits, "uid"));
	text_adds(t, ", process ");
	holder_name(t, row_number(&lock->waits, "pid"));
	text_addc(t, '\n');
}

static void print_lock(const struct lock *lock)
{
	struct text t = { 0 };

	text_add_visible(&t, lock->file);
	text_addc(&t, '\n');
	add_holder(&t, lock);
	add_waits(&t, lock);
	text_print(&t);
}

/* ---- for programs ---- */

static void add_json(struct json *j, const struct lock *lock)
{
	struct text command = { 0 };

	json_begin(j, NULL, '{');
	json_text(j, "file", lock->file);
	json_flag(j, "there", lock->is_there);
	json_count(j, "age_s", lock->age_s);
	json_count(j, "waiting", lock->nr_waits);
	json_count(j, "waited_ms", lock->waited_ms);
	json_flag(j, "session", lock->held.ans != NULL);
	if (lock->pid) {
		holder_name(&command, lock->pid);
		json_count(j, "pid", lock->pid);
		json_flag(j, "guessed", lock->pid_guessed);
		json_text(j, "holder", command.data);
		text_done(&command);
	}
	json_end(j, '}');
}

static int run_locks(const struct command *c, int argc, char **argv)
{
	struct json j = { .to = stdout };
	struct question q = { 0 };
	struct refd_answer ans;
	struct lock *locks;
	size_t i, nr;

	cli_parse(c, &q, argc, &argv);
	question_ask(question_connect_admin(q.socket), REFD_VERB_LOCKS,
	    QUESTION_MS, &ans);
	locks = collect(&ans, &nr);
	if (q.json)
		json_begin(&j, NULL, '[');
	for (i = 0; i < nr; i++) {
		look(&locks[i]);
		if (q.json)
			add_json(&j, &locks[i]);
		else
			print_lock(&locks[i]);
	}
	if (q.json) {
		json_end(&j, ']');
		putchar('\n');
	}
	free(locks);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

const struct command locks_command = COMMAND("locks",
    "list waits for locks, and the holders", question_json, run_locks);
