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

#include "client/base/child.h"
#include "client/enable/durable.h"
#include "client/enable/hook_link.h"
#include "client/git/owner.h"
#include "proto/lib/config_file.h"

#define READ (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

void site_init(struct site *site, const char *dir)
{
	memset(site, 0, sizeof(*site));
	site->name = xstrdup(dir);
	site->config = xasprintf("%s/config", dir);
	site->record = xasprintf("%s/" SITE_RECORD, dir);
	site->included = xstrdup(SITE_RECORD);
	site->hooks = xasprintf("%s/hooks", dir);
}

static const char *reason(int err)
{
	return err == -ELOOP ? "another user may have made this link" :
			       strerror(-err);
}

/* The owner and a group choose the file, which root must not wait for. */
static int read_regular(int fd, struct text *t, struct stat *st, size_t max)
{
	int err = 0;

	text_adds(t, "");
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) < 0)
		err = -errno;
	else if (!S_ISREG(st->st_mode))
		err = S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
	if (!err)
		err = text_read(t, fd, max);
	close(fd);
	return err;
}

static bool is_missing(int err)
{
	return err == -ENOENT || err == -ENOTDIR;
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

/* ---- locks ---- */

/* A file that is being replaced, under git's lock. A killed refd leaves the
 * lock, which must not be confused with a lock of git. So the lock is a hard
 * link to the stage, the new content, and git's locks are not. Root and the
 * owner may work at the same time, so a running refd holds flock(2) on the
 * stage. */
struct site_edit {
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

/* FD is the stage, or negative. The names go before the close, because whoever
 * may read the file could take its lock then, and keep the stage for ever. */
static void remove_lock(const struct site_edit *e, int fd)
{
	if (fd < 0)
		return;
	if (!is_held(fd) && is_same_file(e->stage, fd)) {
		if (is_same_file(e->lock, fd))
			unlink(e->lock);
		unlink(e->stage);
	}
	close(fd);
}

static void edit_init(struct site_edit *e, const char *path)
{
	e->file = xstrdup(path);
	e->lock = xasprintf("%s.lock", e->file);
	e->stage = xasprintf("%s.refd", e->file);
	e->fd = -1;
	remove_lock(e, open(e->stage, O_NOFOLLOW | READ));
}

/* LIKE is the file whose rights the new file will get, so until then nobody
 * else reads the new file. Without LIKE, the umask decides. */
static int edit_begin(struct site_edit *e, const char *like, const char **what)
{
	const mode_t mode = access(like, F_OK) == 0 ? 0600 : 0666;

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

/* The file gets the text T and, unless LIKE is NULL, the rights LIKE. The stage
 * stays, and keeps other commands of refd away until edit_end(). */
static int edit_put(struct site_edit *e, const struct stat *like,
    const struct text *t, const char **what)
{
	int err;

	*what = "keep the group of";
	err = like ? keep_rights(e->fd, like) : 0;
	if (err)
		return err;
	*what = "write";
	err = durable_put(e->fd, t);
	if (!err && rename(e->lock, e->file) < 0)
		err = -errno;
	return err ? err : durable_sync_parent(e->file);
}

static int edit_remove(const struct site_edit *e)
{
	if (unlink(e->file) < 0)
		return is_missing(-errno) ? 0 : -errno;
	return durable_sync_parent(e->file);
}

static void edit_end(struct site_edit *e)
{
	remove_lock(e, e->fd);
	free(e->file);
	free(e->lock);
	free(e->stage);
}

static char *place_of(const struct site *site)
{
	return xasprintf("%.*s",
	    (int)(strrchr(site->record, '/') - site->record), site->record);
}

/* As git does, through a link. */
static void edit_config(struct site_edit *e, const struct site *site)
{
	char *target = owned_trusts_link(site->config) ?
	    realpath(site->config, NULL) :
	    NULL;

	edit_init(e, target ? target : site->config);
	free(target);
}

/* The lock of the record lasts until site_done(). */
bool site_lock(struct site *site)
{
	char *place = site->hooks ? NULL : place_of(site);
	const char *what = "make";
	struct site_edit e;
	int err = 0;

	if (place && mkdir(place, 0755) < 0 && errno != EEXIST)
		err = -errno;
	free(place);
	site->lock = xcalloc(1, sizeof(*site->lock));
	edit_init(site->lock, site->record);
	if (!err)
		err = edit_begin(site->lock, site->config, &what);
	if (err) {
		say_error("%s: cannot %s %s: %s%s", site->name, what,
		    site->record, reason(err),
		    err == -EEXIST ? "; another refd enable or disable is at "
				     "work" :
				     "");
		return false;
	}
	/* What a killed command left. */
	edit_config(&e, site);
	edit_end(&e);
	return site_look(site);
}

void site_done(struct site *site)
{
	char *place = site->lock && !site->hooks ? place_of(site) : NULL;

	if (site->lock)
		edit_end(site->lock);
	free(site->lock);
	/* Only an empty directory can be removed. */
	if (place)
		rmdir(place);
	free(place);
	free(site->name);
	free(site->config);
	free(site->record);
	free(site->included);
	free(site->hooks);
	settings_done(&site->before);
	settings_done(&site->wanted);
	settings_done(&site->lines);
	memset(site, 0, sizeof(*site));
}

/* ---- the record ---- */

static bool read_record(struct site *site)
{
	struct text t = { 0 };
	struct stat st;
	int err = read_regular(open(site->record, O_NOFOLLOW | READ), &t, &st,
	    SETTINGS_BYTES);

	if (!err &&
	    (!settings_parse(&site->before, &t) ||
		!settings_parse(&site->wanted, &t)))
		err = -EBADMSG;
	text_done(&t);
	if (!err || is_missing(err))
		return true;
	settings_done(&site->before);
	settings_done(&site->wanted);
	say_error("cannot read %s, where refd enable has noted what it did: "
		  "%s; remove it, and run this command again",
	    site->record, err == -EBADMSG ? "it is malformed" : reason(err));
	return false;
}

/* As open as the configuration. */
static int replace_record(const struct site *site, const char **what)
{
	struct text t = { 0 };
	struct stat st;
	bool has_config = stat(site->config, &st) == 0;
	int err;

	*what = "write";
	if (!site->wanted.nr)
		return edit_remove(site->lock);
	text_adds(&t,
	    "# refd enable wrote this file; refd disable removes "
	    "it.\n");
	settings_put(&site->wanted, &t);
	err = t.len > SETTINGS_BYTES ?
	    -EFBIG :
	    edit_put(site->lock, has_config ? &st : NULL, &t, what);
	text_done(&t);
	return err;
}

static void say_settings(const struct site *site, const struct settings *s,
    const struct settings *other, bool is_added)
{
	size_t i;

	for (i = 0; i < s->nr; i++) {
		const struct setting *it = &s->items[i];

		if (strncmp(it->key, "refd.enable.", 12) != 0 &&
		    !settings_have(other, it->key, it->value))
			enable_report_setting(site->name, is_added, it->key,
			    it->value);
	}
}

bool site_save(const struct site *site)
{
	const char *what;
	int err;

	if (settings_are_same(&site->before, &site->wanted))
		return true;
	err = replace_record(site, &what);
	if (err) {
		say_error("%s: cannot %s %s: %s", site->name, what,
		    site->record, reason(err));
		return false;
	}
	say_settings(site, &site->before, &site->wanted, false);
	say_settings(site, &site->wanted, &site->before, true);
	return true;
}

/* ---- the line in git's configuration ---- */

static int read_config(const char *path, struct text *t, struct stat *st)
{
	int no_link = owned_trusts_link(path) ? 0 : O_NOFOLLOW;

	return read_regular(open(path, no_link | READ), t, st,
	    SITE_CONFIG_BYTES);
}

static int note_line(void *arg, const char *key, const char *value,
    unsigned line)
{
	static const char lower[] = "includeif.";
	struct site *site = arg;
	char *name;

	(void)line;
	if (!value || !has_prefix(key, lower) ||
	    strcmp(value, site->included) != 0)
		return 0;
	/* The parser gives letters in lower case, but refd writes a large
	 * one. */
	name = xasprintf("includeIf.%s", key + strlen(lower));
	settings_add(&site->lines, name, value);
	free(name);
	return 0;
}

static bool read_lines(struct site *site)
{
	struct text t = { 0 };
	const char *why = NULL;
	unsigned line = 0;
	struct stat st;
	int err = read_config(site->config, &t, &st);

	if (!err)
		err = config_file_parse(t.data, t.len, note_line, site, &line,
		    &why);
	text_done(&t);
	if (!err || is_missing(err))
		return true;
	if (why)
		say_error("cannot read %s: line %u: %s", site->config, line,
		    why);
	else
		say_error("cannot read %s: %s", site->config, reason(err));
	return false;
}

bool site_look(struct site *site)
{
	bool ok = read_record(site);

	return read_lines(site) && ok;
}

/* Git allows a mark of the encoding at the begin of the file alone. */
static size_t mark_of(const struct text *t)
{
	return t->len >= 3 && !memcmp(t->data, "\xef\xbb\xbf", 3) ? 3 : 0;
}

static void put_line(const struct site *site, const char *key, struct text *t)
{
	struct settings line = { 0 };

	settings_add(&line, key, site->included);
	settings_put(&line, t);
	settings_done(&line);
}

/* May [AT, AT + LEN) go? Not if a setting of another follows in the section. */
static bool is_alone(const struct text *t, size_t at, size_t len)
{
	size_t next = at + len;

	if (at != mark_of(t) && t->data[at - 1] != '\n')
		return false;
	next += strspn(t->data + next, " \t\r\n");
	return next == t->len || t->data[next] == '[';
}

/* False: only git can remove the line. */
static bool change(const struct text *now, const struct text *line, bool adds,
    struct text *to)
{
	size_t at = mark_of(now), kept = 0;
	const char *found;

	text_adds(to, "");
	if (!adds) {
		found = memmem(now->data, now->len, line->data, line->len);
		at = found ? (size_t)(found - now->data) : 0;
		kept = line->len;
		if (!found || !is_alone(now, at, kept))
			return false;
	}
	text_add(to, now->data, at);
	if (adds)
		text_add(to, line->data, line->len);
	text_add(to, now->data + at + kept, now->len - at - kept);
	return true;
}

/* A change of the configuration of a site. */
struct turn {
	const struct site *site;
	const char *key;
	bool adds;
	bool is_for_git;  /* nothing was changed: git has to do it */
	const char *what; /* the action that failed */
};

static int commit(struct site_edit *e, const struct text *now,
    const struct stat *like, struct turn *turn)
{
	struct text line = { 0 }, new = { 0 };
	int err = 0;

	put_line(turn->site, turn->key, &line);
	turn->what = "write";
	if (!change(now, &line, turn->adds, &new))
		turn->is_for_git = true;
	else if (!new.len &&
	    settings_have(&turn->site->before, NOTE_CONFIG, NULL))
		err = edit_remove(e);
	else
		err = edit_put(e, like, &new, &turn->what);
	text_done(&line);
	text_done(&new);
	return err;
}

static int replace(struct site_edit *e, struct turn *turn)
{
	struct text now = { 0 };
	struct stat st;
	bool is_new;
	int err = edit_begin(e, e->file, &turn->what);

	if (err)
		return err;
	turn->what = "read";
	err = read_config(e->file, &now, &st);
	is_new = err == -ENOENT;
	if (is_new)
		err = 0;
	if (!err && (turn->adds || !is_new))
		err = commit(e, &now, is_new ? NULL : &st, turn);
	text_done(&now);
	return err;
}

static bool edit(struct turn *turn)
{
	const struct site *site = turn->site;
	sigset_t all, mask;
	struct site_edit e;
	int err;

	/* Control-C must not leave git's lock. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	edit_config(&e, site);
	err = replace(&e, turn);
	edit_end(&e);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (err)
		say_error("%s: cannot %s %s: %s", site->name, turn->what,
		    site->config, reason(err));
	return !err;
}

bool site_include(const struct site *site, const char *key)
{
	struct turn turn = { .site = site, .key = key, .adds = true };

	if (settings_have(&site->lines, key, NULL))
		return true;
	if (!edit(&turn))
		return false;
	enable_report_setting(site->name, true, key, site->included);
	return true;
}

/* Others may have moved the lines or written them anew, so git looks for
 * them. */
bool site_unset(const struct site *site, const char *key, const char *value)
{
	const char *argv[] = { "git", "config", "--file", site->config,
		"--fixed-value", "--unset-all", key, value, NULL };
	int err = 0;

	if (child_run(argv) != 0) {
		say_error("%s: git cannot remove %s from %s", site->name, key,
		    site->config);
		return false;
	}
	/* The hook that the setting names goes next, so the change must be on
	 * disk. */
	err = durable_sync_fs(site->config);
	if (err)
		say_error("%s: cannot sync %s: %s", site->name, site->config,
		    strerror(-err));
	else
		enable_report_setting(site->name, false, key, value);
	return !err;
}

static bool exclude(const struct site *site, const char *key)
{
	struct turn turn = { .site = site, .key = key };

	if (!edit(&turn))
		return false;
	if (turn.is_for_git)
		return site_unset(site, key, site->included);
	enable_report_setting(site->name, false, key, site->included);
	return true;
}

bool site_exclude(const struct site *site, const char *key)
{
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < site->lines.nr; i++)
		if (!key || gitconfig_is_key(site->lines.items[i].key, key))
			ok = exclude(site, site->lines.items[i].key);
	return ok;
}

/* ---- what is in place ---- */

bool site_holds(const struct site *site)
{
	const char *hook = settings_get(&site->before, NOTE_HOOK);
	const char *gate = settings_get(&site->before, NOTE_GATE);

	return site->before.nr && site->lines.nr &&
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
