/*
 * Evidence of corrupt refs. The file of a ref is linked, not copied: a link
 * takes no room, and keeps times, owner and mode, which tell the cause.
 *
 * The happy path: make the directory, count its files, find a free name.
 *
 * Failures: a ref is redone in any case; a packed-refs is replaced only after
 * the move.
 */
#include "daemon/store/recovery/lost.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DIR_NAME "lost"
/* For the name of the ref; the time and a number are added. */
#define NAME_BYTES 180
#define SAME_MAX   100

static int count_files(const struct sys *sys, const struct repo *repo,
    size_t *nr)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	*nr = 0;
	r = SYS(sys, dir_open, repo->refd_fd, DIR_NAME, &dir);
	if (r < 0)
		return r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0)
		if (entry.name[0] != '.')
			++*nr;
	SYS(sys, dir_close, dir);
	return r;
}

static int open_lost(struct lost *lost, const struct sys *sys,
    const struct repo *repo)
{
	int r;

	if (lost->is_open)
		return 0;
	r = SYS(sys, mkdirat, repo->refd_fd, DIR_NAME, 0700);
	if (r < 0 && r != -EEXIST)
		return r;
	r = count_files(sys, repo, &lost->nr);
	lost->is_open = r == 0;
	return r;
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

/* KEPT: "refd/lost/<time>-<number>-<name>". Returns the part after "refd/". */
static const char *name_it(const struct sys *sys, const char *worktree,
    const char *name, unsigned number, char kept[LOST_PATH_MAX])
{
	time_t now = (time_t)(SYS(sys, now_wall) / 1000000000);
	char whole[2 * REFD_PATH_MAX], escaped[NAME_BYTES], when[32];
	struct tm tm;

	snprintf(whole, sizeof(whole), "%s%s%s%s",
	    worktree[0] != '\0' ? "worktrees/" : "", worktree,
	    worktree[0] != '\0' ? "/" : "", name);
	escape(whole, escaped, sizeof(escaped));
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(kept, LOST_PATH_MAX, "refd/" DIR_NAME "/%s-%u-%s", when,
	    number, escaped);
	return kept + strlen("refd/");
}

int lost_keep(struct lost *lost, const struct sys *sys, const struct repo *repo,
    int dirfd, const char *worktree, const char *name, char kept[LOST_PATH_MAX])
{
	struct sys_stat st;
	unsigned i;
	int r;

	r = open_lost(lost, sys, repo);
	if (r == 0)
		r = SYS(sys, lstatat, dirfd, name, &st);
	if (r == 0 && (lost->nr >= LOST_FILES || st.size > LOST_BYTES))
		r = -EDQUOT;
	if (r < 0)
		return r;
	r = -EEXIST;
	for (i = 0; i < SAME_MAX && r == -EEXIST; i++)
		r = SYS(sys, linkat, dirfd, name, repo->refd_fd,
		    name_it(sys, worktree, name, i, kept));
	lost->nr += r == 0;
	return r;
}

int lost_take_packed(struct lost *lost, const struct sys *sys,
    const struct repo *repo, char kept[LOST_PATH_MAX])
{
	static const char full[] = "refd/" DIR_NAME "/packed-refs";
	const char *to = kept + strlen("refd/");
	struct sys_stat st;
	unsigned i;
	int r;

	r = open_lost(lost, sys, repo);
	if (r < 0)
		return r;
	for (i = 0; r == 0 && i < SAME_MAX; i++) {
		to = name_it(sys, "", "packed-refs", i, kept);
		r = SYS(sys, lstatat, repo->refd_fd, to, &st);
	}
	if (r < 0 && r != -ENOENT)
		return r;
	if (lost->nr >= LOST_FILES || i == SAME_MAX)
		memcpy(kept, full, sizeof(full));
	r = SYS(sys, renameat, repo->fd, "packed-refs", repo->refd_fd, to);
	lost->nr += r == 0;
	return r;
}

static bool is_packed(const char *name)
{
	static const char tail[] = "packed-refs";
	size_t len = strlen(name);

	return len >= sizeof(tail) - 1 &&
	    strcmp(name + len - (sizeof(tail) - 1), tail) == 0;
}

static int newest(const struct sys *sys, const struct repo *repo, int64_t *ns)
{
	char path[sizeof(DIR_NAME) + NAME_MAX + 1];
	struct sys_dirent entry;
	struct sys_dir *dir;
	struct sys_stat st;
	int r;

	r = SYS(sys, dir_open, repo->refd_fd, DIR_NAME, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		if (!is_packed(entry.name))
			continue;
		snprintf(path, sizeof(path), DIR_NAME "/%s", entry.name);
		r = SYS(sys, lstatat, repo->refd_fd, path, &st);
		if (r < 0 && r != -ENOENT)
			break;
		if (r == 0 && st.ctime_ns > *ns)
			*ns = st.ctime_ns;
	}
	SYS(sys, dir_close, dir);
	return r < 0 && r != -ENOENT ? r : 0;
}

int64_t lost_packed_ns(const struct sys *sys, const struct repo *repo)
{
	int64_t ns = INT64_MIN;

	return newest(sys, repo, &ns) < 0 ? INT64_MAX : ns;
}
