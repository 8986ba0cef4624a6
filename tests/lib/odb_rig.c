#include "tests/lib/odb_rig.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/store/repos/repo_internal.h"
#include "tests/lib/tmp.h"

static const char *roots[2];
static struct repos repos;
struct odb *odb_rig;
const struct sys *odb_rig_sys;
static int common_fd;
uint32_t odb_rig_owner, odb_rig_group;

void odb_rig_setup(void)
{
	tmp_setup();
	tmp_mkdir("srv");
	roots[0] = tmp_root;
	repos_init(&repos, &sys_kernel, NULL, roots, 1, 1);
	odb_rig_owner = (uint32_t)geteuid();
	odb_rig_group = (uint32_t)getegid();
	odb_rig = NULL;
	odb_rig_sys = &sys_kernel;
	common_fd = -1;
}

static void shut(void)
{
	odb_free(odb_rig);
	if (common_fd >= 0)
		close(common_fd);
}

void odb_rig_teardown(void)
{
	shut();
	repos_done(&repos);
	tmp_teardown();
}

int odb_rig_refresh_of(const char *name)
{
	const struct object_rule rule = { repo_open_root, &repos,
		&odb_rig_owner, &odb_rig_group };
	char path[8192];

	shut();
	snprintf(path, sizeof(path), "%s/%s", tmp_root, name);
	common_fd = open(path, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(common_fd, 0);
	odb_rig = odb_new(odb_rig_sys, common_fd, &rule);
	ck_assert_ptr_nonnull(odb_rig);
	return odb_refresh(odb_rig);
}

void odb_rig_open(const char *name)
{
	ck_assert_int_eq(odb_rig_refresh_of(name), 0);
}

struct refd_oid odb_rig_oid(const char *hex)
{
	struct refd_oid oid;

	ck_assert_msg(refd_oid_parse(hex, &oid) == 0, "%s", hex);
	return oid;
}

struct refd_oid odb_rig_named(const char *revision)
{
	char *hex = tmp_output("git -C r rev-parse %s", revision);
	struct refd_oid oid = odb_rig_oid(hex);

	free(hex);
	return oid;
}

enum object_type odb_rig_type(const char *revision)
{
	struct refd_oid oid = odb_rig_named(revision);

	return odb_type(odb_rig, &oid);
}

void odb_rig_make_objects(void)
{
	tmp_run("git init -q --bare r && cd r && b=$(echo x | git hash-object "
		"-w --stdin) && git update-ref refs/heads/x $(git commit-tree "
		"-m m $(printf '100644 blob %%s\\tf\\n' $b | git mktree)) && "
		"git tag -a -m t t refs/heads/x");
}

void odb_rig_check_objects(void)
{
	ck_assert_int_eq(odb_rig_type("refs/heads/x"), OBJECT_COMMIT);
	ck_assert_int_eq(odb_rig_type("refs/heads/x^{tree}"), OBJECT_TREE);
	ck_assert_int_eq(odb_rig_type("refs/heads/x:f"), OBJECT_BLOB);
	ck_assert_int_eq(odb_rig_type("refs/tags/t"), OBJECT_TAG);
	ck_assert_int_eq(odb_rig_type(
			     "0123456789012345678901234567890123456789"),
	    OBJECT_ABSENT);
	ck_assert_int_eq(odb_rig_type(
			     "0000000000000000000000000000000000000000"),
	    OBJECT_ABSENT);
	ck_assert_int_eq(odb_rig_type(
			     "ffffffffffffffffffffffffffffffffffffffff"),
	    OBJECT_ABSENT);
}
