#include "client/enabled.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The record's first line; then a line for each step: kind, key, value and,
 * where a value was replaced, a line "was" with it behind the step's. */
#define FIRST_LINE "refd enabled 1"

static const char *const kinds[] = {
	[STEP_HOOKS_DIR] = "hooks-dir",
	[STEP_HOOK] = "hook",
	[STEP_ADD] = "add",
	[STEP_SET] = "set",
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

void enabled_add(struct enabled *en, enum step_kind kind, const char *key,
    const char *value, const char *old)
{
	struct step *step;

	en->steps = xrealloc(en->steps, (en->nr + 1) * sizeof(*en->steps));
	step = &en->steps[en->nr++];
	step->kind = kind;
	step->key = key ? xstrdup(key) : NULL;
	step->value = value ? xstrdup(value) : NULL;
	step->old = old ? xstrdup(old) : NULL;
}

struct step *enabled_find(const struct enabled *en, enum step_kind kind,
    const char *key)
{
	size_t i;

	for (i = en->nr; i-- > 0;)
		if (en->steps[i].kind == kind &&
		    (!key || !strcmp(en->steps[i].key, key)))
			return &en->steps[i];
	return NULL;
}

void enabled_done(struct enabled *en)
{
	size_t i;

	for (i = 0; i < en->nr; i++) {
		free(en->steps[i].key);
		free(en->steps[i].value);
		free(en->steps[i].old);
	}
	free(en->steps);
	memset(en, 0, sizeof(*en));
}

static char *record_path(const struct gitdir *gd)
{
	return xasprintf("%s/refd/enabled", gd->common);
}

/* ---- reading ---- */

static bool take_step(struct enabled *en, char *line)
{
	char *key = strchr(line, ' ');
	char *value = NULL;
	size_t kind;

	if (key)
		*key++ = '\0';
	if (!strcmp(line, "was") && key && en->nr) {
		en->steps[en->nr - 1].old = xstrdup(key);
		return true;
	}
	for (kind = 0; kind < NR_KINDS; kind++)
		if (!strcmp(line, kinds[kind]))
			break;
	switch (kind) {
	case STEP_HOOKS_DIR:
		enabled_add(en, STEP_HOOKS_DIR, NULL, NULL, NULL);
		return !key;
	case STEP_HOOK:
		enabled_add(en, STEP_HOOK, NULL, key, NULL);
		return key;
	case STEP_ADD:
	case STEP_SET:
		value = key ? strchr(key, ' ') : NULL;
		if (!value)
			return false;
		*value++ = '\0';
		enabled_add(en, (enum step_kind)kind, key, value, NULL);
		return true;
	}
	return false;
}

bool enabled_read(struct enabled *en, const struct gitdir *gd)
{
	char *path = record_path(gd), *line, *rest;
	struct text t = { 0 };
	int err = text_read_file(&t, path);
	bool ok = err == 0 || err == -ENOENT;

	if (!ok)
		say_error("cannot read %s: %s", path, strerror(-err));
	if (err == 0) {
		line = strtok_r(t.data, "\n", &rest);
		ok = line && !strcmp(line, FIRST_LINE);
		while (ok && (line = strtok_r(NULL, "\n", &rest)))
			ok = take_step(en, line);
		if (!ok)
			say_error("%s is damaged", path);
	}
	text_done(&t);
	free(path);
	return ok;
}

/* ---- writing ---- */

static void put_step(const struct step *step, struct text *t)
{
	text_adds(t, kinds[step->kind]);
	if (step->key)
		text_addf(t, " %s", step->key);
	if (step->value)
		text_addf(t, " %s", step->value);
	text_addc(t, '\n');
	if (step->old)
		text_addf(t, "was %s\n", step->old);
}

/* refd/ belongs to whom refs/ does: the daemon writes in both. */
static int make_directory(const struct gitdir *gd)
{
	char *refs = xasprintf("%s/refs", gd->common);
	char *dir = xasprintf("%s/refd", gd->common);
	struct stat st;
	int err = 0;

	if (mkdir(dir, 0700) < 0)
		err = errno == EEXIST ? 0 : -errno;
	else if (stat(refs, &st) < 0 || chmod(dir, st.st_mode & 07777) < 0)
		err = -errno;
	free(refs);
	free(dir);
	return err;
}

static int write_file(const char *path, const struct text *t)
{
	char *new = xasprintf("%s.new", path);
	int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int err = 0;

	if (fd < 0)
		err = -errno;
	errno = 0;
	if (!err &&
	    (write(fd, t->data, t->len) != (ssize_t)t->len || fsync(fd) < 0))
		err = errno ? -errno : -ENOSPC;
	if (fd >= 0 && close(fd) < 0 && !err)
		err = -errno;
	if (!err && rename(new, path) < 0)
		err = -errno;
	if (err)
		unlink(new);
	free(new);
	return err;
}

bool enabled_write(const struct enabled *en, const struct gitdir *gd)
{
	char *path = record_path(gd);
	struct text t = { 0 };
	size_t i;
	int err;

	text_adds(&t, FIRST_LINE "\n");
	for (i = 0; i < en->nr; i++)
		put_step(&en->steps[i], &t);
	err = make_directory(gd);
	if (!err)
		err = write_file(path, &t);
	if (err)
		say_error("cannot write %s: %s", path, strerror(-err));
	text_done(&t);
	free(path);
	return !err;
}

bool enabled_remove(const struct gitdir *gd)
{
	char *path = record_path(gd);
	bool ok = unlink(path) == 0 || errno == ENOENT;

	if (!ok)
		say_error("cannot remove %s: %s", path, strerror(errno));
	*strrchr(path, '/') = '\0';
	rmdir(path);
	free(path);
	return ok;
}
