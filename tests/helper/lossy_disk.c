/*
 * lossy_disk IMAGE FILE: a disk with a volatile cache.
 *
 * Serves IMAGE as FILE, an existing file on which it mounts itself (FUSE), for
 * use through a loop device. Written data can be read at once, but gets into
 * IMAGE only by a flush, which the loop device requests by fsync.
 *
 *	stdout "ready"          FILE can be used
 *	stdin  "cut KEEP SEED"  power cut: KEEP of every 100 blocks in the cache
 *	                        get into IMAGE, chosen by SEED; later writes
 *	                        do not
 *	stdout "cut"            done
 *
 * Exits with status 0 when FILE is unmounted. IMAGE must be on a file system
 * with reflinks.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_MAX (128u << 10)
#define ROOM      (WRITE_MAX + 4096)
#define BLOCK     4096u

struct pending {
	struct pending *next;
	uint64_t offset;
	uint32_t size;
	char data[];
};

struct disk {
	int fuse;
	int image; /* the data that survives */
	int view;  /* for reading: IMAGE and the cache */
	struct stat stat;
	struct pending *first, **last;
	bool is_off;
	uint64_t random;
};

static void write_whole(int fd, const char *data, size_t size, off_t at)
{
	if (pwrite(fd, data, size, at) != (ssize_t)size)
		err(1, "write");
}

/* ---- the cache ---- */

static uint64_t next_random(struct disk *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return d->random;
}

/* Decides per block, because a disk may write a part of a request. */
static void write_back(struct disk *d, unsigned keep)
{
	struct pending *p;
	uint32_t at, size;

	while ((p = d->first)) {
		for (at = 0; at < p->size; at += size) {
			size = BLOCK - (p->offset + at) % BLOCK;
			if (size > p->size - at)
				size = p->size - at;
			if (keep >= 100 || next_random(d) % 100 < keep)
				write_whole(d->image, p->data + at, size,
				    (off_t)(p->offset + at));
		}
		d->first = p->next;
		free(p);
	}
	d->last = &d->first;
}

static void take_write(struct disk *d, const char *data, uint32_t size,
    uint64_t offset)
{
	struct pending *p;

	write_whole(d->view, data, size, (off_t)offset);
	if (d->is_off)
		return;
	p = malloc(sizeof(*p) + size);
	if (!p)
		err(1, "malloc");
	p->next = NULL;
	p->offset = offset;
	p->size = size;
	memcpy(p->data, data, size);
	*d->last = p;
	d->last = &p->next;
}

static void take_command(struct disk *d)
{
	char line[64];
	unsigned keep, seed;
	ssize_t n = read(STDIN_FILENO, line, sizeof(line) - 1);

	if (n <= 0) {
		/* The parent is gone, so the disk is not needed any more. */
		exit(n < 0);
	}
	line[n] = '\0';
	if (sscanf(line, "cut %u %u", &keep, &seed) != 2)
		errx(1, "what is '%s'?", line);
	d->random = seed * UINT64_C(2654435761) + 1;
	write_back(d, keep);
	d->is_off = true;
	puts("cut");
	fflush(stdout);
}

/* ---- the part of FUSE that a single file needs ---- */

static void reply(struct disk *d, uint64_t unique, int error, const void *body,
    size_t size)
{
	static char out[sizeof(struct fuse_out_header) + ROOM];
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size),
		.error = -error,
		.unique = unique,
	};

	memcpy(out, &head, sizeof(head));
	if (size > 0)
		memcpy(out + sizeof(head), body, size);
	/* ENOENT: the caller was killed meanwhile. */
	if (write(d->fuse, out, head.len) < 0 && errno != ENOENT)
		err(1, "answer to /dev/fuse");
}

static void reply_init(struct disk *d, uint64_t unique,
    const struct fuse_init_in *in)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = in->max_readahead,
		.flags = in->flags & (FUSE_BIG_WRITES | FUSE_ASYNC_READ),
		.max_background = 16,
		.congestion_threshold = 12,
		.max_write = WRITE_MAX,
		.time_gran = 1,
	};

	reply(d, unique, 0, &out, sizeof(out));
}

static void reply_attr(struct disk *d, uint64_t unique)
{
	struct fuse_attr_out out = {
		.attr_valid = 3600,
		.attr = {
			.ino = FUSE_ROOT_ID,
			.size = (uint64_t)d->stat.st_size,
			.blocks = (uint64_t)d->stat.st_blocks,
			.mode = S_IFREG | 0600,
			.nlink = 1,
			.blksize = BLOCK,
		},
	};

	reply(d, unique, 0, &out, sizeof(out));
}

static void reply_read(struct disk *d, uint64_t unique,
    const struct fuse_read_in *in)
{
	static char data[ROOM];
	size_t size = in->size < WRITE_MAX ? in->size : WRITE_MAX;
	ssize_t n = pread(d->view, data, size, (off_t)in->offset);

	if (n < 0)
		err(1, "read");
	reply(d, unique, 0, data, (size_t)n);
}

static void handle(struct disk *d, const char *request)
{
	const struct fuse_in_header *head = (const void *)request;
	const void *body = request + sizeof(*head);
	const struct fuse_write_in *in = body;
	struct fuse_open_out opened = { .open_flags = 0 };
	struct fuse_write_out written = { .size = 0 };

	switch (head->opcode) {
	case FUSE_INIT:
		reply_init(d, head->unique, body);
		return;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		reply_attr(d, head->unique);
		return;
	case FUSE_OPEN:
		reply(d, head->unique, 0, &opened, sizeof(opened));
		return;
	case FUSE_READ:
		reply_read(d, head->unique, body);
		return;
	case FUSE_WRITE:
		take_write(d, (const char *)(in + 1), in->size, in->offset);
		written.size = in->size;
		reply(d, head->unique, 0, &written, sizeof(written));
		return;
	case FUSE_FSYNC:
		write_back(d, 100);
		reply(d, head->unique, 0, NULL, 0);
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_ACCESS:
		reply(d, head->unique, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		reply(d, head->unique, ENOSYS, NULL, 0);
	}
}

static void serve(struct disk *d)
{
	static char request[ROOM];
	struct pollfd fds[2] = {
		{ .fd = d->fuse, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};
	ssize_t n;

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			err(1, "poll");
		if (fds[1].revents)
			take_command(d);
		if (!fds[0].revents)
			continue;
		n = read(d->fuse, request, sizeof(request));
		if (n > 0)
			handle(d, request);
		else if (errno == ENODEV)
			return;
		else if (errno != ENOENT && errno != EINTR && errno != EAGAIN)
			err(1, "read from /dev/fuse");
	}
}

static void open_all(struct disk *d, const char *image, const char *file)
{
	char view[4096], options[128];

	d->image = open(image, O_RDWR | O_CLOEXEC);
	if (d->image < 0 || fstat(d->image, &d->stat) < 0)
		err(1, "%s", image);
	snprintf(view, sizeof(view), "%s.view", image);
	d->view = open(view, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (d->view < 0 || ioctl(d->view, FICLONE, d->image) < 0)
		err(1, "%s", view);
	unlink(view);
	d->fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (d->fuse < 0)
		err(1, "/dev/fuse");
	snprintf(options, sizeof(options),
	    "fd=%d,rootmode=100600,user_id=0,group_id=0", d->fuse);
	if (mount("lossy_disk", file, "fuse", 0, options) < 0)
		err(1, "mount on %s", file);
}

int main(int argc, char **argv)
{
	struct disk d = { .first = NULL };

	if (argc != 3) {
		fputs("usage: lossy_disk IMAGE FILE\n", stderr);
		return 129;
	}
	d.last = &d.first;
	open_all(&d, argv[1], argv[2]);
	puts("ready");
	fflush(stdout);
	serve(&d);
	return 0;
}
