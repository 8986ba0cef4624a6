/*
 * Any bytes as a reflog that recovery repairs. Added lines are there
 * afterwards, every complete line is still in its place, the file ends with a
 * complete line, and a second repair changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/files/format/reflog.h"
#include "proto/oid.h"
#include "tests/lib/memfs.h"

#define LINE(c)                                                                \
	"0000000000000000000000000000000000000000 "                            \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" c                            \
	" C <c@example.com> 1700000000 +0000\tpush\n"

static const char *const lines[] = { LINE("1"), LINE("2"), LINE("2") };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void put_log(const struct sys *sys, const void *data, size_t size)
{
	int fd = sys->openat(sys, AT_FDCWD, "log", O_WRONLY | O_CREAT, 0666);

	expect(fd >= 0);
	expect(size == 0 || sys->write_all(sys, fd, data, size) == 0);
	sys->close(sys, fd);
}

static char *get_log(const struct sys *sys, size_t *len)
{
	int fd = sys->openat(sys, AT_FDCWD, "log", O_RDONLY, 0);
	struct sys_stat st;
	char *text;

	expect(fd >= 0 && sys->fstat(sys, fd, &st) == 0);
	*len = (size_t)st.size;
	text = malloc(*len + 1);
	expect(text != NULL);
	expect(sys->pread(sys, fd, text, *len, 0) == (ssize_t)*len);
	text[*len] = '\0';
	sys->close(sys, fd);
	return text;
}

static struct reflog_file log_of(const struct sys *sys)
{
	return (struct reflog_file){ .sys = sys,
		.dirfd = AT_FDCWD,
		.path = "log",
		.format = REFD_FORMAT_SHA1,
		.create = true,
		.file_mode = 0666,
		.dir_mode = 0777 };
}

static size_t repair(const struct sys *sys, size_t *cut)
{
	const struct reflog_file log = log_of(sys);
	size_t added = 0;

	expect(reflog_repair(&log, lines, 3, 0, &added, cut) == 0);
	return added;
}

static unsigned count(const char *text, size_t len, const char *line)
{
	size_t n = strlen(line);
	const char *at = text;
	unsigned nr = 0;

	while (at < text + len) {
		const char *eol = memchr(at, '\n', len - (size_t)(at - text));

		if (eol == NULL)
			break;
		if ((size_t)(eol + 1 - at) == n && memcmp(at, line, n) == 0)
			nr++;
		at = eol + 1;
	}
	return nr;
}

/* Does TEXT end with a line of a reflog? The input may end differently. */
static bool ends_with_log_line(const char *text, size_t len)
{
	const char *line = memrchr(text, '\n', len - 1);
	struct refd_oid oid;

	line = line != NULL ? line + 1 : text;
	return len - (size_t)(line - text) > 2 * (REFD_SHA1_HEX + 1) &&
	    refd_oid_parse(line, REFD_FORMAT_SHA1, &oid) == 0 &&
	    line[REFD_SHA1_HEX] == ' ' &&
	    refd_oid_parse(line + REFD_SHA1_HEX + 1, REFD_FORMAT_SHA1, &oid) ==
	    0 &&
	    line[2 * REFD_SHA1_HEX + 1] == ' ';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memfs *fs = memfs_new();
	const struct sys *sys;
	struct refd_oid old, new_oid;
	struct reflog_file log;
	size_t len, again_len, cut = 0;
	char *text, *again;

	if (fs == NULL)
		return 0;
	sys = memfs_sys(fs);
	put_log(sys, data, size);
	repair(sys, &cut);
	text = get_log(sys, &len);
	expect(len > 0 && text[len - 1] == '\n');
	expect(count(text, len, lines[0]) >= 1);
	expect(count(text, len, lines[1]) >= 2);
	if (memchr(data, '\0', size) == NULL && size > 0 &&
	    data[size - 1] == '\n')
		expect(cut == 0 && memcmp(text, data, size) == 0);
	log = log_of(sys);
	expect(
	    reflog_last(&log, &old, &new_oid) == ends_with_log_line(text, len));
	expect(repair(sys, &cut) == 0);
	again = get_log(sys, &again_len);
	expect(again_len == len && memcmp(text, again, len) == 0);
	free(text);
	free(again);
	memfs_free(fs);
	return 0;
}
