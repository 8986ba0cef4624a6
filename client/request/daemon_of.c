#include "client/request/daemon_of.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/git/owner.h"

/* The results of choose_here(). */
enum { CHOSEN, NO_REPOSITORY, UNREADABLE };
/* A file that never ends holds up git, and the owner can choose such a file, so
 * the time has a limit. */
#define SECONDS 10

struct choice {
	struct owned at;
	struct daemon_socket *socket;
};

static void choose_outside(struct daemon_socket *s, const char *option)
{
	struct gitconfig config = { 0 };

	gitconfig_load(&config, NULL);
	connect_choose(s, option, &config, NULL);
	gitconfig_done(&config);
}

static void say_unreadable(const char *dir, struct text *why)
{
	text_clear(why);
	text_addf(why,
	    "%s: cannot read git's configuration, which may name the daemon's "
	    "socket: correct the configuration, or name the socket by "
	    "--socket",
	    dir);
}

bool daemon_of_gitdir(struct daemon_socket *s, const struct gitdir *gd,
    struct text *why)
{
	struct gitconfig config = { 0 };
	const bool ok = gitconfig_try(&config, gd) == 0;

	if (ok)
		connect_choose(s, NULL, &config, gd);
	else
		say_unreadable(gd->common, why);
	gitconfig_done(&config);
	return ok;
}

/* The worker has read files of the owner, also the owner's own configuration,
 * so only this process decides whether somebody else names the socket, too. */
bool daemon_of_read(struct daemon_socket *s, const char *path, uid_t owner)
{
	struct daemon_socket outside = { 0 };

	if (!*path)
		return false;
	choose_outside(&outside, NULL);
	free(s->path);
	*s = (struct daemon_socket){ .path = xstrdup(path),
		.is_guarded = strcmp(path, outside.path) != 0,
		.owner = owner };
	free(outside.path);
	return true;
}

static int choose_here(void *arg)
{
	const struct choice *c = arg;
	struct daemon_socket s = { 0 };
	struct gitdir gd = { 0 };
	struct text why = { 0 };
	int result = NO_REPOSITORY;

	if (owner_gitdir(&gd, &c->at, &why))
		result = daemon_of_gitdir(&s, &gd, &why) ? CHOSEN : UNREADABLE;
	if (result == CHOSEN && worker_tell(s.path, strlen(s.path) + 1) != true)
		result = UNREADABLE;
	free(s.path);
	gitdir_done(&gd);
	text_done(&why);
	return result;
}

static int hear(void *arg, const char *data, size_t len)
{
	const struct choice *c = arg;

	return len > 0 && memchr(data, '\0', len) == data + len - 1 &&
	    daemon_of_read(c->socket, data, c->at.st.st_uid);
}

/* False as of daemon_of(). Without a repository, S->path stays NULL. */
static bool choose_as_owner(struct daemon_socket *s, const char *dir,
    struct text *why)
{
	struct choice c = { .socket = s };
	const struct work work = { .run = choose_here,
		.hear = hear,
		.arg = &c,
		.seconds = SECONDS };
	int result = NO_REPOSITORY;

	if (owner_find(&c.at, dir, why))
		result = owner_run(&c.at, work, why);
	owned_done(&c.at);
	if (result == CHOSEN && s->path)
		return true;
	free(s->path);
	s->path = NULL;
	if (result == NO_REPOSITORY)
		return true;
	if (result >= 0)
		say_unreadable(dir, why);
	return false;
}

bool daemon_of(struct daemon_socket *s, const char *option, const char *dir,
    struct text *why)
{
	const char *env = getenv("REFD_SOCKET");
	struct gitdir gd = { 0 };
	bool ok = true;

	memset(s, 0, sizeof(*s));
	if (option || (env && *env)) {
		connect_choose(s, option, NULL, NULL);
		return true;
	}
	if (geteuid() == 0)
		ok = choose_as_owner(s, dir, why);
	else if (gitdir_at(&gd, dir, why))
		ok = daemon_of_gitdir(s, &gd, why);
	if (ok && !s->path)
		choose_outside(s, option);
	gitdir_done(&gd);
	if (ok)
		text_clear(why);
	return ok;
}
