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

void update_teardown(void)
{
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
 * copy a locked mutex. It begins when the result is closed. */
static int start_child(char **argv)
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
	return go[1];
}

void update_start(const char *steps, char **argv)
{
	int go = start_child(argv);

	fake_start(&fake, steps);
	close(go);
}

void update_start_script(void (*script)(struct fake *f), char **argv)
{
	int go = start_child(argv);

	fake_start_script(&fake, script);
	close(go);
}

void update_start_stdin(const char *steps)
{
	static char *argv[] = { "update", "--stdin", NULL };

	update_start(steps, argv);
}

void update_prepare(const char *steps)
{
	update_start_stdin(steps);
	update_ask("create refs/heads/a " A "\nprepare\n", "prepare: ok");
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

void update_ask(const char *commands, const char *line)
{
	update_put(commands);
	update_expect(line);
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
