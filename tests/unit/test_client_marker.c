/*
 * Proves when the client lets git write while the daemon is away: if the
 * repository was never served, if the marker of a recovery lies in a tmpfs, or
 * if the marker names this boot. The client never does so if the marker lists
 * the repository. No other file at the marker's path blocks the client or fills
 * its memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/request/connect.h"
#include "tests/lib/connect_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static char boot[64];

static void setup(void)
{
	FILE *f = fopen(BOOT_ID, "r");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%63s", boot), 1);
	fclose(f);
	connect_setup();
}

/* The marker has CONTENT. A memfd lies in a tmpfs. A pipe does not, and stands
 * for a file on disk; one read empties the pipe. */
static void mark(bool in_memory, const char *content)
{
	int fds[2];
	char target[64];

	if (in_memory) {
		fds[0] = fds[1] = memfd_create("marker", MFD_CLOEXEC);
		ck_assert_int_ge(fds[0], 0);
	} else {
		ck_assert_int_eq(pipe(fds), 0);
	}
	ck_assert_int_eq(write(fds[1], content, strlen(content)),
	    strlen(content));
	if (!in_memory)
		close(fds[1]);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fds[0]);
	connect_mark_by(target);
}

static bool may_bypass(bool in_memory, const char *content)
{
	mark(in_memory, content);
	return connect_may_bypass(connect_sock, &connect_gd);
}

CASE(.setup = setup, .teardown = connect_teardown);

TEST(test_never_served)
{
	/* Nothing there could await replay. */
	ck_assert(connect_may_bypass(connect_sock, &connect_gd));
	tmp_put("repo/refd/enabled", "");
	ck_assert(connect_may_bypass(connect_sock, &connect_gd));
	tmp_put("repo/refd/id", "x");
	ck_assert(!connect_may_bypass(connect_sock, &connect_gd));
}

/* A container may show another boot id than the daemon wrote. */
TEST(test_in_memory)
{
	tmp_put("repo/refd/id", "x");
	ck_assert(may_bypass(true, "00000000-another-boot\n"));
	ck_assert(!may_bypass(true, "00000000-half-of-a"));
	ck_assert(!may_bypass(true, ""));
}

/* This marker outlives a power loss. */
TEST(test_on_disk)
{
	char content[128];

	tmp_put("repo/refd/id", "x");
	connect_mark_by(BOOT_ID);
	ck_assert(connect_may_bypass(connect_sock, &connect_gd));
	/* The same form, but every read has a new value. */
	connect_mark_by("/proc/sys/kernel/random/uuid");
	ck_assert(!connect_may_bypass(connect_sock, &connect_gd));
	snprintf(content, sizeof(content), "%s\n", boot);
	ck_assert(may_bypass(false, content));
	snprintf(content, sizeof(content), "%.20s\n", boot);
	ck_assert(!may_bypass(false, content));
	snprintf(content, sizeof(content), "%sx\n", boot);
	ck_assert(!may_bypass(false, content));
	ck_assert(!may_bypass(false, boot));
	ck_assert(!may_bypass(false, ""));
}

/* Recovery is done, but not of all repositories. */
TEST(test_lists, .times = 2)
{
	char one[128], two[256], path[700];

	snprintf(one, sizeof(one),
	    "%s\nawaits 00112233445566778899aabbccddeeff\n", boot);
	snprintf(two, sizeof(two),
	    "%s\nawaits 00112233445566778899aabbccddeef0\n"
	    "awaits 00112233445566778899aabbccddeeff\n",
	    boot);
	tmp_put("repo/refd/id", "x");
	ck_assert(!may_bypass(_i, one));
	tmp_put("repo/refd/id",
	    "uuid 00112233445566778899aabbccddeef0\njournal x\n");
	ck_assert(may_bypass(_i, one));
	/* Nobody reads 40 GiB. */
	snprintf(path, sizeof(path), "%s/refd/id", connect_gd.common);
	ck_assert_int_eq(truncate(path, 40LL << 30), 0);
	ck_assert(!may_bypass(_i, one));
	tmp_put("repo/refd/id",
	    "uuid 00112233445566778899aabbccddeeff\njournal x\n");
	ck_assert(!may_bypass(_i, one));
	ck_assert(!may_bypass(_i, two));
}

/* In the last case, the FIFO has a silent writer. */
TEST(test_fifo)
{
	char path[700];
	int writer;

	tmp_put("repo/refd/id", "x");
	snprintf(path, sizeof(path), "%s.replayed", connect_sock);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert(!connect_may_bypass(connect_sock, &connect_gd));
	writer = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(writer, 0);
	ck_assert(!connect_may_bypass(connect_sock, &connect_gd));
	close(writer);
}

TEST(test_endless)
{
	char target[64];
	int fd = memfd_create("marker", MFD_CLOEXEC);

	tmp_put("repo/refd/id", "x");
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "boot\n", 5), 5);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	connect_mark_by(target);
	ck_assert(connect_may_bypass(connect_sock, &connect_gd));
	ck_assert_int_eq(ftruncate(fd, 32 << 20), 0);
	ck_assert(!connect_may_bypass(connect_sock, &connect_gd));
	close(fd);
}
