/*
 * The happy path: make the directory, count its files, find a free name, then
 * link, copy or rename.
 *
 * Failures: the caller decides. packed-refs may have the only copy of many
 * refs, so recovery replaces packed-refs only after the move. But recovery
 * redoes a ref even if the file of the ref could not be saved. --repair repairs
 * nothing then.
 *
 * Other accounts may write to refd/, so the table of system calls keeps every
 * path inside the repository and follows no link: a link in the place of the
 * directory is -ELOOP. The count ends at the limit, however many files there
 * are.
 */
#include "daemon/store/recovery/saved.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/lib/own_file.h"

#define DIR_NAME "refd/saved"
/* The room for the escaped name, to which the time and a number are added. */
#define NAME_BYTES 180
#define SAME_MAX   1000 /* files of one name and second */
#define COPY_BYTES ((size_t)64 << 10)

/* The owner of the repository may repair, and the daemon's account recover, so
 * the directory has the mode of refs/. */
static int make_dir(const struct sys *sys, const struct repo *repo)
{
	static const char *const names[] = { "refd", DIR_NAME };
	mode_t mode = (repo->mode & 0777) | 0700;
	size_t i;
	int r = 0;

	for (i = 0; i < 2 && (r == 0 || r == -EEXIST); i++)
		r = SYS(sys, mkdirat, repo->fd, names[i], mode);
	return r == -EEXIST ? 0 : r;
}

static int check_room(const struct sys *sys, const struct repo *repo)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int nr = 0, r;

	r = SYS(sys, dir_open, repo->fd, DIR_NAME, &dir);
	if (r < 0)
		return r;
	while (nr < SAVED_FILES && (r = SYS(sys, dir_next, dir, &entry)) > 0)
		nr++;
	SYS(sys, dir_close, dir);
	return nr == SAVED_FILES ? -EXFULL : r;
}

/* Makes a file name that is safe to type, and long enough to recognise. */
static void escape(const char *text, char *out, size_t size)
{
	const char *plain =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789-_.";
	size_t len = 0;

	for (; *text != '\0' && len + 4 < size; text++) {
		if (strchr(plain, *text) != NULL)
			out[len++] = *text;
		else
			len += (size_t)snprintf(out + len, size - len, "%%%02X",
			    (unsigned)(unsigned char)*text);
	}
	out[len] = '\0';
}

/* Sets PATH to a free name. */
static int choose_name(const struct sys *sys, const struct repo *repo,
    const char *worktree, const char *name, char path[SAVED_PATH_MAX])
{
	time_t now = (time_t)(SYS(sys, now_wall) / 1000000000);
	char whole[2 * REFD_PATH_MAX], escaped[NAME_BYTES], when[32];
	struct sys_stat st;
	struct tm tm;
	unsigned i;
	int r = 0;

	snprintf(whole, sizeof(whole), "%s%s%s%s",
	    worktree[0] != '\0' ? "worktrees/" : "", worktree,
	    worktree[0] != '\0' ? "/" : "", name);
	escape(whole, escaped, sizeof(escaped));
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	for (i = 0; r == 0 && i < SAME_MAX; i++) {
		snprintf(path, SAVED_PATH_MAX, DIR_NAME "/%s-%u-%s", when, i,
		    escaped);
		r = SYS(sys, lstatat, repo->fd, path, &st);
	}
	return r == 0 ? -EXFULL : r == -ENOENT ? 0 : r;
}

int saved_link(const struct sys *sys, const struct repo *repo, int dirfd,
    const char *worktree, const char *name, char path[SAVED_PATH_MAX])
{
	struct sys_stat st;
	int r;

	r = make_dir(sys, repo);
	if (r == 0)
		r = check_room(sys, repo);
	if (r == 0)
		r = SYS(sys, lstatat, dirfd, name, &st);
	if (r == 0 && st.size > SAVED_LINK_BYTES)
		r = -EXFULL;
	if (r == 0)
		r = choose_name(sys, repo, worktree, name, path);
	return r < 0 ? r : SYS(sys, linkat, dirfd, name, repo->fd, path);
}

static int copy_data(const struct sys *sys, int from, int to)
{
	char *buf = malloc(COPY_BYTES);
	off_t at = 0;
	ssize_t n = 1;
	int r = buf != NULL ? 0 : -ENOMEM;

	while (r == 0 && n > 0) {
		n = SYS(sys, pread, from, buf, COPY_BYTES, at);
		r = n < 0 ? (int)n : SYS(sys, write_all, to, buf, (size_t)n);
		at += n;
		if (at > SAVED_COPY_BYTES)
			r = -EXFULL;
	}
	free(buf);
	return r == 0 ? SYS(sys, fsync, to) : r;
}

/* Copies the file FROM to a new file PATH, which does not stay after a failure.
 * A file that only this account may write is believed (own_file.h). So a text
 * of others must not get into such a file, and the copy has the mode of FROM,
 * whatever the umask is. If FROM belongs to another account, and this account
 * may not write FROM, nothing is copied, because FROM cannot be changed in
 * place either. */
static int copy_file(const struct sys *sys, const struct repo *repo, int from,
    const char *path)
{
	enum own_file whose;
	struct sys_stat st;
	int to, r;

	r = SYS(sys, fstat, from, &st);
	if (r < 0)
		return r;
	whose = own_file_of(st.mode, st.uid, (uint32_t)geteuid());
	if (whose == OWN_FILE_FOREIGN && (st.mode & 022) == 0)
		return -EACCES;
	to = SYS(sys, openat, repo->fd, path,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, st.mode & 0777);
	if (to < 0)
		return to;
	r = SYS(sys, fchmod, to, st.mode & 0777);
	if (r == 0)
		r = copy_data(sys, from, to);
	SYS(sys, close, to);
	if (r < 0)
		SYS(sys, unlinkat, repo->fd, path);
	return r;
}

int saved_copy(const struct sys *sys, const struct repo *repo, int dirfd,
    const char *worktree, const char *name, char path[SAVED_PATH_MAX])
{
	int from, r;

	r = make_dir(sys, repo);
	if (r == 0)
		r = check_room(sys, repo);
	if (r == 0)
		r = choose_name(sys, repo, worktree, name, path);
	if (r < 0)
		return r;
	from = SYS(sys, openat, dirfd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (from < 0)
		return from;
	r = copy_file(sys, repo, from, path);
	SYS(sys, close, from);
	return r;
}

int saved_move(const struct sys *sys, const struct repo *repo, const char *name,
    char path[SAVED_PATH_MAX])
{
	int r;

	r = make_dir(sys, repo);
	if (r == 0)
		r = choose_name(sys, repo, "", name, path);
	return r < 0 ? r : SYS(sys, renameat, repo->fd, name, repo->fd, path);
}

/* Is NAME "<time>-<number>-packed-refs"? */
static bool is_packed(const char *name)
{
	const char *dash = strchr(name, '-');

	if (dash != NULL)
		dash = strchr(dash + 1, '-');
	return dash != NULL && strcmp(dash + 1, "packed-refs") == 0;
}

static int newest(const struct sys *sys, const struct repo *repo, int64_t *ns)
{
	char path[sizeof(DIR_NAME) + NAME_MAX + 1];
	struct sys_dirent entry;
	struct sys_dir *dir;
	struct sys_stat st;
	int r;

	r = SYS(sys, dir_open, repo->fd, DIR_NAME, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		if (!is_packed(entry.name))
			continue;
		snprintf(path, sizeof(path), DIR_NAME "/%s", entry.name);
		r = SYS(sys, lstatat, repo->fd, path, &st);
		if (r < 0 && r != -ENOENT)
			break;
		if (r == 0 && st.ctime_ns > *ns)
			*ns = st.ctime_ns;
	}
	SYS(sys, dir_close, dir);
	return r < 0 && r != -ENOENT ? r : 0;
}

int64_t saved_packed_ns(const struct sys *sys, const struct repo *repo)
{
	int64_t ns = INT64_MIN;

	return newest(sys, repo, &ns) < 0 ? INT64_MAX : ns;
}
