#include <stdlib.h>
#include <string.h>

#include "client/request/context.h"
#include "client/update/exec_git.h"
#include "client/update/update.h"
#include "proto/lib/clock.h"

static const char *named_repository(const struct update_options *opt)
{
	return opt->git_dir ? opt->git_dir : getenv("GIT_DIR");
}

void updater_leave_to_git(const struct updater *up, const char *why, int status,
    const struct text *read)
{
	const bool is_in_group = connect_is_in_group(&up->gd);
	struct text not = { 0 };

	if (!is_in_group)
		exec_git_check(up->opt, why, status);
	switch (connect_may_leave(up->opt->socket, &up->config, &up->gd,
	    clock_deadline_ms(up->opt->timeout_ms), why, &not)) {
	case CONNECT_USE_GIT:
		exec_git(up->opt, why, read);
	case CONNECT_DENIED:
		die("%s", not.data);
	case CONNECT_SERVED:
	case CONNECT_FAILED:
		break;
	}
	cli_die(is_in_group ? status : EXIT_AWAY, "%s", not.data);
}

/* Connects, or lets git replace this program. */
static void find_daemon(struct updater *up)
{
	struct text why = { 0 };

	connect_choose(&up->socket, up->opt->socket, &up->config, &up->gd);
	up->daemon = connect_new(&up->socket);
	switch (connect_daemon(up->daemon, up->socket.path,
	    connect_fallback(&up->config, FALLBACK_REFUSE), &up->gd,
	    up->deadline, &why)) {
	case CONNECT_SERVED:
		break;
	case CONNECT_USE_GIT:
		updater_leave_to_git(up, why.data, EXIT_AWAY, NULL);
	case CONNECT_FAILED:
		cli_die(EXIT_AWAY, "%s", why.data);
	case CONNECT_DENIED:
		die("%s", why.data);
	}
	text_done(&why);
}

static void start_git(struct revisions *revs)
{
	char *dir = xasprintf("--git-dir=%s", revs->gd->path);
	const char *argv[] = { "git", dir, "cat-file",
		"--batch-check=%(objectname)", NULL };

	coprocess_start(&revs->git, argv);
	free(dir);
}

bool update_resolve(struct revisions *revs, const char *name,
    struct refd_oid *oid)
{
	const enum refd_object_format format = revs->object_format;
	const size_t hex = refd_object_format_hex(format);
	struct text answer = { 0 };
	bool found;

	if (strlen(name) == hex && refd_oid_parse(name, format, oid) == 0)
		return true;
	if (!*name || strchr(name, '\n'))
		return false;
	if (!revs->git.to)
		start_git(revs);
	if (!coprocess_ask(&revs->git, name, &answer))
		die("git cat-file ended before it answered");
	found =
	    answer.len == hex && refd_oid_parse(answer.data, format, oid) == 0;
	text_done(&answer);
	return found;
}

static void revisions_done(struct revisions *revs)
{
	coprocess_stop(&revs->git);
}

void updater_open(struct updater *up, const struct update_options *opt)
{
	const char *named = named_repository(opt), *reason;

	memset(up, 0, sizeof(*up));
	up->opt = opt;
	up->deadline = clock_deadline_ms(opt->timeout_ms);
	up->revs.gd = &up->gd;
	gitdir_require(&up->gd, named);
	context_config(&up->config, &up->gd);
	up->gd.is_reftable = gitconfig_is_reftable(&up->config);
	up->revs.object_format = gitconfig_object_format(&up->config, &up->gd);
	reason = exec_git_reason(opt, &up->gd, &up->config);
	if (reason)
		updater_leave_to_git(up, reason, EXIT_FATAL, NULL);
	up->committer = context_committer(&up->config, &up->gd);
	reftx_find(&up->hook, &up->gd, &up->config, named,
	    opt->messages == GIT_2_39);
	find_daemon(up);
}

void updater_close(struct updater *up)
{
	refd_free(up->daemon);
	reftx_done(&up->hook);
	revisions_done(&up->revs);
	gitconfig_done(&up->config);
	gitdir_done(&up->gd);
	free(up->socket.path);
	free(up->committer);
}
