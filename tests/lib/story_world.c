#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/plaingit.h"
#include "tests/lib/stack_txn.h"
#include "tests/lib/story_internal.h"

#define SECOND_NS INT64_C(1000000000)

const char *story_path(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), WORLD_REPO "/%s", name);
	return path;
}

static int open_dir(struct acting *a, const char *path)
{
	int fd = SYS(memfs_other(a->w->fs), openat, AT_FDCWD, path,
	    O_RDONLY | O_DIRECTORY, 0);

	assert(fd >= 0);
	return fd;
}

/* ---- set-up ---- */

static void make_stack(struct acting *a)
{
	const struct reftable_record head =
	    rh_symref("HEAD", 1, "refs/heads/main");
	struct rh_bytes table = rh_table(world_format(), 1, 1, &head, 1);
	const struct sys *sys = memfs_other(a->w->fs);
	int fd;

	memfs_mkdirs(a->w->fs, STACK_DIR);
	fd = open_dir(a, STACK_DIR);
	rh_add(sys, fd, &table, 1, 1, 1);
	SYS(sys, close, fd);
	rh_free(&table);
	scripted_sync(a->w);
}

void story_set_up(struct acting *a)
{
	const struct story_fault *fault = a->run->fault;
	struct memfs *fs = memfs_new();
	int r;

	if (fault != NULL && fault->n % 4 != 3)
		memfs_set_mode(fs, MEMFS_ORDERED);
	a->w = world_new(fs, true);
	if (a->run->tables)
		make_stack(a);
	r = world_start(a->w);
	assert(r == 0);
}

/* ---- looks ---- */

char story_ref(struct acting *a, const char *name)
{
	char at[256];

	snprintf(at, sizeof(at), "@%s", name);
	return a->run->tables ? stack_txn_value(a->w, "", name, NULL) :
				world_ref(a->w, at);
}

static char letter(const char *hex)
{
	struct refd_oid oid;

	if (refd_oid_parse(hex, world_format(), &oid) < 0)
		return '?';
	return refd_oid_is_null(&oid) ? '0' : (char)oid.bytes[0];
}

static const char *log_of_files(struct acting *a, const char *name)
{
	static char text[1024];
	const size_t hex = refd_object_format_hex(world_format());
	char path[256], *log, *line, *rest;
	size_t len = 0, size;

	text[0] = '\0';
	snprintf(path, sizeof(path), "logs/%s", name);
	rest = log = memfs_read(a->w->fs, story_path(path), &size);
	if (log == NULL)
		return text;
	if (strlen(log) != size || (size > 0 && log[size - 1] != '\n'))
		strcpy(text, "torn");
	else
		while ((line = strsep(&rest, "\n")) != NULL && *line != '\0')
			len += (size_t)snprintf(text + len, sizeof(text) - len,
			    "%s%c>%c", len > 0 ? " " : "", letter(line),
			    strlen(line) > hex ? letter(line + hex + 1) : '?');
	free(log);
	return text;
}

/* stack_txn_log() has the newest first, as "1>2@5 0>1@1 ". */
static const char *log_of_tables(struct acting *a, const char *name)
{
	static char text[1024];
	const char *log = stack_txn_log(a->w, "", name);
	const char *at = log + strlen(log);
	size_t len = 0;

	text[0] = '\0';
	while (at > log) {
		for (at--; at > log && at[-1] != ' ';)
			at--;
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%s%.3s", len > 0 ? " " : "", at);
	}
	return text;
}

const char *story_log(struct acting *a, const char *name)
{
	return a->run->tables ? log_of_tables(a, name) : log_of_files(a, name);
}

const char *story_lock(struct acting *a, const char *name)
{
	char path[256];

	if (a->run->tables)
		return STACK_DIR "/tables.list.lock";
	snprintf(path, sizeof(path), "%s.lock", name);
	return story_path(path);
}

/* ---- git ---- */

static void append_line(struct acting *a, const char *name, char old, char to)
{
	const struct sys *sys = memfs_other(a->w->fs);
	char form[64], path[256], *line;
	int fd;

	snprintf(path, sizeof(path), "logs/%s", name);
	fd = SYS(sys, openat, AT_FDCWD, story_path(path), O_WRONLY | O_APPEND,
	    0);
	if (fd < 0)
		return;
	snprintf(form, sizeof(form), "@%c @%c G <g> 1 +0000\tgit\n", old, to);
	line = world_text(form);
	SYS(sys, write_all, fd, line, strlen(line));
	SYS(sys, close, fd);
	free(line);
}

static int git_on_files(struct acting *a, const char *name, char value)
{
	const struct plaingit git = { .sys = memfs_other(a->w->fs),
		.dirfd = open_dir(a, WORLD_REPO),
		.syncs = true,
		.is_sha256 = world_format() == REFD_FORMAT_SHA256 };
	const char old = name != NULL ? story_ref(a, name) : '0';
	char id[3] = { '@', value, '\0' }, path[256], *hex = world_text(id);
	int r;

	if (name == NULL) {
		r = plaingit_pack_refs(&git);
	} else if (value == '0') {
		r = plaingit_delete(&git, name);
		snprintf(path, sizeof(path), "logs/%s", name);
		if (r == 0)
			SYS(git.sys, unlinkat, AT_FDCWD, story_path(path));
	} else {
		r = plaingit_update(&git, name, hex);
		if (r == 0)
			append_line(a, name, old, value);
	}
	free(hex);
	SYS(git.sys, close, git.dirfd);
	return r;
}

/* The value, and with it a line of the log, or the end of all lines. */
static void write_table(struct acting *a, const char *name, char value)
{
	struct reftable_record records[8] = { rh_ref(name, 0, 0) };
	const char *at = stack_txn_log(a->w, "", name);
	const char old = story_ref(a, name);
	size_t nr = 1;

	records[0].ref.oid = world_oid(value);
	if (value == '0') {
		records[0] = rh_deleted(name, 0);
		for (; (at = strchr(at, '@')) != NULL && nr < 8; at++) {
			records[nr] =
			    rh_log(name, strtoull(at + 1, NULL, 10), 0, 0, "");
			records[nr++].is_deletion = true;
		}
	} else if (*at != '\0') {
		records[nr] = rh_log(name, 0, 0, 0, "git\n");
		records[nr].log.from = world_oid(old);
		records[nr++].log.to = world_oid(value);
	}
	stack_txn_git(a->w, true, records, nr);
}

static int git_on_tables(struct acting *a, const char *name, char value)
{
	if (memfs_exists(a->w->fs, story_lock(a, "")))
		return -EEXIST;
	if (name == NULL)
		stack_txn_git_merge(a->w);
	else
		write_table(a, name, value);
	return 0;
}

static int unlock(struct acting *a, const char *name)
{
	const size_t len = strlen(name);
	char *at = a->locks;

	while (*at != '\0' && (strncmp(at, name, len) != 0 || at[len] != ' '))
		at += strcspn(at, " ") + 1;
	if (*at == '\0')
		return -ENOENT;
	memmove(at, at + len + 1, strlen(at + len + 1) + 1);
	return SYS(memfs_other(a->w->fs), unlinkat, AT_FDCWD,
	    story_lock(a, name));
}

static int lock(struct acting *a, const char *name)
{
	if (memfs_exists(a->w->fs, story_lock(a, name)))
		return -EEXIST;
	memfs_write(a->w->fs, story_lock(a, name), "");
	strcat(strcat(a->locks, name), " ");
	return 0;
}

/* Changes NAME, or packs if NAME is NULL. */
static int change(struct acting *a, const char *name, char value)
{
	int r;

	memfs_advance(a->w->fs, SECOND_NS);
	r = a->run->tables ? git_on_tables(a, name, value) :
			     git_on_files(a, name, value);
	memfs_advance(a->w->fs, SECOND_NS);
	if (r == 0 && name != NULL)
		story_note(a, name, value);
	return r;
}

static int act(struct acting *a, char *at)
{
	char *word, *name, *value;
	int r = 0;

	word = story_word(&at);
	name = story_word(&at);
	value = story_word(&at);
	if (story_word(&at) != NULL)
		story_fail(a, "git cannot do this");
	else if (word != NULL && name == NULL && strcmp(word, "pack") == 0)
		r = change(a, NULL, '0');
	else if (value != NULL && strcmp(name, "=") == 0 && value[1] == '\0')
		r = change(a, word, value[0]);
	else if (name == NULL || value != NULL)
		story_fail(a, "git cannot do this");
	else if (strcmp(word, "delete") == 0)
		r = change(a, name, '0');
	else if (strcmp(word, "lock") == 0)
		r = lock(a, name);
	else if (strcmp(word, "unlock") != 0)
		story_fail(a, "git cannot do this");
	else if (unlock(a, name) < 0 && a->run->fault == NULL)
		story_fail(a, "git does not hold the lock of %s", name);
	return r;
}

bool story_git(struct acting *a, const char *args)
{
	char copy[256], *at = copy, *one;

	snprintf(copy, sizeof(copy), "%s", args);
	while ((one = strsep(&at, ",")) != NULL)
		if (act(a, one) != 0)
			return false;
	return true;
}
