/*
 * Git takes the format of the refs from the file "config" alone, and ignores
 * the files of the other format. So the new refs can be in place before, and
 * the old refs until after, one rename of the configuration:
 *
 *	sync	the new files
 *	enter	the new files take their places
 *	sync	their names
 *	turn	the new configuration, by git's lock and a rename
 *	sync	the configuration
 *	look	did a different program write old refs meanwhile?
 *	remove	the old files
 *	sync
 *
 * After a kill or a power loss at any point, the repository works in the format
 * of its configuration. refd/migrate says that files of the other format are
 * ours: the next call removes them.
 *
 * Failures: before the turn, the new files go. After the turn, old files may
 * stay, and the message says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/migrate/migrate_internal.h"

/* As git's refs_create_refdir_stubs(). */
#define STUB_HEAD  "ref: refs/heads/.invalid\n"
#define STUB_HEADS "this repository uses the reftable format\n"

static const char *const dirs_of[REF_FORMATS] = {
	[FILES] = "logs",
	[REFTABLE] = "reftable",
};

/* ---- the files of a format ---- */

/* As git's is_root_ref(): a ref beside HEAD. */
static bool is_root_ref(const char *name)
{
	static const char *const others[] = { "AUTO_MERGE",
		"BISECT_EXPECTED_REV", "NOTES_MERGE_PARTIAL", "NOTES_MERGE_REF",
		"MERGE_AUTOSTASH" };
	size_t len = strlen(name), i;

	if (!strcmp(name, "FETCH_HEAD") || !strcmp(name, "MERGE_HEAD"))
		return false;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i]))
			return true;
	return len > 5 && !strcmp(name + len - 5, "_HEAD") &&
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == len;
}

static int remove_root_ref(void *arg, const char *name)
{
	const struct migration *m = arg;

	return is_root_ref(name) ? files_remove(m->dirfd, name) : 0;
}

/* The stubs keep programs away that do not know the format. */
static int remove_files(const struct migration *m)
{
	int refs_fd, r;

	r = files_remove(m->dirfd, "logs");
	if (r == 0)
		r = files_remove(m->dirfd, "packed-refs");
	if (r == 0)
		r = files_empty(m->dirfd, "refs");
	if (r == 0)
		r = files_each(m->dirfd, remove_root_ref, (void *)m);
	if (r == 0)
		r = files_put(m->work_fd, m->dirfd, "HEAD", STUB_HEAD);
	if (r < 0)
		return r;
	refs_fd = files_open_dir(m->dirfd, "refs");
	if (refs_fd < 0)
		return refs_fd;
	r = files_put(m->work_fd, refs_fd, "heads", STUB_HEADS);
	close(refs_fd);
	return r;
}

bool migrate_remove(const struct migration *m, enum ref_format format)
{
	int r = format == FILES ? remove_files(m) :
				  files_remove(m->dirfd, dirs_of[REFTABLE]);

	if (r == 0)
		return true;
	say_error("cannot remove the refs in %s of %s: %s",
	    ref_format_names[format], m->gd->common, strerror(-r));
	return false;
}

static bool is_there(const struct migration *m, const char *name)
{
	struct stat st;

	if (fstatat(m->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return strcmp(name, "refs/heads") != 0 || S_ISDIR(st.st_mode);
}

bool migrate_is_clear(const struct migration *m, enum ref_format format)
{
	static const char *const marks[REF_FORMATS][4] = {
		[FILES] = { "packed-refs", "logs", "refs/heads" },
		[REFTABLE] = { "reftable" },
	};
	size_t i;

	for (i = 0; marks[format][i]; i++) {
		if (!is_there(m, marks[format][i]))
			continue;
		say_error("%s/%s exists, although the repository has its refs "
			  "in %s; if it is of no use, move it away; nothing "
			  "was changed",
		    m->gd->common, marks[format][i], ref_format_names[m->from]);
		return false;
	}
	return true;
}

/* ---- entering ---- */

static int move_root(void *arg, const char *name)
{
	const struct migration *m = arg;
	int new_fd, r;

	/* refs and HEAD have places already, and come last. */
	if (!strcmp(name, "refs") || !strcmp(name, "HEAD") ||
	    !strcmp(name, "config"))
		return 0;
	new_fd = files_open_dir(m->work_fd, "new");
	if (new_fd < 0)
		return new_fd;
	r = renameat(new_fd, name, m->dirfd, name) < 0 ? -errno : 0;
	close(new_fd);
	return r;
}

static int enter_files(const struct migration *m, int new_fd)
{
	int from = files_open_dir(new_fd, "refs");
	int to = files_open_dir(m->dirfd, "refs");
	int r = from < 0 ? from : to < 0 ? to : 0;

	if (r == 0)
		r = files_empty(m->dirfd, "refs");
	if (r == 0)
		r = files_move_all(from, to);
	if (r == 0)
		r = files_each(new_fd, move_root, (void *)m);
	if (r == 0 && renameat(new_fd, "HEAD", m->dirfd, "HEAD") < 0)
		r = -errno;
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return r;
}

static int enter(const struct migration *m, int new_fd)
{
	const char *name = dirs_of[REFTABLE];

	if (m->to == FILES)
		return enter_files(m, new_fd);
	return renameat(new_fd, name, m->dirfd, name) < 0 ? -errno : 0;
}

/* ---- the state ---- */

struct state {
	const struct migration *m;
	uint64_t *sum;
	char **lock;
};

static int add_root_ref(void *arg, const char *name)
{
	const struct state *s = arg;

	return is_root_ref(name) ?
	    files_sum(s->m->dirfd, name, s->sum, s->lock) :
	    0;
}

bool migrate_state(const struct migration *m, enum ref_format format,
    uint64_t *sum, char **lock)
{
	static const char *const names[] = { "HEAD", "HEAD.lock", "packed-refs",
		"packed-refs.lock", "refs", "logs" };
	struct state s = { m, sum, lock };
	size_t i;
	int r = 0;

	*sum = 0;
	*lock = NULL;
	if (format == REFTABLE)
		r = files_sum(m->dirfd, dirs_of[REFTABLE], sum, lock);
	for (i = 0;
	    format == FILES && r == 0 && i < sizeof(names) / sizeof(names[0]);
	    i++)
		r = files_sum(m->dirfd, names[i], sum, lock);
	if (format == FILES && r == 0)
		r = files_each(m->dirfd, add_root_ref, &s);
	if (r < 0)
		say_error("cannot read the refs of %s: %s", m->gd->common,
		    strerror(-r));
	return r == 0 && !*lock;
}

bool migrate_has_changed(const struct migration *m, enum ref_format format,
    uint64_t before)
{
	uint64_t now;
	char *lock;
	bool ok = migrate_state(m, format, &now, &lock);

	free(lock);
	return !ok || now != before;
}

/* ---- the turn ---- */

/* The file FROM of FROM_FD becomes the configuration, under git's lock. If WAS,
 * the present configuration must be WAS. */
static int put_config(const struct migration *m, int from_fd, const char *from,
    const struct text *was)
{
	struct text now = { 0 };
	int r = 0;

	if (linkat(from_fd, from, m->dirfd, "config.lock", 0) < 0)
		return -errno;
	if (was)
		r = files_read(m->dirfd, "config", FILES_CONFIG_MAX, &now);
	if (r == 0 && was &&
	    (now.len != was->len || memcmp(now.data, was->data, now.len)))
		r = -ESTALE;
	text_done(&now);
	if (r == 0 && renameat(from_fd, from, m->dirfd, "config") < 0)
		r = -errno;
	unlinkat(m->dirfd, "config.lock", 0);
	return r;
}

static int sync_all(const struct migration *m)
{
	return syncfs(m->dirfd) < 0 ? -errno : 0;
}

static enum swap fail(const struct migration *m, const char *what, int err)
{
	if (err == -EEXIST)
		say_error("%s/config.lock exists: another program changes the "
			  "configuration; nothing was changed",
		    m->gd->common);
	else if (err == -ESTALE)
		say_error("another program changed the configuration of %s; "
			  "nothing was changed",
		    m->gd->common);
	else
		say_error("%s: cannot %s: %s; nothing was changed",
		    m->gd->common, what, strerror(-err));
	return migrate_remove(m, m->to) ? SWAP_FAILED : SWAP_LEFT;
}

/* An old ref was written after the turn. The old refs count again. */
static enum swap turn_back(const struct migration *m, uint64_t entered)
{
	if (!migrate_has_changed(m, m->to, entered) &&
	    put_config(m, m->work_fd, "config.old", NULL) == 0 &&
	    sync_all(m) == 0)
		return migrate_remove(m, m->to) ? SWAP_AGAIN : SWAP_LEFT;
	say_error("%s has its refs in %s now, but another program wrote refs "
		  "in %s during the migration; the old refs are still there: "
		  "compare them, then run this command again, which removes "
		  "them",
	    m->gd->common, ref_format_names[m->to], ref_format_names[m->from]);
	return SWAP_LEFT;
}

static enum swap leave_old(const struct migration *m)
{
	if (migrate_remove(m, m->from) && sync_all(m) == 0)
		return SWAP_DONE;
	say_error("%s has its refs in %s now, but old files are left: run this "
		  "command again, which removes them",
	    m->gd->common, ref_format_names[m->to]);
	return SWAP_LEFT;
}

static enum swap swap_in(const struct migration *m, int new_fd, uint64_t before)
{
	uint64_t entered;
	char *lock;
	int r = sync_all(m);

	if (r == 0)
		r = enter(m, new_fd);
	if (r == 0)
		r = sync_all(m);
	if (r < 0)
		return fail(m, "put the new refs in place", r);
	if (!migrate_state(m, m->to, &entered, &lock) ||
	    migrate_has_changed(m, m->from, before)) {
		free(lock);
		return migrate_remove(m, m->to) ? SWAP_AGAIN : SWAP_LEFT;
	}
	r = put_config(m, new_fd, "config", &m->config);
	if (r < 0)
		return fail(m, "change the configuration", r);
	r = sync_all(m);
	if (r < 0) {
		say_error("%s: the disk failed: %s; run this command again "
			  "when the disk is sound",
		    m->gd->common, strerror(-r));
		return SWAP_LEFT;
	}
	if (migrate_has_changed(m, m->from, before))
		return turn_back(m, entered);
	return leave_old(m);
}

enum swap migrate_swap(const struct migration *m, uint64_t before)
{
	int new_fd = files_open_dir(m->work_fd, "new"), r = 0;
	enum swap swap;

	if (new_fd < 0)
		return fail(m, "open the new refs", new_fd);
	unlinkat(m->work_fd, "config.old", 0);
	if (linkat(m->dirfd, "config", m->work_fd, "config.old", 0) < 0)
		r = -errno;
	swap = r == 0 ? swap_in(m, new_fd, before) :
			fail(m, "keep the configuration", r);
	close(new_fd);
	return swap;
}
