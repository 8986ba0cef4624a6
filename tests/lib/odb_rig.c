#include "tests/lib/odb_rig.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/repos/repo_internal.h"
#include "tests/lib/tmp.h"

static const char *roots[2];
static struct repos repos;
struct odb *odb_rig;
enum refd_object_format odb_rig_format;
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
	odb_rig_format = REFD_FORMAT_SHA1;
}

void odb_rig_setup_sha256(void)
{
	odb_rig_setup();
	odb_rig_format = REFD_FORMAT_SHA256;
	setenv("GIT_DEFAULT_HASH", "sha256", 1);
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
	odb_rig = odb_new(odb_rig_sys, common_fd, &odb_rig_format, &rule);
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

	ck_assert_msg(refd_oid_parse(hex, odb_rig_format, &oid) == 0, "%s",
	    hex);
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

/* An id of BEGIN and then only FILL. */
static void check_absent(const char *begin, char fill)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct refd_oid oid;

	memset(hex, fill, REFD_OID_MAX_HEX);
	hex[REFD_OID_MAX_HEX] = '\0';
	memcpy(hex, begin, strlen(begin));
	oid = odb_rig_oid(hex);
	ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_ABSENT);
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
	check_absent("0123456789", '0');
	check_absent("", '0');
	check_absent("", 'f');
}
