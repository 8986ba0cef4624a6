#include "client/enable/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/enable/owner.h"

#define SYSTEM_STATE "/var/lib/refd"

static int lock_fd = -1;

/* As the daemon finds it (default_state() of daemon/config.c). */
static char *find_state(void)
{
	const char *env = getenv("REFD_STATE");
	const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	struct stat st;

	if (env && *env)
		return xstrdup(env);
	if (geteuid() == 0 ||
	    (stat(SYSTEM_STATE, &st) == 0 && st.st_uid == geteuid()))
		return xstrdup(SYSTEM_STATE);
	if (base && base[0] == '/')
		return xasprintf("%s/refd", base);
	if (home && home[0] == '/')
		return xasprintf("%s/.local/state/refd", home);
	return NULL;
}

/* Found once, for the user that started the program; NULL: none. */
static const char *state_dir(void)
{
	static char *dir;

	if (!dir)
		dir = find_state();
	return dir;
}

char *registry_file(const char *name)
{
	const char *dir = state_dir();

	return dir ? xasprintf("%s/enabled/%s", dir, name) : NULL;
}

/* Between enter() and leave(), root is the owner of the state directory. */
static void enter(void)
{
	const char *dir = state_dir();
	struct stat st;

	if (dir && stat(dir, &st) == 0)
		owner_enter(&st);
}

static void leave(void)
{
	owner_leave();
}

/* Makes missing parents, too. Only the owner may use the state directory. */
static int make_state(const char *state)
{
	char *dir = xstrdup(state), *at = dir;
	int err = 0;

	while (!err && (at = strchr(at + 1, '/'))) {
		*at = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			err = -errno;
		*at = '/';
	}
	if (!err && mkdir(dir, 0700) < 0 && errno != EEXIST)
		err = -errno;
	free(dir);
	return err;
}

static int lock_it(const char *dir)
{
	char *place = xasprintf("%s/enabled", dir);
	int err = 0;

	if (mkdir(place, 0755) < 0 && errno != EEXIST)
		err = -errno;
	if (!err) {
		lock_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (lock_fd < 0 || flock(lock_fd, LOCK_EX) < 0)
			err = -errno;
	}
	free(place);
	return err;
}

/* The rest of a killed command. */
static void remove_unfinished(void)
{
	char *path = registry_file("list.new");

	unlink(path);
	free(path);
}

bool registry_open(void)
{
	const char *dir = state_dir();
	int err = dir ? make_state(dir) : -ENOENT;

	if (!err) {
		enter();
		err = lock_it(dir);
		if (!err)
			remove_unfinished();
		leave();
	}
	if (err) {
		say_warning("cannot keep a list of what is enabled in %s: %s",
		    dir ? dir : "refd's state directory", strerror(-err));
		registry_close();
	}
	return !err;
}

void registry_close(void)
{
	if (lock_fd >= 0)
		close(lock_fd);
	lock_fd = -1;
}

bool registry_needed(const char *what)
{
	if (lock_fd < 0)
		say_error("%s cannot be done without it", what);
	return lock_fd >= 0;
}

/* ---- the list: "repository PATH" and "template PATH" ---- */

static const char *const kinds[] = { "repository ", "template " };

static void append(struct registry *r, const char *path, bool is_template)
{
	r->entries = xrealloc(r->entries, (r->nr + 1) * sizeof(*r->entries));
	r->entries[r->nr].path = xstrdup(path);
	r->entries[r->nr++].is_template = is_template;
}

bool registry_read(struct registry *r)
{
	char *path = registry_file("list"), *line, *rest;
	struct text t = { 0 };
	int err = -ENOENT;
	size_t kind;

	enter();
	if (path)
		err = text_read_file(&t, path);
	leave();
	if (err && err != -ENOENT && err != -ENOTDIR)
		say_error("cannot read %s: %s", path, strerror(-err));
	line = err ? NULL : strtok_r(t.data, "\n", &rest);
	for (; line; line = strtok_r(NULL, "\n", &rest))
		for (kind = 0; kind < 2; kind++)
			if (has_prefix(line, kinds[kind]))
				append(r, line + strlen(kinds[kind]),
				    kind == 1);
	text_done(&t);
	free(path);
	return !err || err == -ENOENT || err == -ENOTDIR;
}

void registry_done(struct registry *r)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		free(r->entries[i].path);
	free(r->entries);
	memset(r, 0, sizeof(*r));
}

static void write_list(const struct registry *r, const char *without)
{
	char *path = registry_file("list");
	struct text t = { 0 };
	size_t i;
	int err = 0;

	for (i = 0; i < r->nr; i++)
		if (!without || strcmp(r->entries[i].path, without))
			text_addf(&t, "%s%s\n",
			    kinds[r->entries[i].is_template],
			    r->entries[i].path);
	enter();
	if (t.len)
		err = durable_write(path, &t, 0666);
	else if (unlink(path) < 0 && errno != ENOENT)
		err = -errno;
	leave();
	if (err)
		say_warning("cannot write %s: %s", path, strerror(-err));
	text_done(&t);
	free(path);
}

static bool lists(const struct registry *r, const char *path)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		if (!strcmp(r->entries[i].path, path))
			return true;
	return false;
}

void registry_add(const char *path, bool is_template)
{
	struct registry r = { 0 };

	if (lock_fd < 0)
		return;
	if (strchr(path, '\n')) {
		say_warning("a path with a newline in it is not listed");
		return;
	}
	if (registry_read(&r) && !lists(&r, path)) {
		append(&r, path, is_template);
		write_list(&r, NULL);
	}
	registry_done(&r);
}

void registry_remove(const char *path)
{
	struct registry r = { 0 };

	if (lock_fd >= 0 && registry_read(&r) && lists(&r, path))
		write_list(&r, path);
	registry_done(&r);
}
