/*
 * The happy path, for each new file:
 *	open	in a way that reads come from the disk: with O_DIRECT, because
 *		pages that a process has mapped stay in memory, and git maps
 *		packs. Without O_DIRECT, the pages are dropped, and a check
 *		shows that they are gone. A file system without a disk is read
 *		normally
 *	loose	inflated: the checksum of the content is the name
 *	packs	and the files that git keeps beside packs: the last 20 or 32
 *		bytes are the checksum of all bytes before
 *
 * A file is new if its ctime and the ctime of its directory are new, because a
 * new name changes both. No file is mapped here.
 *
 * Failures end the reading, with two exceptions. A file that is gone meanwhile
 * is ignored. After a lost file the reading goes on, to find all lost files.
 */
#include "daemon/store/sync_failures/readback.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "daemon/base/fs_type.h"
#include "proto/lib/sha.h"
#include "proto/limits.h"
#include "proto/oid.h"

/* Buffers are on the stack, and a thread of musl has 128 KiB. */
#define PART  (16 * 1024)
#define ALIGN 4096 /* O_DIRECT may need this alignment */
#define TRIES 3    /* drops of pages; another process may be reading the file */

/* A directory being read. The path of a bad file goes to PATH. */
struct readback_dir {
	const struct readback *readback;
	const struct sys *sys;
	int64_t limit;
	int fd;
	const char *name; /* below objects/ */
	char *path;
	size_t size;
	bool *is_any_lost;
};

/* ---- a file ---- */

static int drop(const struct sys *sys, int fd)
{
	int i, r;

	for (i = 0; i < TRIES; i++) {
		r = SYS(sys, drop_cache, fd);
		if (r == 0)
			r = SYS(sys, cache_holds, fd);
		/* Dirty pages are not dropped, so a sync makes them clean. */
		if (r == 1)
			r = SYS(sys, fsync, fd) < 0 ? -EIO : 1;
		if (r <= 0)
			return r;
	}
	return -EBUSY;
}

/* Opens NAME in a way that reads come from the disk. */
static int open_anew(const struct sys *sys, int dirfd, const char *name)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	uint64_t type;
	int fd, r;

	r = SYS(sys, fs_type, dirfd, &type);
	if (r < 0)
		return r;
	if (fs_type_reads_directly(type)) {
		fd = SYS(sys, openat, dirfd, name, flags | O_DIRECT, 0);
		r = fd < 0 ? fd : SYS(sys, drop_cache, fd);
	} else {
		fd = SYS(sys, openat, dirfd, name, flags, 0);
		r = fd < 0 ? fd : fs_type_in_memory(type) ? 0 : drop(sys, fd);
	}
	if (r < 0 && fd >= 0)
		SYS(sys, close, fd);
	return r < 0 ? r : fd;
}

/* Reads up to the end, or the end of the stream for inflate(). Never reads
 * behind SIZE, because O_DIRECT may refuse that offset. */
static int sum_inflated(const struct sys *sys, int fd, uint64_t size,
    z_stream *z, struct sha *sum)
{
	_Alignas(ALIGN) unsigned char in[PART];
	unsigned char out[PART];
	uint64_t at = 0;
	ssize_t n = 1;
	int zr = Z_OK;

	while (zr == Z_OK && at < size &&
	    (n = SYS(sys, pread, fd, in, PART, (off_t)at)) > 0) {
		at += (uint64_t)n;
		z->next_in = in;
		z->avail_in = (unsigned)n;
		do {
			z->next_out = out;
			z->avail_out = PART;
			zr = inflate(z, Z_NO_FLUSH);
			sha_add(sum, out, PART - z->avail_out);
		} while (zr == Z_OK && z->avail_out == 0);
		/* inflate() has used all input and needs more. */
		if (zr == Z_BUF_ERROR)
			zr = Z_OK;
	}
	if (n < 0)
		return (int)n;
	if (zr == Z_MEM_ERROR)
		return -ENOMEM;
	return zr == Z_STREAM_END ? 0 : -EBADMSG;
}

static int check_loose(const struct readback_dir *p, int fd, uint64_t size,
    const struct refd_oid *wanted)
{
	z_stream z = { .next_in = NULL };
	struct sha sum;
	struct refd_oid is;
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	sha_init(&sum, p->readback->format);
	r = sum_inflated(p->sys, fd, size, &z, &sum);
	inflateEnd(&z);
	sha_done(&sum, is.bytes);
	if (r == 0 && !refd_oid_eq(&is, wanted))
		r = -EBADMSG;
	return r;
}

/* Adds the bytes before offset END to SUM, because the bytes from END on are
 * the expected checksum, WANTED. */
static void split(const unsigned char *part, uint64_t at, size_t n,
    uint64_t end, struct sha *sum, struct refd_oid *wanted)
{
	size_t plain = at >= end ? 0 : end - at < n ? (size_t)(end - at) : n;

	sha_add(sum, part, plain);
	if (plain < n)
		memcpy(wanted->bytes + (at + plain - end), part + plain,
		    n - plain);
}

static int check_sum(const struct readback_dir *p, int fd, uint64_t size)
{
	_Alignas(ALIGN) unsigned char part[PART];
	const size_t bytes = refd_object_format_bytes(p->readback->format);
	struct refd_oid is, wanted = { 0 };
	struct sha sum;
	uint64_t at;
	ssize_t n;

	if (size < bytes)
		return -EBADMSG;
	sha_init(&sum, p->readback->format);
	for (at = 0; at < size; at += (uint64_t)n) {
		n = SYS(p->sys, pread, fd, part, PART, (off_t)at);
		if (n <= 0)
			return n < 0 ? (int)n : -EBADMSG;
		if ((uint64_t)n > size - at)
			n = (ssize_t)(size - at);
		split(part, at, (size_t)n, size - bytes, &sum, &wanted);
	}
	sha_done(&sum, is.bytes);
	return refd_oid_eq(&is, &wanted) ? 0 : -EBADMSG;
}

static void path_of(const struct readback_dir *p, const char *name, char *path,
    size_t size)
{
	char dir[REFD_PATH_MAX];

	if (SYS(p->sys, fd_path, p->fd, dir, sizeof(dir)) < 0)
		snprintf(dir, sizeof(dir), "objects/%s", p->name);
	if (name[0] == '\0')
		snprintf(path, size, "%s", dir);
	else
		snprintf(path, size, "%s/%s", dir, name);
}

static int say(const struct readback_dir *p, int r, const char *name)
{
	path_of(p, name, p->path, p->size);
	return r;
}

static int say_lost(const struct readback_dir *p, const char *name,
    const struct sys_stat *st)
{
	char path[REFD_PATH_MAX + 64];

	path_of(p, name, path, sizeof(path));
	if (!*p->is_any_lost)
		snprintf(p->path, p->size, "%s", path);
	*p->is_any_lost = true;
	p->readback->lost(p->readback->arg, path, st);
	return 0;
}

/* OID is the name of a loose object, or NULL if the file ends with its
 * checksum. */
static int check_file(const struct readback_dir *p, const char *name,
    const struct refd_oid *oid)
{
	struct sys_stat st;
	int fd, r;

	r = SYS(p->sys, lstatat, p->fd, name, &st);
	if (r == 0 && (!S_ISREG(st.mode) || st.ctime_ns < p->limit))
		return 0;
	fd = r < 0 ? r : open_anew(p->sys, p->fd, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : say(p, fd, name);
	/* The file may have been replaced meanwhile, as a multi-pack-index is,
	 * so its status is read again. */
	r = SYS(p->sys, fstat, fd, &st);
	if (r == 0)
		r = oid != NULL ? check_loose(p, fd, st.size, oid) :
				  check_sum(p, fd, st.size);
	SYS(p->sys, close, fd);
	if (r == -EBADMSG)
		return say_lost(p, name, &st);
	return r < 0 ? say(p, r, name) : 0;
}

/* ---- a directory ---- */

/* Does the file end with the checksum of all bytes before? */
static bool has_sum(const char *name)
{
	static const char *const kinds[] = { ".pack", ".idx", ".rev", ".bitmap",
		".mtimes" };
	size_t len = strlen(name), end, i;

	if (strncmp(name, "tmp_", 4) == 0)
		return false;
	if (strcmp(name, "multi-pack-index") == 0)
		return true;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		end = strlen(kinds[i]);
		if (len > end && strcmp(name + len - end, kinds[i]) == 0)
			return true;
	}
	return false;
}

static bool is_fanout(const char *name)
{
	return strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2;
}

static int check_entry(const struct readback_dir *p, const char *name)
{
	const enum refd_object_format format = p->readback->format;
	char hex[REFD_OID_MAX_HEX + 1];
	struct refd_oid oid;

	if (!is_fanout(p->name))
		return has_sum(name) ? check_file(p, name, NULL) : 0;
	if (strlen(name) != refd_object_format_hex(format) - 2)
		return 0;
	snprintf(hex, sizeof(hex), "%s%s", p->name, name);
	return refd_oid_parse(hex, format, &oid) == 0 ?
	    check_file(p, name, &oid) :
	    0;
}

static int check_entries(const struct readback_dir *p)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int more = 0, r;

	r = SYS(p->sys, dir_open, p->fd, ".", &dir);
	if (r < 0)
		return say(p, r, "");
	while (r == 0 && (more = SYS(p->sys, dir_next, dir, &entry)) > 0)
		r = check_entry(p, entry.name);
	SYS(p->sys, dir_close, dir);
	return r == 0 && more < 0 ? say(p, more, "") : r;
}

static int check_below(const struct readback_dir *top, const char *name)
{
	struct readback_dir p = *top;
	struct sys_stat st;
	int r;

	r = SYS(p.sys, lstatat, top->fd, name, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : say(top, r, name);
	if (st.ctime_ns < p.limit)
		return 0;
	p.name = name;
	p.fd = SYS(p.sys, openat, top->fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (p.fd == -ENOENT || p.fd == -ENOTDIR)
		return 0;
	if (p.fd < 0)
		return say(top, p.fd, name);
	r = check_entries(&p);
	SYS(p.sys, close, p.fd);
	return r;
}

static int check_store(const struct readback_dir *top)
{
	char fanout[3];
	int i, r;

	r = check_below(top, "pack");
	for (i = 0; i < 256 && r == 0; i++) {
		snprintf(fanout, sizeof(fanout), "%02x", i);
		r = check_below(top, fanout);
	}
	return r;
}

int readback_objects(const struct readback *readback, int fd, const char *name,
    int64_t limit, char *path, size_t size)
{
	bool is_any_lost = false;
	const struct readback_dir top = { readback, readback->sys, limit, fd,
		name, path, size, &is_any_lost };
	int r;

	/* Alternates in info/alternates are separate stores, so they are not
	 * read here. */
	if (strchr(name, '/') != NULL)
		return 0;
	r = name[0] != '\0' ? check_entries(&top) : check_store(&top);
	return r == 0 && is_any_lost ? -EBADMSG : r;
}
