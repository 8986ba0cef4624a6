/*
 * A child process becomes the user and asks. Its answer comes through a pipe: a
 * byte with the kind, then the reason.
 */
#include "client/request/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/refd.h"
#include "client/request/git_messages.h"

#define PROBE_MS 5000
/* Needs no new directory for its lock. */
#define NO_SUCH_REF "refs/heads/refd-doctor-was-here"

static bool become(uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);
	gid_t gid = pw ? pw->pw_gid : (gid_t)uid;

	if (geteuid() != 0 || uid == 0)
		return true;
	return (pw ? initgroups(pw->pw_name, gid) : setgroups(0, NULL)) == 0 &&
	    setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
}

static enum probe of_errno(int err)
{
	switch (err) {
	case -EPROTO:
		return PROBE_PROTOCOL;
	case -EACCES:
		return PROBE_CLOSED;
	case -EPERM:
		return PROBE_DENIED;
	default:
		return PROBE_AWAY;
	}
}

/* Any other status means that the daemon opened the repository. */
static bool is_refusal(enum refd_status status)
{
	return status == REFD_NOREPO || status == REFD_DENIED ||
	    status == REFD_UNSUPPORTED || status == REFD_IO ||
	    status == REFD_NOSPACE;
}

static enum probe ask_for_ref(struct refd *r, const struct gitdir *gd,
    enum refd_object_format format, struct text *why)
{
	struct refd_update update = { .action = REFD_VERIFY,
		.name = NO_SUCH_REF };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = gd->path,
		.common_dev = gd->dev,
		.common_ino = gd->ino,
		.object_format = format,
		.umask = 022,
		.deadline_ms = PROBE_MS,
		.updates = &update,
		.nr_updates = 1 };
	struct refd_answer ans;
	enum refd_status status = REFD_OK;
	const char *text = NULL;
	int err = refd_call(r, &req, 2 * PROBE_MS, &ans);

	if (err < 0) {
		text_adds(why, refd_error(r));
		return of_errno(err);
	}
	if (ans.kind == REFD_ANSWER_REFUSED) {
		status = ans.status;
		text = ans.text;
	} else if (ans.kind == REFD_ANSWER_RESULTS && ans.nr_results) {
		status = ans.results[0].status;
		text = ans.results[0].text;
	}
	if (is_refusal(status))
		git_messages_text(status, text, why);
	refd_answer_done(&ans);
	return is_refusal(status) ? PROBE_REFUSED : PROBE_OK;
}

static enum probe ask(const char *socket, const struct gitdir *gd,
    enum refd_object_format format, struct text *why)
{
	struct refd *r = refd_new(socket);
	enum probe probe = PROBE_OK;
	int err = r ? refd_connect(r, PROBE_MS) : -ENOMEM;

	if (err < 0) {
		probe = of_errno(err);
		text_adds(why, r ? refd_error(r) : "out of memory");
	} else if (refd_hello(r)->state != REFD_SERVING) {
		probe = PROBE_STATE;
		text_addf(why, "the daemon is %s",
		    refd_server_state_name(refd_hello(r)->state));
	} else if (gd) {
		probe = ask_for_ref(r, gd, format, why);
	}
	refd_free(r);
	return probe;
}

static void __attribute__((noreturn)) child(int fd, uid_t uid,
    const char *socket, const struct gitdir *gd, enum refd_object_format format)
{
	struct text why = { 0 };
	char kind = PROBE_CLOSED;
	ssize_t n;

	if (become(uid))
		kind = (char)ask(socket, gd, format, &why);
	else
		text_adds(&why, strerror(errno));
	n = write(fd, &kind, 1);
	if (n == 1 && why.len)
		n = write(fd, why.data, why.len);
	_exit(n < 0);
}

enum probe probe_as(uid_t uid, const char *socket, const struct gitdir *gd,
    enum refd_object_format format, struct text *why)
{
	enum probe probe = PROBE_AWAY;
	struct text said = { 0 };
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("cannot make a pipe: %s", strerror(errno));
	flush_output();
	pid = fork();
	if (pid < 0)
		die("cannot fork: %s", strerror(errno));
	if (pid == 0)
		child(ends[1], uid, socket, gd, format);
	close(ends[1]);
	text_read(&said, ends[0], SIZE_MAX);
	close(ends[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (said.len) {
		probe = (enum probe)said.data[0];
		text_adds(why, said.data + 1);
	}
	text_done(&said);
	return probe;
}
