/*
 * Proves that the doctor recognizes file systems by their lines in
 * /proc/self/mountinfo, also file systems that a test machine does not have.
 * The doctor reports a kernel that lets users link files of other users, and a
 * slow disk of the journal.
 */
#include <stdlib.h>
#include <string.h>

#include "client/doctor/doctor_internal.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void sees(const char *rest, enum finding_id id, size_t nr)
{
	char *line = xasprintf("36 35 98:0 / /no\\040where %s", rest);
	char *again = xstrdup(line);
	struct doctor d = { 0 };

	doctor_check_mount(&d, line, "refs are");
	ck_assert_uint_eq(d.f.nr, nr);
	if (nr)
		ck_assert(findings_have(&d.f, id, "", "/no where"));
	doctor_check_mount(&d, again, "refs are");
	ck_assert_uint_eq(d.f.nr, nr);
	findings_done(&d.f);
	free(d.mounts);
	free(again);
	free(line);
}

TEST(file_systems)
{
	sees("rw,noatime - xfs /dev/sda rw,attr2", 0, 0);
	sees("rw shared:1 master:2 - btrfs /dev/sda rw", 0, 0);
	sees("rw - nfs4 host:/x rw", FOUND_FS_NETWORK, 1);
	sees("rw - cifs //host/x rw", FOUND_FS_NETWORK, 1);
	sees("rw - fuse.sshfs x rw", FOUND_FS_FUSE, 1);
	sees("rw - fuseblk /dev/sdb rw", FOUND_FS_FUSE, 1);
	sees("rw - vfat /dev/sdb rw", FOUND_FS_NO_LINKS, 1);
	sees("rw - zfs tank rw", FOUND_FS_UNTRIED, 1);
	sees("rw - tmpfs tmpfs rw", FOUND_FS_MEMORY, 1);
	sees("rw - ext2 /dev/sda rw", FOUND_FS_NO_JOURNAL, 1);
	sees("ro - xfs /dev/sda rw", FOUND_FS_READ_ONLY, 1);
	sees("rw - xfs /dev/sda ro", FOUND_FS_READ_ONLY, 1);
	sees("rw - xfs /dev/sda rw,nobarrier", FOUND_FS_NO_BARRIER, 1);
	sees("rw - ext3 /dev/sda rw,barrier=0,data=writeback",
	    FOUND_FS_WRITEBACK, 3);
	sees("rw - xfs /dev/sda rw,nobarriers,rose", 0, 0);
}

TEST(broken_lines)
{
	sees("rw", 0, 0);
	sees("rw - ext4", 0, 0);
	sees("", 0, 0);
}

static void kernel_has(const char *setting, size_t nr)
{
	char *file = xasprintf("%s/sys/fs/protected_hardlinks", tmp_root);
	struct doctor d = { 0 };

	if (setting)
		tmp_put("sys/fs/protected_hardlinks", setting);
	doctor_check_kernel(&d, tmp_root);
	ck_assert_uint_eq(d.f.nr, nr);
	if (nr)
		ck_assert(findings_have(&d.f, FOUND_HARDLINKS, "", file));
	findings_done(&d.f);
	free(file);
}

TEST(hard_links)
{
	tmp_setup();
	kernel_has(NULL, 0);
	kernel_has("1\n", 0);
	kernel_has("0\n", 1);
	tmp_teardown();
}

static void flushes_take(uint64_t nr, uint64_t p50_us, size_t nr_findings,
    const char *said)
{
	struct doctor d = { .socket = tmp_root };

	doctor_check_flushes(&d, nr, p50_us, 2 * p50_us);
	ck_assert_uint_eq(d.f.nr, nr_findings);
	if (nr_findings)
		ck_assert(findings_have(&d.f, FOUND_FLUSH_SLOW, "", tmp_root));
	ck_assert_uint_eq(d.f.nr_checked, said ? 1 : 0);
	if (said)
		ck_assert_ptr_nonnull(strstr(d.f.checked[0], said));
	findings_done(&d.f);
}

TEST(flushes)
{
	tmp_setup();
	flushes_take(0, 0, 0, NULL);
	flushes_take(1, 310, 0, "a flush takes 0.31 ms");
	flushes_take(1000, 100000, 0, "longer than 200.00 ms (1000 flushes)");
	flushes_take(1000, 100001, 1, "a flush takes 100.00 ms");
	tmp_teardown();
}
