#include "client/request/question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/librefd/refd_internal.h"
#include "client/request/connect.h"
#include "client/request/daemon_of.h"
#include "client/request/daemons.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"
#include "proto/lib/colour.h"
#include "proto/verb.h"

#define NAP_MS  50
#define TELL_MS 1000
/* An answer without a limit is awaited while a daemon is there. After it is
 * lost, a daemon has so much time to come back. */
#define LOOK_MS 1000
#define BACK_MS 10000

const struct command_option question_shown[] = { QUESTION_JSON, COLOUR_OPTION,
	QUESTION_SOCKET, { 0 } };
const struct command_option question_json[] = { QUESTION_JSON, QUESTION_SOCKET,
	{ 0 } };

/* The configuration of the current repository and of the user may name a
 * socket. As with git, a repository of another user has no say. A malformed
 * configuration may hide the name, and then a different daemon would be asked
 * or paused. */
static void load_config(struct gitconfig *config, struct gitdir *gd)
{
	struct text why = { 0 };
	bool in_repo = gitdir_find(gd, getenv("GIT_DIR"), &why);

	if (gitconfig_try(config, in_repo ? gd : NULL))
		die("cannot read git's configuration, which may name the "
		    "daemon's socket: correct the configuration, or name the "
		    "socket by --socket");
	text_done(&why);
}

/* Who is asked. */
struct asked {
	const char *option, *dir, *suffix;
	struct text *why; /* of question_try(), or NULL */
	struct gitconfig config;
	struct gitdir gd;
};

static struct refd *open_socket(const struct asked *a)
{
	struct daemon_socket socket;
	struct text why = { 0 };
	struct refd *r;
	char *path;

	if (!a->dir)
		connect_choose(&socket, a->option, &a->config, &a->gd);
	else if (!daemon_of(&socket, a->option, a->dir, &why))
		die("%s", why.data);
	connect_choose_running(&socket);
	path = xasprintf("%s%s", socket.path, a->suffix);
	free(socket.path);
	socket.path = path;
	r = connect_new(&socket);
	free(path);
	text_done(&why);
	return r;
}

/* Reports the progress of recovery, at most once per TELL_MS. */
static void say_progress(const struct refd *r, uint64_t *told_ms,
    uint64_t *told)
{
	const struct refd_hello *hello = refd_hello(r);
	uint64_t now = clock_now_ms();

	if (hello->state != REFD_RECOVERING || hello->total == 0 ||
	    hello->done == *told || now - *told_ms < TELL_MS)
		return;
	*told_ms = now;
	*told = hello->done;
	print_line(stderr, "refd: recovering %" PRIu64 " of %" PRIu64,
	    hello->done, hello->total);
}

static void add_failure(const struct refd *r, int err, struct text *why)
{
	text_adds(why, refd_error(r));
	daemons_add_start(r->path, err, why);
}

/* The socket is searched for again before each attempt, because a user's own
 * socket may appear while this function waits. */
static struct refd *connect_to(struct asked a, int wait_ms)
{
	uint64_t deadline = clock_deadline_ms(wait_ms);
	uint64_t told_ms = clock_now_ms(), told = 0;
	const char *env = getenv("REFD_SOCKET");
	struct refd *r;
	int err;

	if (!a.option && !a.dir && !(env && *env))
		load_config(&a.config, &a.gd);
	for (;;) {
		r = open_socket(&a);
		err = refd_connect(r, QUESTION_MS);
		if (err == 0 &&
		    (!wait_ms || refd_hello(r)->state == REFD_SERVING))
			break;
		if (err == 0)
			say_progress(r, &told_ms, &told);
		/* Without rights for administration, a part of the answers. A
		 * daemon that is silent there is silent on both. */
		if (err < 0 && err != -ETIMEDOUT && a.why && *a.suffix) {
			a.suffix = "";
			refd_free(r);
			continue;
		}
		if (err == -EPERM || err == -EACCES)
			die("%s", refd_error(r));
		if (err < 0 && a.why) {
			add_failure(r, err, a.why);
			refd_free(r);
			r = NULL;
			break;
		}
		if (clock_now_ms() >= deadline && err < 0)
			question_failed(r, err);
		if (clock_now_ms() >= deadline)
			break;
		refd_free(r);
		clock_nap(NAP_MS, deadline);
	}
	gitconfig_done(&a.config);
	gitdir_done(&a.gd);
	return r;
}

struct refd *question_connect(const char *option, int wait_ms)
{
	return question_connect_of(option, NULL, wait_ms);
}

struct refd *question_connect_of(const char *option, const char *dir,
    int wait_ms)
{
	return connect_to(
	    (struct asked){ .option = option, .dir = dir, .suffix = "" },
	    wait_ms);
}

struct refd *question_connect_admin(const char *option)
{
	return connect_to(
	    (struct asked){ .option = option, .suffix = REFD_ADMIN_SUFFIX }, 0);
}

struct refd *question_try(const char *option, struct text *why)
{
	return connect_to((struct asked){ .option = option,
			      .suffix = REFD_ADMIN_SUFFIX,
			      .why = why },
	    0);
}

void question_refused(const struct refd_answer *ans)
{
	if (ans->kind != REFD_ANSWER_REFUSED)
		return;
	if (ans->status == REFD_BUSY)
		cli_die(EXIT_AWAY, "the daemon is busy: %s",
		    ans->text ? ans->text : "try again");
	die("%s: %s", refd_status_name(ans->status),
	    ans->text && *ans->text ? ans->text :
				      refd_status_text(ans->status));
}

void question_failed(struct refd *r, int err)
{
	struct text why = { 0 };

	add_failure(r, err, &why);
	cli_die(err == -EPERM ? EXIT_FATAL : EXIT_AWAY, "%s", why.data);
}

/* Sends REQ again to a daemon that comes back. */
static int call_while_there(struct refd *r, struct refd_request *req,
    struct refd_answer *ans)
{
	int err = refd_submit(r, req), wait_ms = LOOK_MS;
	bool is_lost = false;

	while (err == 0) {
		err = refd_wait(r, req, wait_ms, ans);
		if (err == -ETIMEDOUT) {
			is_lost = false;
			wait_ms = LOOK_MS;
			err = 0;
		} else if (err == -ECONNRESET && !is_lost) {
			is_lost = true;
			wait_ms = BACK_MS;
			err = refd_submit(r, req);
		} else {
			break;
		}
	}
	return err;
}

void question_call(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	int err = timeout_ms < 0 ? call_while_there(r, req, ans) :
				   refd_call(r, req, timeout_ms, ans);

	if (err == -ECONNRESET && timeout_ms < 0)
		cli_die(EXIT_AWAY, "the daemon ended before it answered: %s",
		    refd_error(r));
	if (err < 0)
		question_failed(r, err);
	question_refused(ans);
}

void question_ask(const char *option, enum refd_verb verb, int timeout_ms,
    struct refd_answer *ans)
{
	struct refd_request req = { .verb = verb };
	struct refd *r = refd_verbs[verb].who == REFD_WHO_ADMIN ?
	    question_connect_admin(option) :
	    question_connect(option, 0);

	question_call(r, &req, timeout_ms, ans);
	if (ans->kind != REFD_ANSWER_PAIRS)
		die("the daemon's answer is not one to this question");
	refd_free(r);
}
