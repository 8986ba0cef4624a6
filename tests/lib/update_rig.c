#include "tests/lib/update_rig.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/update/update.h"
#include "tests/lib/tmp.h"

static struct fake fake;
static pid_t child;
static FILE *to, *from; /* of the child */
static bool joined;

void update_setup(void)
{
	tmp_setup();
	unsetenv("GIT_DIR");
	unsetenv("GIT_COMMITTER_DATE");
	tmp_run("git init -q -b main repo && rm -f repo/.git/hooks/* && "
		"cd repo && git -c user.name=n -c user.email=e "
		"commit -q --allow-empty -m x");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_int_eq(chdir("repo"), 0);
}

static struct refd_update held[4];
static size_t nr_held;

static void free_held(void)
{
	for (; nr_held; nr_held--)
		free((char *)held[nr_held - 1].name);
}

void update_teardown(void)
{
	free_held();
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

/* ---- the program ---- */

static void __attribute__((noreturn)) run_child(int in, int out, int go,
    char **argv)
{
	char path[512], c;
	int argc = 0;

	while (argv[argc])
		argc++;
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	close(in);
	close(out);
	snprintf(path, sizeof(path), "%s/sock", tmp_root);
	setenv("REFD_SOCKET", path, 1);
	signal(SIGPIPE, SIG_IGN);
	if (read(go, &c, 1) < 0)
		exit(2);
	close(go);
	cli_start(&update_command);
	exit(update_command.run(&update_command, argc, argv));
}

/* The child is made before the server's thread: a fork beside a thread could
 * copy a locked mutex. */
void update_start(void (*script)(struct fake *f), char **argv)
{
	int in[2], out[2], go[2];

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(pipe(out), 0);
	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close(in[1]);
		close(out[0]);
		close(go[1]);
		run_child(in[0], out[1], go[0], argv);
	}
	close(in[0]);
	close(out[1]);
	close(go[0]);
	to = fdopen(in[1], "w");
	from = fdopen(out[0], "r");
	ck_assert(to != NULL && from != NULL);
	fake_start(&fake, script);
	close(go[1]);
}

void update_start_stdin(void (*script)(struct fake *f))
{
	static char *argv[] = { "update", "--stdin", NULL };

	update_start(script, argv);
}

void update_put(const char *commands)
{
	fputs(commands, to);
	ck_assert_int_eq(fflush(to), 0);
}

static void read_line(char *line, int size)
{
	if (!fgets(line, size, from))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

void update_expect(const char *line)
{
	char got[4096];

	read_line(got, sizeof(got));
	ck_assert_str_eq(got, line);
}

void update_expect_start(const char *start)
{
	char got[4096];

	read_line(got, sizeof(got));
	ck_assert_msg(strncmp(got, start, strlen(start)) == 0, "said: %s", got);
}

void update_wait_for_server(void)
{
	ck_assert_int_eq(pthread_join(fake.thread, NULL), 0);
	joined = true;
}

void update_end_input(void)
{
	if (to)
		fclose(to);
	to = NULL;
}

void update_end(int wanted)
{
	char rest[4096] = "";
	int status;

	update_end_input();
	if (fgets(rest, sizeof(rest), from))
		ck_abort_msg("said, too: %s", rest);
	fclose(from);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), wanted);
	if (!joined)
		fake_stop(&fake);
}

/* ---- the server ---- */

void update_take(struct fake *f, enum refd_verb verb, struct refd_request *req)
{
	fake_read(f, req);
	fake_expect(f, req->verb == verb, "another request than expected");
}

void update_take_query(struct fake *f, enum refd_answer_kind kind)
{
	struct refd_update one = { .name = "refs/heads/a" };
	struct refd_request req, whole;

	update_take(f, REFD_VERB_QUERY, &req);
	whole = req;
	whole.updates = &one;
	whole.nr_updates = 1;
	if (kind == REFD_ANSWER_RESULTS)
		fake_answer_ok(f, &whole);
	else
		fake_answer_kind(f, &req, kind);
	refd_request_done(&req);
}

void update_take_session(struct fake *f, bool rewrites_packed)
{
	struct refd_result results[4] = { 0 };
	struct refd_answer ans = { .kind = REFD_ANSWER_PREPARED,
		.results = results,
		.rewrites_packed = rewrites_packed };
	struct refd_request req;

	update_take(f, REFD_VERB_SESSION, &req);
	ans.request_id = req.request_id;
	ans.txid = req.txid;
	free_held();
	nr_held = ans.nr_results = req.nr_updates;
	for (size_t i = 0; i < req.nr_updates; i++) {
		held[i].name = strdup(req.updates[i].name);
		results[i].name = held[i].name;
		if (!strcmp(results[i].name, "HEAD"))
			results[i].text = "refs/heads/main";
	}
	fake_answer(f, &ans);
	refd_request_done(&req);
}

/* Takes VERB; all updates have STATUS. */
static void take_end(struct fake *f, enum refd_verb verb,
    enum refd_status status)
{
	struct refd_result results[4] = { 0 };
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.results = results,
		.nr_results = nr_held,
		.nr_updates = nr_held,
		.outcome = status == REFD_OK ? REFD_COMMITTED : REFD_REJECTED,
		.lsn = 7 };
	struct refd_request req;
	size_t i;

	update_take(f, verb, &req);
	ans.request_id = req.request_id;
	ans.txid = req.txid;
	for (i = 0; i < nr_held; i++) {
		results[i].name = held[i].name;
		results[i].status = status;
	}
	fake_answer(f, &ans);
	refd_request_done(&req);
}

void update_take_end(struct fake *f, enum refd_verb verb)
{
	take_end(f, verb, verb == REFD_VERB_COMMIT ? REFD_OK : REFD_ABORTED);
}

void update_take_late_abort(struct fake *f)
{
	take_end(f, REFD_VERB_ABORT, REFD_OK);
}

void update_commits(struct fake *f)
{
	fake_serve(f);
	update_take_session(f, false);
	update_take_end(f, REFD_VERB_COMMIT);
}

void update_aborts(struct fake *f)
{
	fake_serve(f);
	update_take_session(f, false);
	update_take_end(f, REFD_VERB_ABORT);
}

void update_only_greets(struct fake *f)
{
	fake_serve(f);
}
