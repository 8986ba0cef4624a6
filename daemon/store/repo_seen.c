#include "daemon/store/repo_seen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/repo_id.h"

#define SEEN_FILE "checkpoint"
#define SEEN_MAX  128

uint64_t repo_seen_read(const struct sys *sys, int refd_fd,
    const uint8_t journal[16])
{
	char hex[33], begin[64], *buf, *end;
	uint64_t lsn = 0;
	size_t len;

	if (sys_read_file(sys, refd_fd, SEEN_FILE, SEEN_MAX, &buf, &len) < 0)
		return 0;
	repo_id_hex(journal, hex);
	snprintf(begin, sizeof(begin), "journal %s\nlsn ", hex);
	if (strncmp(buf, begin, strlen(begin)) == 0) {
		lsn = strtoull(buf + strlen(begin), &end, 10);
		if (*end != '\n')
			lsn = 0;
	}
	free(buf);
	return lsn;
}

int repo_seen_write(const struct sys *sys, int refd_fd,
    const uint8_t journal[16], uint64_t lsn)
{
	char hex[33], text[SEEN_MAX];
	struct sys_stat st;
	int fd, len, r;
	ssize_t n;

	fd = SYS(sys, openat, refd_fd, SEEN_FILE,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);
	if (fd < 0)
		return fd;
	r = SYS(sys, fstat, fd, &st);
	if (r == 0 && !S_ISREG(st.mode))
		r = -EINVAL;
	repo_id_hex(journal, hex);
	len = snprintf(text, sizeof(text), "journal %s\nlsn %020" PRIu64 "\n",
	    hex, lsn);
	if (r == 0) {
		n = SYS(sys, pwrite, fd, text, (size_t)len, 0);
		r = n < 0 ? (int)n : n < len ? -EIO : 0;
	}
	SYS(sys, close, fd);
	return r;
}
