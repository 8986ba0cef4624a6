#include "tests/lib/packed_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct sys sys;
int64_t now_ns;
enum refd_object_format packed_format;
struct packed *packed;
unsigned nr_opens;

static int64_t fake_now(const struct sys *table)
{
	(void)table;
	return now_ns;
}

void packed_setup(void)
{
	tmp_setup();
	sys = sys_kernel;
	sys.now_mono = fake_now;
	now_ns = 1000;
	packed_format = REFD_FORMAT_SHA1;
	packed = packed_new(&sys, tmp_fd, &packed_format);
	ck_assert_ptr_nonnull(packed);
}

void packed_setup_sha256(void)
{
	packed_setup();
	packed_format = REFD_FORMAT_SHA256;
	setenv("GIT_DEFAULT_HASH", "sha256", 1);
}

void packed_teardown(void)
{
	packed_free(packed);
	tmp_teardown();
}

struct packed_snapshot *take(void)
{
	struct packed_snapshot *snap;

	ck_assert_int_eq(packed_snapshot(packed, &snap), 0);
	return snap;
}

const char *value(const char *name)
{
	static char hex[REFD_OID_MAX_HEX + 1];
	struct packed_snapshot *snap = take();
	struct refd_oid oid;

	hex[0] = '\0';
	if (packed_lookup(snap, name, &oid) > 0)
		refd_oid_hex(&oid, packed_format, hex);
	packed_snapshot_put(snap);
	return hex;
}

int begin_without(const char *const *names, size_t nr, mode_t mode,
    bool *changed)
{
	struct packed_edit edits[8] = { { .name = NULL } };
	size_t i;

	ck_assert_uint_le(nr, COUNT(edits));
	for (i = 0; i < nr; i++)
		edits[i].name = names[i];
	return packed_rewrite_begin(packed, edits, nr, mode, true, INT64_MAX,
	    changed);
}

void replace(const char *text)
{
	tmp_put("packed-refs.other", text);
	ck_assert_int_eq(
	    renameat(tmp_fd, "packed-refs.other", tmp_fd, "packed-refs"), 0);
}

void make_packed_repo(void)
{
	tmp_run("git init -q --bare repo && cd repo && "
		"c=$(git commit-tree -m m $(git hash-object -w -t tree "
		"/dev/null)) && for i in $(seq 200); do "
		"echo create refs/heads/b$i $c; "
		"echo create refs/tags/light/t$i $c; done | "
		"git update-ref --stdin && for i in 1 2 3 40 5; do "
		"git tag -a -m m note$i $c; done && "
		"git pack-refs --all --prune");
}

void use_repo(const char *name)
{
	int fd = openat(tmp_fd, name, O_RDONLY | O_DIRECTORY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(fd, tmp_fd), tmp_fd);
	close(fd);
}

int counting_openat(const struct sys *table, int dirfd, const char *path,
    int flags, mode_t mode)
{
	nr_opens++;
	return sys_kernel.openat(table, dirfd, path, flags, mode);
}
