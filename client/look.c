/*
 * refd look: asks the daemon to compare the refs of repositories with history,
 * and to record the differences (PROTOCOL.md, Looks). The daemon begins no look
 * by itself, so a timer runs this program for all repositories below a
 * directory. Only names and numbers of files are read here, because root may
 * look at repositories of any user.
 *
 * Happy path: a request for each repository, one after the other. In between
 * the program rests, so that looks take a tenth of the time of the disks. The
 * gate starts this program in the background, because git still has to write
 * the new name of a branch when its hook for the old name ends.
 *
 * Failures: a repository whose look is refused is reported, and the others
 * follow; a daemon that is away ends the program. But no timer repeats a look
 * that the gate starts. So such a look waits for the daemon, and is repeated
 * after longer and longer pauses.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/base/scan.h"
#include "client/commands.h"
#include "client/request/question.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"
#include "proto/lib/interrupt.h"

/* The rest after a look takes so many times as long as the look. */
#define REST 9
/* A git that goes on for longer writes many refs, and none waits for a look. */
#define AFTER_MS 1000
#define NAP_MS   10
/* With --after: the number of tries, and the pause after the first try. Each
 * further pause is twice as long, so all pauses together take 15 seconds. A
 * script that deletes thousands of branches one by one leaves a process for
 * each, at the user's cost, so there are no more tries. */
#define TRIES    5
#define PAUSE_MS 1000
/* With --after: the time for an answer, and for the daemon to come back. */
#define CALL_MS 60000
#define BACK_MS 120000

struct look_run {
	struct question q; /* first, because QUESTION_SOCKET is of its type */
	int after;         /* a process, or 0 */
	struct refd *r;
	uint64_t rest_until_ms;
	bool has_failed; /* a repository: what another look can't change */
	bool was_busy;   /* a repository: the next look may succeed */
};

static const char *value_of(const struct refd_answer *ans, const char *key)
{
	size_t i;

	for (i = 0; ans->kind == REFD_ANSWER_PAIRS && i < ans->nr_pairs; i++)
		if (!strcmp(ans->pairs[i].key, key))
			return ans->pairs[i].value;
	die("the daemon's answer is not one to this question");
}

static void tell(struct look_run *l, const char *dir,
    const struct refd_answer *ans)
{
	const char *seen, *left;

	if (ans->kind == REFD_ANSWER_REFUSED) {
		say_error("%s: %s: %s", dir, refd_status_name(ans->status),
		    ans->text && *ans->text ? ans->text :
					      refd_status_text(ans->status));
		if (ans->status == REFD_BUSY)
			l->was_busy = true;
		else
			l->has_failed = true;
		return;
	}
	seen = value_of(ans, "seen");
	left = value_of(ans, "left");
	if (strcmp(seen, "0") != 0)
		print_line(stdout, "%s: changes by other writers: %s", dir,
		    seen);
	if (strcmp(left, "0") != 0)
		print_line(stdout, "%s: refs left to the next look: %s", dir,
		    left);
}

static bool is_complete(const struct refd_answer *ans)
{
	if (ans->kind == REFD_ANSWER_REFUSED)
		return !refd_status_may_retry(ans->status);
	return !strcmp(value_of(ans, "left"), "0");
}

static void connect_looks(struct look_run *l)
{
	refd_free(l->r);
	l->r = question_connect(l->q.socket, l->after > 0 ? BACK_MS : 0);
}

/* Git holds a ref, other looks of the user wait, or the daemon starts again.
 * All of this passes, so the request is sent again. */
static void ask(struct look_run *l, const char *dir, struct refd_request *req,
    struct refd_answer *ans)
{
	const int call_ms = l->after > 0 ? CALL_MS : -1;
	int tries = l->after > 0 ? TRIES : 1, err;
	unsigned pause_ms = PAUSE_MS;

	while ((err = refd_call(l->r, req, call_ms, ans)) < 0 ||
	    !is_complete(ans)) {
		if (--tries == 0 || interrupt_came())
			break;
		if (!err && ans->kind == REFD_ANSWER_PAIRS)
			tell(l, dir, ans);
		if (!err)
			refd_answer_done(ans);
		clock_nap(pause_ms, CLOCK_FOREVER);
		pause_ms *= 2;
		if (err < 0)
			connect_looks(l);
	}
	if (err < 0)
		question_failed(l->r, err);
}

/* The git directory of DIR. False: the refs are those of a different directory,
 * as for a linked worktree. */
static bool find_refs(const char *dir, char **git_dir, struct stat *st)
{
	*git_dir = xasprintf("%s/.git", dir);
	if (lstat(*git_dir, st) == 0)
		return S_ISDIR(st->st_mode);
	free(*git_dir);
	*git_dir = xstrdup(dir);
	return stat(dir, st) == 0 && S_ISDIR(st->st_mode);
}

/* scan_repositories() */
static void look_at(const char *dir, void *data)
{
	struct look_run *l = data;
	struct refd_request req = { .verb = REFD_VERB_LOOK };
	struct refd_answer ans;
	struct stat st;
	uint64_t begin_ms;
	char *git_dir;

	clock_nap((unsigned)-1, l->rest_until_ms);
	begin_ms = clock_now_ms();
	if (find_refs(dir, &git_dir, &st)) {
		req.git_dir = git_dir;
		req.common_dev = (uint64_t)st.st_dev;
		req.common_ino = (uint64_t)st.st_ino;
		ask(l, dir, &req, &ans);
		tell(l, dir, &ans);
		refd_answer_done(&ans);
	}
	free(git_dir);
	l->rest_until_ms = clock_now_ms() + (clock_now_ms() - begin_ms) * REST;
}

/* Not a child of this process, so nothing can be waited for. */
static void await_end(pid_t pid)
{
	uint64_t end = clock_deadline_ms(AFTER_MS);

	while ((kill(pid, 0) == 0 || errno == EPERM) && clock_now_ms() < end)
		clock_nap(NAP_MS, end);
}

static int run_look(const struct command *c, int argc, char **argv)
{
	struct look_run l = { 0 };
	int i, nr = cli_parse(c, &l, argc, &argv);

	interrupt_catch();
	if (l.after > 0)
		await_end(l.after);
	connect_looks(&l);
	for (i = 0; i < nr && !interrupt_came(); i++)
		if (!scan_repositories(argv[i], look_at, &l))
			l.has_failed = true;
	refd_free(l.r);
	if (interrupt_came())
		return INTERRUPT_STATUS;
	if (l.has_failed)
		return EXIT_FAILED;
	return l.was_busy ? EXIT_AWAY : EXIT_DONE;
}

static const struct command_option look_options[] = {
	{ OPTION_NUMBER("after", 0, "PID",
	    "begin when the process PID has ended, or after a second",
	    struct look_run, after, 1, INT_MAX) },
	QUESTION_SOCKET, { 0 }
};

const struct command look_command = {
	.name = "look",
	.summary = "find changes by writers who did not tell refd",
	.arguments = "<directory>...",
	.purpose = "Records changes that other programs made to refs without "
		   "telling refd, in all repositories below the directories. "
		   "'refd log --foreign' lists them.",
	.example = "refd look /srv/git",
	.outcome = "Looks at each repository below the directory.",
	.manual = "refd-look(1)",
	.least = 1,
	.most = COMMAND_ARGUMENTS_ANY,
	.options = look_options,
	.run = run_look,
};
