/*
 * Proves that refd's object reader notices added, removed and moved objects and
 * alternates, also in a directory that changed twice within one tick of the
 * file system's clock, and in a directory that replaced an earlier directory.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/lib/odb_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* Writes a blob into a new pack in r. */
static struct refd_oid pack_a_blob(void)
{
	struct refd_oid oid;
	char *hex;

	hex = tmp_output("cd r && o=$(echo z | git hash-object -w --stdin) && "
			 "echo $o && echo $o | git pack-objects -q "
			 "objects/pack/pack >/dev/null && git prune-packed");
	oid = odb_rig_oid(hex);
	free(hex);
	return oid;
}

static struct suite_case sha256 = { .name = "sha256",
	.setup = odb_rig_setup_sha256,
	.teardown = odb_rig_teardown,
	.seconds = 120 };

CASE(.name = "changes", .setup = odb_rig_setup, .teardown = odb_rig_teardown,
    .seconds = 60);

TEST(objects_that_come_later_are_found)
{
	struct refd_oid loose, packed;
	char *hex;

	odb_rig_make_objects();
	odb_rig_open("r");
	odb_rig_check_objects();
	hex = tmp_output("cd r && echo y | git hash-object -w --stdin");
	loose = odb_rig_oid(hex);
	free(hex);
	ck_assert_int_eq(odb_type(odb_rig, &loose), OBJECT_BLOB);
	packed = pack_a_blob();
	ck_assert_int_eq(odb_type(odb_rig, &packed), OBJECT_BLOB);
}

/* The clock of the file system stands at TICK; the wall clock is a little
 * later. */
#define TICK INT64_C(1700000000000000000)

static void stand_still(struct sys_stat *st)
{
	if (S_ISDIR(st->mode))
		st->ctime_ns = st->mtime_ns = TICK;
}

static int fstat_in_tick(const struct sys *sys, int fd, struct sys_stat *st)
{
	int r = sys_kernel.fstat(sys, fd, st);

	stand_still(st);
	return r;
}

static int lstatat_in_tick(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	int r = sys_kernel.lstatat(sys, dirfd, path, st);

	stand_still(st);
	return r;
}

static int64_t later_than_tick(const struct sys *sys)
{
	(void)sys;
	return TICK + 4000000;
}

/* The directory looks as at the last listing. */
TEST(a_pack_of_the_same_tick_is_found)
{
	struct sys sys = sys_kernel;
	struct refd_oid oid;

	sys.fstat = fstat_in_tick;
	sys.lstatat = lstatat_in_tick;
	sys.now_wall = later_than_tick;
	odb_rig_sys = &sys;
	odb_rig_make_objects();
	odb_rig_open("r");
	oid = pack_a_blob();
	ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_BLOB);
	odb_rig_sys = &sys_kernel;
	odb_rig_open("r");
}

TEST(a_pruned_object_is_gone_after_a_refresh)
{
	struct refd_oid oid;

	odb_rig_make_objects();
	oid = pack_a_blob();
	odb_rig_open("r");
	ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_BLOB);
	tmp_run("git -C r gc -q --prune=now");
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_ABSENT);
	odb_rig_check_objects();
}

/* An index may stay behind: git ignores an index without its pack. */
TEST(an_index_alone_has_nothing)
{
	struct refd_oid oid;

	odb_rig_make_objects();
	tmp_run("git -C r repack -q -a -d && git -C r prune-packed");
	odb_rig_open("r");
	oid = odb_rig_named("refs/heads/x");
	ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_COMMIT);
	tmp_run("rm -f r/objects/pack/*.pack");
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_ABSENT);
}

/* Between loose objects and packs, both ways, during the look-ups. */
TEST(an_object_that_moves_is_found, .also = &sha256)
{
	struct refd_oid oid;
	int i;

	odb_rig_make_objects();
	odb_rig_open("r");
	oid = odb_rig_named("refs/heads/x");
	for (i = 0; i < 3; i++) {
		tmp_run("git -C r repack -q -a -d");
		ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_COMMIT);
		tmp_run("cd r && mv objects/pack/*.pack p && rm -f "
			"objects/pack/* && git unpack-objects -q <p && rm p");
		ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_COMMIT);
	}
}

static int64_t an_hour_later(const struct sys *sys)
{
	return sys_kernel.now_wall(sys) + INT64_C(3600000000000);
}

/* Nothing in the old info/ changed. */
TEST(another_info_is_noticed)
{
	struct sys sys = sys_kernel;

	sys.now_wall = an_hour_later;
	odb_rig_sys = &sys;
	odb_rig_make_objects();
	tmp_run("git init -q --bare a");
	tmp_put("a/objects/info/alternates", "../../r/objects\n");
	odb_rig_open("a");
	ck_assert_int_eq(odb_rig_type("refs/heads/x"), OBJECT_COMMIT);
	tmp_run("cd a/objects && mv info old && mkdir info");
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	ck_assert_int_eq(odb_rig_type("refs/heads/x"), OBJECT_ABSENT);
	odb_rig_sys = &sys_kernel;
	odb_rig_open("a");
}
