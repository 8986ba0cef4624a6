/*
 * The file systems of the journal and of the repositories, by
 * /proc/self/mountinfo. Each mount is checked once. The time of a flush is the
 * daemon's own measurement, because a file of the doctor would be flushed in
 * another way, and the doctor changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"
#include "proto/lib/mount_id.h"

/* A finding if less than both is free. */
#define FREE_PERCENT 5
#define FREE_BYTES   (UINT64_C(1) << 30)
#define FREE_INODES  10000
/* Room for 50,000 mounts. */
#define MOUNTS_BYTES (16 << 20)
/* Flushes on a local hard disk take 10 to 30 ms, on an SSD less than 5 ms. */
#define SLOW_FLUSH_US 100000

struct mount {
	uint64_t id;
	unsigned dev_major, dev_minor;
	char *point, *options, *type, *source, *super; /* borrowed */
};

/* ---- the mount ---- */

/* Decodes octal escapes: a blank is \040. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
			    (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* "36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda rw" */
static bool parse_mount(struct mount *m, char *line)
{
	char *words[6], *tail = strstr(line, " - "), *rest = NULL;
	size_t i;

	if (!tail)
		return false;
	*tail = '\0';
	for (i = 0; i < 6; i++) {
		words[i] = strtok_r(i ? NULL : line, " ", &rest);
		if (!words[i])
			return false;
	}
	m->type = strtok_r(tail + 3, " ", &rest);
	m->source = strtok_r(NULL, " ", &rest);
	m->super = strtok_r(NULL, " ", &rest);
	m->id = strtoull(words[0], NULL, 10);
	m->point = words[4];
	m->options = words[5];
	if (!m->super ||
	    sscanf(words[2], "%u:%u", &m->dev_major, &m->dev_minor) != 2)
		return false;
	unescape(m->point);
	return true;
}

/* The line of the mount of PATH, owned, or NULL. */
static char *find_mount(const char *path)
{
	char *line, *rest = NULL, *found_line = NULL;
	struct text t = { 0 };
	uint64_t id;

	if (mount_id_of(AT_FDCWD, path, MOUNT_ID_LISTED, &id) == 0 &&
	    text_read_file(&t, "/proc/self/mountinfo", MOUNTS_BYTES) == 0)
		for (line = strtok_r(t.data, "\n", &rest); line;
		    line = strtok_r(NULL, "\n", &rest))
			if (strtoull(line, NULL, 10) == id)
				found_line = xstrdup(line);
	text_done(&t);
	return found_line;
}

static bool is_new(struct doctor *d, uint64_t id)
{
	size_t i;

	for (i = 0; i < d->nr_mounts; i++)
		if (d->mounts[i] == id)
			return false;
	d->mounts =
	    xrealloc(d->mounts, (d->nr_mounts + 1) * sizeof(*d->mounts));
	d->mounts[d->nr_mounts++] = id;
	return true;
}

/* ---- checks ---- */

static bool has_option(const char *list, const char *option)
{
	size_t len = strlen(option);
	const char *at = list;

	for (; (at = strstr(at, option)); at += len)
		if ((at == list || at[-1] == ',') &&
		    (!at[len] || at[len] == ','))
			return true;
	return false;
}

static bool is_one_of(const char *type, const char *const list[])
{
	size_t i;

	for (i = 0; list[i]; i++)
		if (!strcmp(type, list[i]))
			return true;
	return false;
}

/* By journal_task in sysfs. A container may lack the file, so the answer is
 * true if unknown. */
static bool ext4_has_journal(const struct mount *m)
{
	char *link =
	    xasprintf("/sys/dev/block/%u:%u", m->dev_major, m->dev_minor);
	char *device = realpath(link, NULL), *task, *name;
	struct text t = { 0 };
	bool has = true;

	name = device ? strrchr(device, '/') : NULL;
	if (name) {
		task = xasprintf("/sys/fs/ext4%s/journal_task", name);
		if (text_read_file(&t, task, SMALL_FILE_BYTES) == 0)
			has = t.len && t.data[0] >= '0' && t.data[0] <= '9';
		free(task);
	}
	text_done(&t);
	free(device);
	free(link);
	return has;
}

static void check_type(struct doctor *d, const struct mount *m,
    const char *what)
{
	static const char *const networks[] = { "nfs", "nfs4", "cifs", "smb3",
		"smbfs", "afs", "ceph", "9p", "coda", "gfs2", "ocfs2", "lustre",
		"gpfs", "beegfs", "vboxsf", NULL };
	static const char *const memories[] = { "tmpfs", "ramfs", NULL };
	static const char *const linkless[] = { "vfat", "exfat", "msdos",
		NULL };
	static const char *const known[] = { "ext4", "xfs", "btrfs", NULL };

	if (is_one_of(m->type, networks))
		doctor_found(d, FOUND_FS_NETWORK, "", m->point,
		    "%s on a network file system (%s), which refd "
		    "refuses",
		    what, m->type);
	else if (is_one_of(m->type, memories))
		doctor_found(d, FOUND_FS_MEMORY, "", m->point,
		    "%s in memory (%s)", what, m->type);
	else if (is_one_of(m->type, linkless))
		doctor_found(d, FOUND_FS_NO_LINKS, "", m->point,
		    "%s on %s, which lacks the hard links that refd needs for "
		    "locks",
		    what, m->type);
	else if (!strcmp(m->type, "overlay"))
		doctor_found(d, FOUND_FS_OVERLAY, "", m->point,
		    "%s on an overlay, the layer of a container", what);
	else if (has_prefix(m->type, "fuse"))
		doctor_found(d, FOUND_FS_FUSE, "", m->point,
		    "%s on %s: refd cannot know the effect of fsync there",
		    what, m->type);
	else if (!strcmp(m->type, "ext2") || !strcmp(m->type, "ext3") ||
	    (!strcmp(m->type, "ext4") && !ext4_has_journal(m)))
		doctor_found(d, FOUND_FS_NO_JOURNAL, "", m->point,
		    "%s on %s without ext4's journal: a power cut needs "
		    "fsck, which may lose files",
		    what, m->type);
	else if (!is_one_of(m->type, known))
		doctor_found(d, FOUND_FS_UNTRIED, "", m->point, "%s on %s",
		    what, m->type);
}

static void check_options(struct doctor *d, const struct mount *m,
    const char *what)
{
	if (has_option(m->options, "ro") || has_option(m->super, "ro"))
		doctor_found(d, FOUND_FS_READ_ONLY, "", m->point,
		    "%s on a file system that is mounted read-only", what);
	if (has_option(m->super, "nobarrier") ||
	    has_option(m->super, "barrier=0"))
		doctor_found(d, FOUND_FS_NO_BARRIER, "", m->point,
		    "%s on a file system with nobarrier: a flush stays in the "
		    "disk's cache",
		    what);
	if (has_option(m->super, "data=writeback"))
		doctor_found(d, FOUND_FS_WRITEBACK, "", m->point,
		    "%s on a file system with data=writeback: after a power "
		    "cut a file may have the contents of a different file",
		    what);
}

static void check_room(struct doctor *d, const struct mount *m,
    const char *what)
{
	struct statvfs v;
	uint64_t free_bytes;

	if (statvfs(m->point, &v) < 0)
		return;
	free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
	if (v.f_blocks && free_bytes < FREE_BYTES &&
	    v.f_bavail * 100 / v.f_blocks < FREE_PERCENT)
		doctor_found(d, FOUND_NO_SPACE, "", m->point,
		    "%s on a file system with %" PRIu64 " of %" PRIu64
		    " MiB free",
		    what, free_bytes >> 20,
		    ((uint64_t)v.f_blocks * v.f_frsize) >> 20);
	if (v.f_files && v.f_favail < FREE_INODES &&
	    v.f_favail * 100 / v.f_files < FREE_PERCENT)
		doctor_found(d, FOUND_NO_INODES, "", m->point,
		    "%s on a file system with %" PRIu64 " of %" PRIu64
		    " inodes free",
		    what, (uint64_t)v.f_favail, (uint64_t)v.f_files);
}

void doctor_check_mount(struct doctor *d, char *line, const char *what)
{
	struct mount m = { 0 };

	if (!parse_mount(&m, line) || !is_new(d, m.id))
		return;
	doctor_checked(d, false, "the file system %s (%s)", m.point, m.type);
	check_type(d, &m, what);
	check_options(d, &m, what);
	check_room(d, &m, what);
}

void doctor_check_disk(struct doctor *d, const char *path, const char *what)
{
	char *line = find_mount(path);

	if (line)
		doctor_check_mount(d, line, what);
	free(line);
}

void doctor_check_flushes(struct doctor *d, uint64_t nr, uint64_t p50_us,
    uint64_t p99_us)
{
	double p50_ms = (double)p50_us / 1000, p99_ms = (double)p99_us / 1000;

	if (nr == 0)
		return;
	doctor_checked(d, false,
	    "the journal's disk: a flush takes %.2f ms, and one in a hundred "
	    "longer than %.2f ms (%" PRIu64 " flushes); an update waits for a "
	    "flush, which updates at the same time share",
	    p50_ms, p99_ms, nr);
	if (p50_us > SLOW_FLUSH_US)
		doctor_found(d, FOUND_FLUSH_SLOW, "", d->socket,
		    "a flush of the journal's disk takes %.0f ms (half of "
		    "%" PRIu64 " flushes take longer), and every push waits "
		    "for one",
		    p50_ms, nr);
}
