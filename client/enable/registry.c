/*
 * Every access to the files is a piece of work with the rights of the owner of
 * the state directory. The lock alone is taken by this process, because the
 * lock lasts until the end of the command.
 */
#include "client/enable/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/git/owner.h"
#include "client/request/hold.h"
#include "proto/lib/clock.h"

#define SYSTEM_STATE "/var/lib/refd"
/* 100,000 long paths. */
#define LIST_BYTES (16 << 20)
/* A command can hold the lock while it works on thousands of repositories. The
 * owner of the directory can hold the lock for ever, so the wait has a
 * limit. */
#define LOCK_MS 600000

static struct owned home; /* the state directory, once found */
static int lock_fd = -1;

/* ---- the state directory ---- */

/* As the daemon finds it (default_state() of daemon/config.c). */
static char *find_state(void)
{
	const char *env = getenv("REFD_STATE");
	const char *base = getenv("XDG_STATE_HOME"), *dir = getenv("HOME");
	struct stat st;

	if (env && *env)
		return xstrdup(env);
	if (geteuid() == 0 ||
	    (stat(SYSTEM_STATE, &st) == 0 && st.st_uid == geteuid()))
		return xstrdup(SYSTEM_STATE);
	if (base && base[0] == '/')
		return xasprintf("%s/refd", base);
	if (dir && dir[0] == '/')
		return xasprintf("%s/.local/state/refd", dir);
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

/* Makes missing parents, too, but only the owner may use the state
 * directory. */
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

/* WORK gives 0 or an errno. False, with *WHY, if the work failed, or was not
 * done. */
static bool do_there(struct work work, struct text *why)
{
	int err = 0;

	work.bytes = 2 * LIST_BYTES;
	if (home.path || owner_find(&home, state_dir(), why))
		err = owner_run(&home, work, why);
	if (err > 0)
		text_adds(why, strerror(err));
	return !why->len;
}

/* ---- the lock ---- */

static int make_place(void *unused)
{
	char *place = xasprintf("%s/enabled", home.path);
	char *unfinished = registry_file("list.new");
	int err = mkdir(place, 0755) < 0 && errno != EEXIST ? errno : 0;

	(void)unused;
	/* The rest of a killed command. */
	unlink(unfinished);
	free(unfinished);
	free(place);
	return err;
}

/* The owner may have made "enabled" a link, which is not followed. */
static bool lock_place(struct text *why)
{
	char *place = xasprintf("%s/enabled", home.path);
	bool ok;

	lock_fd = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ok = lock_fd >= 0 && hold_take(lock_fd, clock_deadline_ms(LOCK_MS));
	if (!ok)
		text_addf(why, "cannot lock it: %s", strerror(errno));
	free(place);
	return ok;
}

bool registry_open(void)
{
	const char *dir = state_dir();
	int err = dir ? make_state(dir) : -ENOENT;
	struct text why = { 0 };
	bool ok;

	if (err)
		text_adds(&why, strerror(-err));
	ok = !err && do_there((struct work){ .run = make_place }, &why) &&
	    lock_place(&why);
	if (!ok) {
		say_warning("cannot keep a list of what is enabled in %s: %s",
		    dir ? dir : "refd's state directory", why.data);
		registry_close();
	}
	text_done(&why);
	return ok;
}

void registry_close(void)
{
	if (lock_fd >= 0)
		close(lock_fd);
	lock_fd = -1;
}

/* ---- the list: lines of "repository PATH" ---- */

#define KIND "repository "

static void parse(struct registry *r, struct text *t)
{
	char *line = t->len ? strtok(t->data, "\n") : NULL;

	for (; line; line = strtok(NULL, "\n")) {
		if (!has_prefix(line, KIND))
			continue;
		r->paths = xrealloc(r->paths, (r->nr + 1) * sizeof(*r->paths));
		r->paths[r->nr++] = xstrdup(line + strlen(KIND));
	}
}

/* A missing list is empty. */
static int read_list(struct text *t)
{
	char *path = registry_file("list");
	int err = text_read_regular(t, path, LIST_BYTES);

	free(path);
	return err == -ENOENT || err == -ENOTDIR ? 0 : err;
}

static int tell_list(void *unused)
{
	struct text t = { 0 };
	int err = read_list(&t);
	size_t at, len;

	(void)unused;
	for (at = 0; at < t.len && !err; at += len) {
		len =
		    t.len - at < WORKER_TELL_MAX ? t.len - at : WORKER_TELL_MAX;
		err = worker_tell(t.data + at, len);
	}
	text_done(&t);
	return -err;
}

static int hear_list(void *arg, const char *data, size_t len)
{
	struct text *t = arg;

	if (t->len + len > LIST_BYTES)
		return -EFBIG;
	text_add(t, data, len);
	return 0;
}

bool registry_read(struct registry *r)
{
	struct text t = { 0 }, why = { 0 };
	const struct work work = { .run = tell_list,
		.hear = hear_list,
		.arg = &t };
	const char *dir = state_dir();
	bool ok = true;

	if (dir && (access(dir, F_OK) == 0 || errno != ENOENT))
		ok = do_there(work, &why);
	if (ok)
		parse(r, &t);
	else
		say_error("cannot read the list in %s: %s", dir, why.data);
	text_done(&t);
	text_done(&why);
	return ok;
}

void registry_done(struct registry *r)
{
	size_t i;

	for (i = 0; i < r->nr; i++)
		free(r->paths[i]);
	free(r->paths);
	memset(r, 0, sizeof(*r));
}

bool registry_leads_to(uid_t uid)
{
	return geteuid() != 0 || !home.st.st_uid || home.st.st_uid == uid;
}

/* ---- changes ---- */

struct list_change {
	const char *path;
	bool adds;
};

static int write_list(const struct text *t)
{
	char *path = registry_file("list");
	int err = 0;

	if (t->len)
		err = durable_write(path, t, 0666);
	else if (unlink(path) < 0 && errno != ENOENT)
		err = -errno;
	free(path);
	return err;
}

static int change_list(void *arg)
{
	const struct list_change *c = arg;
	struct text was = { 0 }, is = { 0 };
	struct registry r = { 0 };
	bool is_there = false;
	int err = read_list(&was);
	size_t i;

	parse(&r, &was);
	for (i = 0; i < r.nr; i++) {
		const bool is_it = !strcmp(r.paths[i], c->path);

		is_there |= is_it;
		if (!is_it)
			text_addf(&is, KIND "%s\n", r.paths[i]);
	}
	if (c->adds)
		text_addf(&is, KIND "%s\n", c->path);
	if (!err && c->adds != is_there)
		err = write_list(&is);
	registry_done(&r);
	text_done(&was);
	text_done(&is);
	return -err;
}

static void change(const char *path, bool adds)
{
	struct list_change c = { path, adds };
	const struct work work = { .run = change_list, .arg = &c };
	struct text why = { 0 };

	if (lock_fd < 0)
		return;
	if (!do_there(work, &why))
		say_warning("cannot write the list in %s: %s", state_dir(),
		    why.data);
	text_done(&why);
}

void registry_add(const char *path)
{
	if (lock_fd >= 0 && strchr(path, '\n'))
		say_warning("a path with a newline in it is not listed");
	else
		change(path, true);
}

void registry_remove(const char *path)
{
	change(path, false);
}
