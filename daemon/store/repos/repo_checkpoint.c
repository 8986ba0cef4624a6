#include "daemon/store/repos/repo_checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_internal.h"
#include "proto/lib/own_file.h"

#define CHECKPOINT_FILE "checkpoint"
#define CHECKPOINT_MAX  128

/* Any member of the repository's group may put a file there, also a ref that
 * refd wrote with the umask of a client, so owner and mode are checked. 0;
 * -EACCES: the file belongs to a different account, or others may write it, and
 * is ignored. */
static int check_ours(const struct sys *sys, int fd,
    const struct journal *journal)
{
	struct sys_stat st;
	enum own_file whose;
	int r = SYS(sys, fstat, fd, &st);

	if (r < 0)
		return r;
	whose = own_file_of(st.mode, st.uid, journal_owner(journal));
	if (!S_ISREG(st.mode) || st.nlink != 1 || whose != OWN_FILE_CLOSED)
		return -EACCES;
	return 0;
}

static int open_ours(const struct sys *sys, int refd_fd,
    const struct journal *journal, int flags)
{
	int r,
	    fd = SYS(sys, openat, refd_fd, CHECKPOINT_FILE,
		flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd;
	r = check_ours(sys, fd, journal);
	if (r == 0)
		return fd;
	SYS(sys, close, fd);
	return r;
}

static int read_note(const struct sys *sys, int fd,
    const struct journal *journal, struct repo_checkpoint *note)
{
	char hex[33], begin[64], *buf, *end;
	size_t len;
	int r = sys_read_fd(sys, fd, CHECKPOINT_MAX, &buf, &len);

	if (r < 0)
		return r;
	repo_id_hex(journal_uuid(journal), hex);
	snprintf(begin, sizeof(begin), "journal %s since ", hex);
	if (strncmp(buf, begin, strlen(begin)) == 0) {
		note->since = strtoull(buf + strlen(begin), &end, 10);
		if (strncmp(end, "\nlsn ", 5) == 0) {
			note->lsn = strtoull(end + 5, &end, 10);
			note->is_there = *end == '\n';
		}
	}
	free(buf);
	return 0;
}

static int write_note(const struct sys *sys, int fd, struct journal *journal,
    const struct repo_checkpoint *before)
{
	uint64_t lsn = journal_durable_lsn(journal);
	uint64_t since =
	    before->is_there ? before->since : journal_last_lsn(journal);
	char hex[33], text[CHECKPOINT_MAX];
	ssize_t n;
	int len;

	repo_id_hex(journal_uuid(journal), hex);
	len = snprintf(text, sizeof(text),
	    "journal %s since %020" PRIu64 "\nlsn %020" PRIu64 "\n", hex, since,
	    lsn);
	n = SYS(sys, pwrite, fd, text, (size_t)len, 0);
	return n < 0 ? (int)n : n < len ? -EIO : 0;
}

struct repo_checkpoint repo_checkpoint_read(const struct sys *sys, int refd_fd,
    const struct journal *journal)
{
	struct repo_checkpoint note = { .is_there = false };
	int r, fd = open_ours(sys, refd_fd, journal, O_RDONLY);

	if (fd < 0)
		return note;
	r = read_note(sys, fd, journal, &note);
	SYS(sys, close, fd);
	return r == 0 && note.is_there ?
	    note :
	    (struct repo_checkpoint){ .is_there = false };
}

int repo_checkpoint_make(const struct sys *sys, int refd_fd,
    struct journal *journal)
{
	struct repo_checkpoint note = { .is_there = false };
	int r, fd = open_ours(sys, refd_fd, journal, O_RDWR);

	/* A machine without memory or descriptors must not cost the file. */
	if (fd < 0 && repo_open_status(fd) != REFD_NOREPO)
		return fd;
	if (fd < 0) {
		r = SYS(sys, unlinkat, refd_fd, CHECKPOINT_FILE);
		if (r < 0 && r != -ENOENT)
			return r;
		fd = SYS(sys, openat, refd_fd, CHECKPOINT_FILE,
		    O_RDWR | O_CREAT | O_EXCL, 0644);
	}
	if (fd < 0)
		return fd;
	r = read_note(sys, fd, journal, &note);
	if (r == 0 && !note.is_there)
		r = write_note(sys, fd, journal, &note);
	SYS(sys, close, fd);
	return r;
}

int repo_checkpoint_write(const struct sys *sys, int refd_fd,
    struct journal *journal)
{
	struct repo_checkpoint note = { .is_there = false };
	int r, fd = open_ours(sys, refd_fd, journal, O_RDWR);

	if (fd < 0)
		return fd;
	r = read_note(sys, fd, journal, &note);
	if (r == 0)
		r = write_note(sys, fd, journal, &note);
	SYS(sys, close, fd);
	return r;
}
