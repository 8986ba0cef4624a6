#include "daemon/store/repos/repo_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/store/journal/journal.h"

void repo_id_hex(const uint8_t uuid[16], char hex[33])
{
	int i;

	for (i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", uuid[i]);
}

static int unhex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Takes "KEY <32 hex>\n" off *P. */
static bool take_uuid(const char **p, const char *key, uint8_t uuid[16])
{
	size_t i, len = strlen(key);
	int hi, lo;

	if (strncmp(*p, key, len) != 0 || (*p)[len] != ' ')
		return false;
	*p += len + 1;
	for (i = 0; i < 16; i++) {
		hi = unhex((*p)[0]);
		lo = hi < 0 ? -1 : unhex((*p)[1]);
		if (lo < 0)
			return false;
		uuid[i] = (uint8_t)(hi << 4 | lo);
		*p += 2;
	}
	return *(*p)++ == '\n';
}

/* The whole text is checked. Otherwise a different file of this account, with
 * lines of somebody else, could pass for an id: a list of tables, or the copy
 * of a log that was cut off. */
static bool parse(const char *buf, size_t len, struct repo_id *id)
{
	const char *p = buf;
	size_t rest;

	if (!take_uuid(&p, "uuid", id->uuid) ||
	    !take_uuid(&p, "journal", id->journal) ||
	    strncmp(p, "path ", 5) != 0)
		return false;
	p += 5;
	rest = len - (size_t)(p - buf);
	if (*p != '/' || memchr(buf, '\0', len) != NULL ||
	    p[rest - 1] != '\n' || rest > sizeof(id->path))
		return false;
	memcpy(id->path, p, rest - 1);
	id->path[rest - 1] = '\0';
	return true;
}

/* After a power loss, an unsynced file may be empty or have only zero bytes. */
static bool is_blank(const char *buf, size_t len)
{
	while (len > 0 && buf[len - 1] == '\0')
		len--;
	return len == 0;
}

static int read_id(const struct sys *sys, int refd_fd, char **buf, size_t *len,
    enum own_file *whose)
{
	struct sys_stat st = { 0 };
	int fd, r;

	fd = SYS(sys, openat, refd_fd, "id", O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
	    0);
	if (fd < 0)
		return fd;
	r = SYS(sys, fstat, fd, &st);
	if (r == 0)
		r = sys_read_fd(sys, fd, 8192, buf, len);
	SYS(sys, close, fd);
	*whose = own_file_of(st.mode, st.uid, (uint32_t)geteuid());
	return r;
}

int repo_id_read(const struct sys *sys, int refd_fd, struct repo_id *id)
{
	struct repo_id found;
	size_t len;
	char *buf;
	int r;

	r = read_id(sys, refd_fd, &buf, &len, &found.whose);
	if (r == -EISDIR || r == -EINVAL || r == -EFBIG || r == -ELOOP)
		return -EBADMSG;
	if (r < 0)
		return r;
	/* A blank id was never durable, so no record refers to it. */
	r = is_blank(buf, len)      ? -ENOENT :
	    parse(buf, len, &found) ? 0 :
				      -EBADMSG;
	free(buf);
	if (r == 0)
		*id = found;
	return r;
}

int repo_id_read_in(const struct sys *sys, int dirfd, struct repo_id *id)
{
	int r,
	    fd = SYS(sys, openat, dirfd, "refd",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd;
	r = repo_id_read(sys, fd, id);
	SYS(sys, close, fd);
	return r;
}

static int write_new(const struct sys *sys, int refd_fd, const char *text,
    size_t len, bool sync)
{
	int fd, r;

	/* Removes a leftover, of an earlier run or of anybody. */
	r = SYS(sys, unlinkat, refd_fd, "id.new");
	if (r < 0 && r != -ENOENT)
		return r;
	fd = SYS(sys, openat, refd_fd, "id.new", O_WRONLY | O_CREAT | O_EXCL,
	    0644);
	if (fd < 0)
		return fd;
	r = SYS(sys, write_all, fd, text, len);
	if (r == 0 && sync)
		r = SYS(sys, fsync, fd);
	SYS(sys, close, fd);
	return r;
}

/* A repository that came by a join, and was never opened, has no number in the
 * journal. */
bool repo_id_is_believed(const struct repo_id *id,
    const struct journal_repo *known, const char *path, uint64_t ino)
{
	return id->whose == OWN_FILE_CLOSED ||
	    (id->whose == OWN_FILE_OPEN && strcmp(known->path, path) == 0 &&
		(known->ino == 0 || known->ino == ino));
}

bool repo_id_is_unclaimed(const struct repo_id *id)
{
	static const uint8_t none[16];

	return memcmp(id->journal, none, 16) == 0;
}

int repo_id_write(const struct sys *sys, int refd_fd, const struct repo_id *id,
    bool replaces)
{
	char uuid[33], journal[33], text[sizeof(id->path) + 128];
	int len, r;

	repo_id_hex(id->uuid, uuid);
	repo_id_hex(id->journal, journal);
	len = snprintf(text, sizeof(text), "uuid %s\njournal %s\npath %s\n",
	    uuid, journal, id->path);
	r = write_new(sys, refd_fd, text, (size_t)len, replaces);
	if (r == 0)
		r = SYS(sys, renameat, refd_fd, "id.new", refd_fd, "id");
	return r;
}

int repo_id_make_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, 0) != 16)
		return -EIO;
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}
