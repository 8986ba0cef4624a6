#include "client/enable/site.h"
#include "client/enable/enable_report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/enable/hook_link.h"
#include "client/git/owner.h"

void site_init(struct site *site, const char *dir)
{
	site->name = xstrdup(dir);
	site->config = xasprintf("%s/config", dir);
	site->hooks = xasprintf("%s/hooks", dir);
}

void site_done(struct site *site)
{
	free(site->name);
	free(site->config);
	free(site->hooks);
	memset(site, 0, sizeof(*site));
}

/* ---- the block ---- */

static const char *reason(int err)
{
	return err == -ELOOP ? "another user may have made this link" :
			       strerror(-err);
}

/* The owner and a group choose the file. Root does not wait for a FIFO, and
 * reads neither a device nor more than a configuration. */
static int read_file(const char *path, struct text *t, struct stat *st)
{
	int no_link = owned_trusts_link(path) ? 0 : O_NOFOLLOW;
	int fd =
	    open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | no_link);
	int err = 0;

	text_adds(t, "");
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0)
		err = -errno;
	else if (!S_ISREG(st->st_mode))
		err = S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
	if (!err)
		err = text_read(t, fd, SITE_CONFIG_BYTES);
	close(fd);
	return err;
}

bool site_read(const struct site *site, struct block *b)
{
	struct text t = { 0 };
	struct stat st;
	int err = read_file(site->config, &t, &st);

	if (err)
		text_clear(&t);
	block_read(b, &t);
	text_done(&t);
	if (b->nr > BLOCK_LINES) {
		block_done(b);
		err = -EFBIG;
	}
	if (!err || err == -ENOENT || err == -ENOTDIR)
		return true;
	say_error("cannot read %s: %s", site->config, reason(err));
	return false;
}

/* A file that is being replaced. The lock is a link to the stage: so the lock
 * of a killed refd differs from a lock of git. A running refd holds flock(2) on
 * the stage: root and the owner may work at the same time. */
struct edit {
	char *file, *lock, *stage;
	int fd;
};

static bool is_same_file(const char *path, int fd)
{
	struct stat ours, found;

	return fstat(fd, &ours) == 0 && lstat(path, &found) == 0 &&
	    found.st_dev == ours.st_dev && found.st_ino == ours.st_ino;
}

static bool is_held(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static void remove_own_lock(const struct edit *e)
{
	int fd = open(e->stage,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!is_held(fd) && is_same_file(e->stage, fd)) {
		if (is_same_file(e->lock, fd))
			unlink(e->lock);
		unlink(e->stage);
	}
	close(fd);
}

static void edit_init(struct edit *e, const char *path)
{
	/* As git does, through a link. */
	char *target = owned_trusts_link(path) ? realpath(path, NULL) : NULL;

	e->file = target ? target : xstrdup(path);
	e->lock = xasprintf("%s.lock", e->file);
	e->stage = xasprintf("%s.refd", e->file);
	e->fd = -1;
	remove_own_lock(e);
}

static int edit_begin(struct edit *e, const char **what)
{
	int mode = access(e->file, F_OK) == 0 ? 0600 : 0666;

	*what = "lock";
	e->fd = open(e->stage, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (e->fd < 0)
		return -errno;
	if (is_held(e->fd) || !is_same_file(e->stage, e->fd))
		return -EEXIST;
	if (link(e->stage, e->lock) == 0)
		return 0;
	if (errno != EEXIST)
		*what = "make a hard link beside";
	return -errno;
}

static void edit_end(struct edit *e)
{
	if (e->fd >= 0)
		close(e->fd);
	remove_own_lock(e);
	free(e->file);
	free(e->lock);
	free(e->stage);
}

/* The group may change if the group has the rights of all others. */
static int keep_rights(int fd, const struct stat *st)
{
	bool is_group_special = (st->st_mode >> 3 & 7) != (st->st_mode & 7);
	struct stat now;

	if (fstat(fd, &now) < 0)
		return -errno;
	if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
	    fchown(fd, st->st_uid, st->st_gid) < 0 && is_group_special)
		return -errno;
	return fchmod(fd, st->st_mode & 0777) < 0 ? -errno : 0;
}

/* NOW is the present text, OLD the block of NOW. 0 or negative errno; *WHAT
 * names the action that failed. */
static int commit(struct edit *e, const struct text *now,
    const struct block *old, const struct block *b, bool is_active,
    const char **what)
{
	struct text new = { 0 };
	int err = -EINVAL;

	*what = "append to the backslash at the end of";
	if (!b->nr || !block_has_no_place(now)) {
		*what = "write";
		block_replace(now, b, is_active, &new);
		err = durable_put(e->fd, &new);
	}
	if (!err && !new.len && block_get(old, NOTE_FILE_MADE))
		err = unlink(e->file) < 0 ? -errno : 0;
	else if (!err)
		err = rename(e->lock, e->file) < 0 ? -errno : 0;
	if (!err)
		err = durable_sync_parent(e->file);
	text_done(&new);
	return err;
}

static int replace(struct edit *e, const struct block *b, bool is_active,
    const char **what)
{
	struct text now = { 0 };
	struct block old, wanted;
	struct stat st;
	bool is_new;
	int err = edit_begin(e, what);

	if (err)
		return err;
	*what = "read";
	err = read_file(e->file, &now, &st);
	is_new = err == -ENOENT;
	block_read(&old, &now);
	block_copy(b, &wanted);
	if (b->nr && (is_new || block_has(&old, NOTE_FILE_MADE, NULL)))
		block_set(&wanted, NOTE_FILE_MADE, "");
	if (!err) {
		*what = "keep the group of";
		err = keep_rights(e->fd, &st);
	} else if (is_new) {
		err = 0;
	}
	if (!err && !(is_new && !b->nr))
		err = commit(e, &now, &old, &wanted, is_active, what);
	block_done(&old);
	block_done(&wanted);
	text_done(&now);
	return err;
}

void site_unlock(const struct site *site)
{
	struct edit e;

	edit_init(&e, site->config);
	edit_end(&e);
}

static void say_settings(const struct site *site, const struct block *b,
    const struct block *other, bool is_added)
{
	size_t i;

	for (i = 0; b && i < b->nr; i++) {
		const struct block_line *l = &b->lines[i];

		if (strchr(l->key, '.') &&
		    !(other && block_has(other, l->key, l->value)))
			enable_report_setting(site->name, is_added, l->key,
			    l->value);
	}
}

bool site_write(const struct site *site, const struct block *before,
    const struct block *b, bool is_active)
{
	const struct block *was = before->is_active ? before : NULL;
	const struct block *is = is_active ? b : NULL;
	const char *what = NULL;
	sigset_t all, mask;
	struct edit e;
	int err;

	/* Control-C must not leave git's lock. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	edit_init(&e, site->config);
	err = replace(&e, b, is_active, &what);
	edit_end(&e);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (err) {
		say_error("%s: cannot %s %s: %s", site->name, what,
		    site->config, reason(err));
		return false;
	}
	say_settings(site, was, is, false);
	say_settings(site, is, was, true);
	return true;
}

bool site_holds(const struct site *site, const struct block *b)
{
	const char *hook = block_get(b, NOTE_HOOK);
	const char *gate = block_get(b, NOTE_GATE);

	return b->is_whole &&
	    (!hook ||
		(hook_link_leads_to(site->hooks, HOOK_PROC_RECEIVE, hook) &&
		    access(hook, X_OK) == 0)) &&
	    (!gate || hook_link_leads_to(site->hooks, HOOK_GATE, gate));
}

/* ---- the values ---- */

bool site_config(const struct site *site, struct gitconfig *own)
{
	text_clear(&own->list);
	if (access(site->config, F_OK) < 0 && errno == ENOENT)
		return true;
	if (!gitconfig_read_file(own, site->config))
		return true;
	say_error("git config cannot read %s", site->config);
	return false;
}
