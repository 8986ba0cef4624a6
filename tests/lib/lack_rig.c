#include "tests/lib/lack_rig.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

void lack_join(void)
{
	static const uint8_t uuid[16] = "a group";
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.body = (const uint8_t *)"",
		.shared_lsn = 1 };

	journal_set_shared(w->store.journal, uuid);
	ck_assert_int_eq(journal_commit(w->store.journal, &row, 1, true), 0);
}

void lack_setup(void)
{
	wr_setup_apart();
	lack_join();
}

void lack_make_repo(const char *path)
{
	static const struct {
		const char *name, *text;
	} files[] = { { "HEAD", "ref: refs/heads/main\n" },
		{ "config", "[core]\n\tbare = true\n" } };
	char name[128];
	size_t i;

	snprintf(name, sizeof(name), "%s/refs/heads", path);
	memfs_mkdirs(w->fs, name);
	snprintf(name, sizeof(name), "%s/objects/pack", path);
	memfs_mkdirs(w->fs, name);
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, files[i].name);
		memfs_write(w->fs, name, files[i].text);
	}
}

void lack_end(void)
{
	memfs_crash(w->fs);
	world_crash(w);
}

size_t lack_nr(void)
{
	return deferred_lacking(w->store.deferred, NULL);
}

void lack_waits(enum store_finding finding, const char *ref)
{
	int i, k;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_msg(w->found[finding] >= 1, "%d", finding);
		ck_assert_uint_eq(w->found[STORE_FAILED], 1);
		ck_assert_uint_ge(w->deferred, 1);
		ck_assert_uint_eq(lack_nr(), 1);
		for (k = 0; k < 2; k++) {
			ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
			ck_assert_uint_eq(w->found[finding], 0);
			ck_assert_msg(strncmp(w->why, ref, strlen(ref)) == 0,
			    "%s", w->why);
			ck_assert_ptr_nonnull(
			    strstr(w->why, store_finding_name(finding)));
		}
		lack_end();
	}
}

void lack_starts(void)
{
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_str_eq(w->why, "");
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_uint_eq(lack_nr(), 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	wr_expect_locks("");
}
