/*
 * Proves that the daemon believes refd/id of a repository only if the daemon's
 * account wrote the file, and that a repository which refd-group made keeps its
 * id and gets the daemon's journal.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/repos/repo_internal.h"
#include "tests/lib/suite.h"
#include "tests/lib/world.h"

static struct world *w;

static void setup(void)
{
	w = world_new(memfs_new(), true);
	ck_assert_int_eq(world_start(w), 0);
}

static void teardown(void)
{
	world_free(w);
}

static struct repo *get(const char *git_dir)
{
	struct repo *repo = world_repo(w, git_dir);

	ck_assert_ptr_nonnull(repo);
	return repo;
}

/* A member of the repository's group wrote the id. */
START_TEST(id_that_another_account_wrote)
{
	static const char id[] = WORLD_REPO "/refd/id";
	uint8_t uuid[16];
	struct repo *repo;

	repo = get(WORLD_REPO);
	memcpy(uuid, repo->uuid, sizeof(uuid));
	repo_put(&w->store.repos, repo);
	/* The changed config makes refd open the repository again. */
	memfs_write(w->fs, WORLD_REPO "/config", "[core]\n\tbare = yes\n");
	repo = get(WORLD_REPO);
	ck_assert_mem_eq(repo->uuid, uuid, sizeof(uuid));
	repo_put(&w->store.repos, repo);
	memfs_set_owner(w->fs, id, 1001, 1001);
	memfs_write(w->fs, WORLD_REPO "/config", "[core]\n\tbare = true\n");
	repo = get(WORLD_REPO);
	ck_assert_mem_ne(repo->uuid, uuid, sizeof(uuid));
	repo_put(&w->store.repos, repo);
}
END_TEST

/* refd-group made the repository. Of a different account: a copy. */
START_TEST(id_without_a_journal)
{
	static const char id[] = WORLD_REPO "/refd/id";
	static const uint8_t uuid[16] = { 0xab, 0xcd };
	struct repo *repo;
	char *text;

	memfs_mkdirs(w->fs, WORLD_REPO "/refd");
	memfs_write(w->fs, id,
	    "uuid abcd0000000000000000000000000000\n"
	    "journal 00000000000000000000000000000000\npath /srv/x\n");
	if (_i == 1)
		memfs_set_owner(w->fs, id, 1001, 1001);
	repo = get(WORLD_REPO);
	ck_assert_int_eq(memcmp(repo->uuid, uuid, sizeof(uuid)) == 0, _i == 0);
	repo_put(&w->store.repos, repo);
	text = memfs_read(w->fs, id, NULL);
	ck_assert_ptr_null(strstr(text, "journal 0000000000000000"));
	ck_assert_ptr_nonnull(strstr(text, "path " WORLD_REPO "\n"));
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("repo_id");
	TCase *tc = tcase_create("repo_id");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, id_that_another_account_wrote);
	tcase_add_loop_test(tc, id_without_a_journal, 0, 2);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
