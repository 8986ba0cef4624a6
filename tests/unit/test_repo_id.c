/*
 * Proves that the daemon believes refd/id of a repository only if nobody but
 * the daemon's account can have written the file, or if the journal has the
 * repository there, and that a repository which refd-group made keeps its id
 * and gets the daemon's journal.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_internal.h"
#include "tests/lib/suite.h"
#include "tests/lib/world.h"

#define ID    WORLD_REPO "/refd/id"
#define OTHER "/srv/other.git"
#define MOVED "/srv/moved.git"

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

/* Opens the repository once, and sets UUID. */
static void learn(const char *git_dir, uint8_t uuid[16])
{
	struct repo *repo = get(git_dir);

	memcpy(uuid, repo->uuid, 16);
	repo_put(&w->store.repos, repo);
}

/* The changed config makes refd open the repository again. */
static void touch_config(void)
{
	memfs_write(w->fs, WORLD_REPO "/config", "[core]\n\tbare = yes\n");
}

static void move(const char *from, const char *to)
{
	const struct sys *sys = memfs_other(w->fs);
	int r = SYS(sys, renameat, AT_FDCWD, from, AT_FDCWD, to);

	ck_assert_int_eq(r, 0);
}

static unsigned mode_of(const char *path)
{
	const struct sys *sys = memfs_other(w->fs);
	struct sys_stat st;

	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, path, &st), 0);
	return st.mode & 07777;
}

static void make_repository(const char *git_dir)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/refs/heads", git_dir);
	memfs_mkdirs(w->fs, path);
	snprintf(path, sizeof(path), "%s/objects/pack", git_dir);
	memfs_mkdirs(w->fs, path);
	snprintf(path, sizeof(path), "%s/HEAD", git_dir);
	memfs_write(w->fs, path, "ref: refs/heads/main\n");
}

CASE(.setup = setup, .teardown = teardown);

/* A member of the repository's group wrote the id. */
TEST(id_that_another_account_wrote)
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

/* After chmod -R g+w of a repository. Nobody can write to the file that
 * replaces the old one, not even with a descriptor. */
TEST(id_that_others_may_write, .times = 2)
{
	static const char old[] = "/srv/old-id";
	const struct sys *sys = memfs_other(w->fs);
	uint8_t uuid[16], now[16];
	char *id;
	int r;

	learn(WORLD_REPO, uuid);
	id = memfs_read(w->fs, ID, NULL);
	memfs_chmod(w->fs, ID, _i == 0 ? 0664 : 0646);
	r = SYS(sys, linkat, AT_FDCWD, ID, AT_FDCWD, old);
	ck_assert_int_eq(r, 0);
	touch_config();
	learn(WORLD_REPO, now);
	ck_assert_mem_eq(now, uuid, sizeof(uuid));
	ck_assert(memfs_holds(w->fs, ID, id));
	ck_assert_uint_eq(mode_of(ID), 0644);
	ck_assert_uint_ne(mode_of(old), 0644);
	free(id);
}

/* A ref that refd made belongs to the account of the daemon. A member of the
 * group writes the id of a repository that is away, and renames the ref. */
TEST(id_of_a_repository_that_is_away)
{
	uint8_t uuid[16], own[16], now[16];
	char hex[33], journal[33], id[256];

	make_repository(OTHER);
	learn(OTHER, uuid);
	learn(WORLD_REPO, own);
	move(OTHER, MOVED);
	repo_id_hex(uuid, hex);
	repo_id_hex(journal_uuid(w->store.journal), journal);
	snprintf(id, sizeof(id), "uuid %s\njournal %s\npath " WORLD_REPO "\n",
	    hex, journal);
	memfs_write(w->fs, ID, id);
	memfs_chmod(w->fs, ID, 0664);
	touch_config();
	learn(WORLD_REPO, now);
	ck_assert_mem_ne(now, uuid, sizeof(uuid));
	ck_assert_mem_ne(now, own, sizeof(own));
	learn(MOVED, now);
	ck_assert_mem_eq(now, uuid, sizeof(uuid));
}

/* The repository was moved after chmod -R g+w, so nothing confirms its id; or
 * somebody makes a double at its former path. */
TEST(id_that_others_may_write_of_another_directory, .times = 2)
{
	uint8_t uuid[16], now[16];
	char *id;

	learn(WORLD_REPO, uuid);
	move(WORLD_REPO, MOVED);
	if (_i == 0) {
		memfs_chmod(w->fs, MOVED "/refd/id", 0664);
		learn(MOVED, now);
		ck_assert_mem_ne(now, uuid, sizeof(uuid));
		return;
	}
	id = memfs_read(w->fs, MOVED "/refd/id", NULL);
	make_repository(WORLD_REPO);
	memfs_write(w->fs, ID, id);
	memfs_chmod(w->fs, ID, 0664);
	free(id);
	learn(WORLD_REPO, now);
	ck_assert_mem_ne(now, uuid, sizeof(uuid));
	learn(MOVED, now);
	ck_assert_mem_eq(now, uuid, sizeof(uuid));
}

/* Such an id is not taken over from the journal of another daemon. */
TEST(id_that_others_may_write_of_another_journal)
{
	static const char id[] =
	    "uuid abcd0000000000000000000000000000\n"
	    "journal abcd0000000000000000000000000000\npath " WORLD_REPO "\n";
	enum refd_status status;
	struct repo *repo;
	char *why;

	memfs_mkdirs(w->fs, WORLD_REPO "/refd");
	memfs_write(w->fs, ID, id);
	memfs_chmod(w->fs, ID, 0664);
	repo = repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
	ck_assert_ptr_null(repo);
	ck_assert_int_eq(status, REFD_NOREPO);
	ck_assert_ptr_nonnull(strstr(why, "belongs to the journal"));
	ck_assert(memfs_holds(w->fs, ID, id));
	free(why);
}

/* Somebody who may write at the former path forges a double there: in a file of
 * another account, or in a ref of refd. */
TEST(id_at_the_former_path_of_another_account, .times = 3)
{
	uint8_t uuid[16], now[16];
	char *id;

	learn(WORLD_REPO, uuid);
	move(WORLD_REPO, MOVED);
	id = memfs_read(w->fs, MOVED "/refd/id", NULL);
	memfs_mkdirs(w->fs, WORLD_REPO "/refd");
	memfs_write(w->fs, ID, id);
	free(id);
	memfs_chmod(w->fs, ID, _i == 2 ? 0664 : 0644);
	if (_i == 0)
		memfs_set_owner(w->fs, ID, 1001, 1001);
	learn(MOVED, now);
	/* The daemon's account wrote both: MOVED is the copy. */
	ck_assert_int_eq(memcmp(now, uuid, sizeof(uuid)) == 0, _i != 1);
}

/* After chmod -R g+w, the original is still known in its place. */
TEST(id_of_a_copy_of_what_others_may_write)
{
	uint8_t uuid[16], now[16];
	char *id;

	learn(WORLD_REPO, uuid);
	id = memfs_read(w->fs, ID, NULL);
	make_repository(OTHER);
	memfs_write(w->fs, OTHER "/refd/id", id);
	memfs_chmod(w->fs, OTHER "/refd/id", 0644);
	free(id);
	memfs_chmod(w->fs, ID, 0664);
	learn(OTHER, now);
	ck_assert_mem_ne(now, uuid, sizeof(uuid));
	touch_config();
	learn(WORLD_REPO, now);
	ck_assert_mem_eq(now, uuid, sizeof(uuid));
}

/* refd-group made the repository. Of a different account, or of somebody: a
 * copy. */
TEST(id_without_a_journal, .times = 3)
{
	static const char id[] = WORLD_REPO "/refd/id";
	static const uint8_t uuid[16] = { 0xab, 0xcd };
	struct repo *repo;
	char *text;

	memfs_mkdirs(w->fs, WORLD_REPO "/refd");
	memfs_write(w->fs, id,
	    "uuid abcd0000000000000000000000000000\n"
	    "journal 00000000000000000000000000000000\npath /srv/x\n");
	memfs_chmod(w->fs, id, _i == 2 ? 0664 : 0644);
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

/* It came by a join, and was never opened, so the journal has no inode. */
TEST(id_that_others_may_write_of_a_join)
{
	char path[] = WORLD_REPO;
	struct journal_repo known = { .uuid = { 0xab, 0xcd }, .path = path };
	uint8_t now[16];

	ck_assert_int_eq(journal_register_repo(w->store.journal, &known), 0);
	memfs_write(w->fs, ID,
	    "uuid abcd0000000000000000000000000000\n"
	    "journal 00000000000000000000000000000000\npath /srv/x\n");
	memfs_chmod(w->fs, ID, 0664);
	learn(WORLD_REPO, now);
	ck_assert_mem_eq(now, known.uuid, sizeof(now));
	ck_assert_uint_eq(mode_of(ID), 0644);
}

#define UUIDS                                                                  \
	"uuid abcd0000000000000000000000000000\n"                              \
	"journal 00000000000000000000000000000000\n"

#define TEXT(path) { UUIDS path, sizeof(UUIDS path) - 1 }

static const struct {
	const char *text;
	size_t len;
} no_ids[] = {
	TEXT("path x\n0x000000000001-0x000000000001-00000001.ref\n"),
	TEXT("path /srv/x\n\0\n"),
	TEXT("path /srv/x"),
	TEXT("path \n"),
	TEXT("path "),
};
#define NO_IDS (sizeof(no_ids) / sizeof(no_ids[0]))

/* A list of reftables, and the copy of a torn log, have lines of members in a
 * file that only the daemon may write. */
TEST(text_that_is_no_id, .times = (int)NO_IDS)
{
	enum refd_status status;
	struct repo *repo;
	char *why;

	memfs_write_bytes(w->fs, ID, no_ids[_i].text, no_ids[_i].len);
	memfs_chmod(w->fs, ID, 0644);
	repo = repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
	ck_assert_ptr_null(repo);
	ck_assert_int_eq(status, REFD_NOREPO);
	ck_assert_ptr_nonnull(strstr(why, "is not what refd wrote there"));
	free(why);
}
