/*
 * Proves that a row puts its repository in its place, and that a crash, a power
 * loss or a failing call at any step of it, and of the update that follows,
 * loses neither this repository, nor the repository that was there before, nor
 * an update that was applied. A symbolic link in the place stays, and the row
 * waits, also where the kernel would let the daemon move it (no Landlock). An
 * old copy that refd group join has moved away does not come back, and a
 * repository that a row has moved away with its directory does. A search takes
 * no directory for the repository because of an id that others may write.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/row_place.h"
#include "daemon/store/repos/repo_id.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/world.h"

#define UUID  "000102030405860708090a0b0c0d0e0f"
#define ASIDE "/srv/.refd-"
#define FAR   "/srv/far/away.git"

static const uint8_t uuid[16] = { 0, 1, 2, 3, 4, 5, 0x86, 7, 8, 9, 10, 11, 12,
	13, 14, 15 };

struct state {
	struct world *w;
	char former[sizeof(ASIDE) + 32]; /* where the former one goes */
	bool is_applied;
};

/* As refd-group makes it. */
static void make_repository(struct memfs *fs, const char *path)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/refs/heads", path);
	memfs_mkdirs(fs, name);
	snprintf(name, sizeof(name), "%s/objects/pack", path);
	memfs_mkdirs(fs, name);
	snprintf(name, sizeof(name), "%s/HEAD", path);
	memfs_write(fs, name, "ref: refs/heads/main\n");
	snprintf(name, sizeof(name), "%s/config", path);
	memfs_write(fs, name, "[core]\n\tbare = true\n");
	snprintf(name, sizeof(name), "%s/refd/id", path);
	memfs_write(fs, name,
	    "uuid " UUID "\njournal 00000000000000000000000000000000\n"
	    "path " WORLD_REPO "\n");
	memfs_chmod(fs, name, 0644);
}

static void join(struct world *w)
{
	static const uint8_t group[16] = "a group";
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.body = (const uint8_t *)"",
		.shared_lsn = 1 };

	journal_set_shared(w->store.journal, group);
	ck_assert_int_eq(journal_commit(w->store.journal, &row, 1, true), 0);
}

static int update(struct world *w, const char *git_dir, const char *spec)
{
	struct txn *txn = world_begin_in(w, git_dir, spec, false);
	enum refd_status status = REFD_IO;

	if (txn != NULL) {
		world_batch(w, &txn, 1);
		status = txn->updates[0].status;
	}
	world_done(w, txn);
	return status == REFD_OK ? 0 : -EIO;
}

/* WORLD_REPO is served, with the ref x. PATH is the repository of the row. */
static void *set_up(struct memfs *fs, void *path)
{
	struct state *s = calloc(1, sizeof(*s));
	struct repo *repo;

	ck_assert_ptr_nonnull(s);
	s->w = world_new(fs, true);
	make_repository(fs, path);
	ck_assert_int_eq(world_start(s->w), 0);
	join(s->w);
	ck_assert_int_eq(update(s->w, WORLD_REPO, "x=1"), 0);
	repo = world_repo(s->w, WORLD_REPO);
	strcpy(s->former, ASIDE);
	repo_id_hex(repo->uuid, s->former + strlen(ASIDE));
	repo_put(&s->w->store.repos, repo);
	/* The journal has a repository from elsewhere. */
	if (strcmp(path, FAR) == 0)
		ck_assert_int_eq(update(s->w, FAR, "z=3"), 0);
	ck_assert_int_eq(world_checkpoint(s->w), 0);
	return s;
}

static void tear_down(void *arg)
{
	struct state *s = arg;

	world_free(s->w);
	free(s);
}

static int put(struct world *w)
{
	const struct row_place place = { .repos = &w->store.repos,
		.searches = true };
	struct group_row row = { .path = { (const uint8_t *)"r.git", 5 } };
	char path[REFD_PATH_MAX], why[1024];

	memcpy(row.repo, uuid, sizeof(uuid));
	return row_place_put(&place, &row, path, why, sizeof(why));
}

static int put_and_update(void *arg)
{
	struct state *s = arg;
	int r = put(s->w);

	if (r == 0)
		r = update(s->w, WORLD_REPO, "y=2");
	s->is_applied = r == 0;
	return r;
}

/* A row that was not applied comes again, and no other row. */
static int start_again(void *arg)
{
	struct state *s = arg;
	int r;

	world_crash(s->w);
	r = world_start(s->w);
	return r < 0 || s->is_applied ? r : put_and_update(s);
}

static bool is_in_place(struct memfs *fs)
{
	char *id = memfs_read(fs, WORLD_REPO "/refd/id", NULL);
	bool is = id != NULL && strstr(id, UUID) != NULL;

	free(id);
	return is;
}

static bool is_former_aside(struct state *s)
{
	char name[sizeof(s->former) + sizeof("/refs/heads/x")];

	snprintf(name, sizeof(name), "%s/refs/heads/x", s->former);
	return memfs_exists(s->w->fs, name);
}

static const char *look(void *arg, const struct sweep_now *now)
{
	struct state *s = arg;

	if (now->when == SWEEP_ALIVE && (now->result != 0 || now->was_hit))
		return NULL;
	if (!is_former_aside(s))
		return "the former repository has lost its ref";
	if (!is_in_place(s->w->fs))
		return "the repository of the row is not in its place";
	return world_ref(s->w, "y") == '2' ? NULL : "the update is lost";
}

/* Where refd-group makes it; and elsewhere. */
static char *const from[] = { ASIDE UUID, FAR };

CASE(.seconds = 120);

/* The moves are durable before the journal has the new path. */
TEST(power_loss_behind_the_moves, .times = 2)
{
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };
	struct state *s = set_up(memfs_new(), from[_i]);

	ck_assert_int_eq(put(s->w), 0);
	memfs_power_loss(s->w->fs, &nothing);
	world_crash(s->w);
	ck_assert(is_in_place(s->w->fs));
	ck_assert(is_former_aside(s));
	tear_down(s);
}

TEST(link_in_the_place)
{
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, ASIDE UUID);

	/* Somebody exchanges the repository for a link to it. */
	ck_assert_int_eq(SYS(s->w->store.repos.sys, renameat, SYS_TRUSTED,
			     WORLD_REPO, SYS_TRUSTED, "/srv/elsewhere.git"),
	    0);
	memfs_symlink(fs, "/srv/elsewhere.git", WORLD_REPO);
	ck_assert_int_eq(put(s->w), -ELOOP);
	ck_assert(memfs_exists(fs, WORLD_REPO));
	ck_assert(!memfs_exists(fs, "/srv/.refd-way-0"));
	tear_down(s);
}

/* refd group join has replaced the copy, so its refs are those of a former
 * time. */
TEST(old_copy_out_of_the_way)
{
	static char old[] = "/srv/team/.refd-way-" UUID "-1";
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, old);

	ck_assert_int_eq(put(s->w), -ENOENT);
	ck_assert(memfs_exists(fs, old));
	ck_assert(!is_in_place(fs));
	tear_down(s);
}

/* A row of another repository has moved the directory around this one. */
TEST(repository_in_a_directory_out_of_the_way)
{
	static char moved[] = "/srv/.refd-way-17/x.git";
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, moved);

	ck_assert_int_eq(put(s->w), 0);
	ck_assert(is_in_place(fs));
	tear_down(s);
}

static unsigned mode_of(struct world *w, const char *path)
{
	struct sys_stat st;

	ck_assert_int_eq(SYS(w->sys, lstatat, SYS_TRUSTED, path, &st), 0);
	return st.mode & 07777;
}

/* The id is forged in a ref of refd, or it is right, after chmod -R g+w. The
 * directory is anywhere, or aside. */
TEST(an_id_that_others_may_write, .times = 2)
{
	char path[] = "/srv/b/forged.git", aside[] = ASIDE UUID;
	char *const place = _i == 0 ? path : aside;
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, place);
	char id[128];

	snprintf(id, sizeof(id), "%s/refd/id", place);
	memfs_chmod(fs, id, 0664);
	ck_assert_int_eq(put(s->w), -ENOENT);
	ck_assert(memfs_exists(fs, id));
	ck_assert_uint_eq(mode_of(s->w, id), 0664);
	memfs_chmod(fs, id, 0644);
	ck_assert_int_eq(put(s->w), 0);
	ck_assert(!memfs_exists(fs, id));
	tear_down(s);
}

/* After chmod -R g+w, both repositories keep their ids, although they move. */
TEST(ids_that_others_may_write_are_settled)
{
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, FAR);
	char id[sizeof(s->former) + sizeof("/refd/id")];
	struct repo *repo;

	memfs_chmod(fs, WORLD_REPO "/refd/id", 0664);
	memfs_chmod(fs, FAR "/refd/id", 0664);
	ck_assert_int_eq(put_and_update(s), 0);
	repo = world_repo(s->w, WORLD_REPO);
	ck_assert_mem_eq(repo->uuid, uuid, sizeof(uuid));
	repo_put(&s->w->store.repos, repo);
	ck_assert(is_former_aside(s));
	snprintf(id, sizeof(id), "%s/refd/id", s->former);
	ck_assert_uint_eq(mode_of(s->w, id), 0644);
	tear_down(s);
}

/* refd migrate holds the repository in the place, so it cannot be opened, and
 * its uuid can be forged. It does not get the name aside of this uuid. */
TEST(an_id_that_cannot_be_settled)
{
	struct memfs *fs = memfs_new();
	struct state *s = set_up(fs, ASIDE UUID);
	const struct sys *sys = memfs_other(fs);
	int fd;

	memfs_mkdirs(fs, WORLD_REPO "/refd/migrate");
	fd = SYS(sys, openat, AT_FDCWD, WORLD_REPO "/refd/migrate",
	    O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_eq(SYS(sys, flock_try, fd), 0);
	/* refd opens the repository again. */
	memfs_write(fs, WORLD_REPO "/config", "[core]\n\tbare = yes\n");
	memfs_chmod(fs, WORLD_REPO "/refd/id", 0664);
	ck_assert_int_eq(put(s->w), 0);
	ck_assert(is_in_place(fs));
	ck_assert(!is_former_aside(s));
	ck_assert(memfs_exists(fs, "/srv/.refd-way-0/refs/heads/x"));
	SYS(sys, close, fd);
	tear_down(s);
}

static struct sweep sweep_of(int i)
{
	return (struct sweep){ .name = "row_place",
		.arg = from[i],
		.setup = set_up,
		.run = put_and_update,
		.recover = start_again,
		.check = look,
		.done = tear_down,
		.choices = 3 };
}

TEST(failure_anywhere, .times = 2)
{
	static const int errs[] = { -EIO, -ENOSPC, 0 };
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_errno(&s, errs, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 5);
}

TEST(crash_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_crash(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 5);
}

TEST(power_loss_anywhere, .times = 2)
{
	struct sweep_report report = { 0 };
	struct sweep s = sweep_of(_i);

	ck_assert_msg(sweep_power_loss(&s, &report), "%s", report.text);
	ck_assert_uint_gt(report.points, 5);
}
