/*
 * Proves, with all threads of a store, that refd does not trust objects that a
 * failed sync left in memory alone. A second push, a weaker mode and a restart
 * change nothing. Lost objects are refused and named until they are repaired,
 * and intact objects are served. Every object store is read once. After a new
 * mount, the file system counts as good.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* One try every 5 ms. The limit ends a hanging test; a sync may take long. */
#define TRIES 20000

static struct sys disk;
static _Atomic int syncs_fail;             /* number of syncs that fail */
static _Atomic int ids_fail;               /* to be written */
static _Atomic bool is_full;               /* the state directory's disk */
static _Atomic int nr_unmarked, nr_marked; /* told */
static _Atomic int nr_read;                /* objects, from the disk */
static _Atomic uint64_t lives;             /* that are over, of file systems */
static _Atomic bool lacks_memory;          /* for the text of a loss */
static char second[REFD_OID_MAX_HEX + 1];

char *strdup(const char *s)
{
	if (lacks_memory && strstr(s, "was lost when") != NULL)
		return NULL;
	return strndup(s, strlen(s));
}

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (syncs_fail > 0) {
		syncs_fail--;
		return -EIO;
	}
	return sys_kernel.syncfs(sys, fd);
}

static int disk_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	if (flags & O_DIRECT)
		nr_read++;
	if (ids_fail > 0 && strcmp(path, "id.new") == 0) {
		ids_fail--;
		return -ENOSPC;
	}
	return sys_kernel.openat(sys, dirfd, path, flags & ~O_DIRECT, mode);
}

/* Lines of <state>/syncs. Lines of a marker are shorter. */
static ssize_t disk_pwrite(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	if (is_full && len == 64)
		return -ENOSPC;
	return sys_kernel.pwrite(sys, fd, buf, len, offset);
}

static void noted(enum store_event event, const char *place, const char *why)
{
	if (event != STORE_UNMARKED || strstr(place, "/state/syncs") == NULL)
		return;
	if (why[0] == '\0')
		nr_marked++;
	else
		nr_unmarked++;
}

static int disk_fs_type(const struct sys *sys, int fd, uint64_t *type)
{
	(void)sys;
	(void)fd;
	*type = 0xef53;
	return 0;
}

static int disk_mount_id(const struct sys *sys, int fd, uint64_t *id)
{
	int r = sys_kernel.mount_id(sys, fd, id);

	*id += lives;
	return r;
}

static void setup(void)
{
	disk = sys_kernel;
	disk.syncfs = disk_syncfs;
	disk.openat = disk_openat;
	disk.pwrite = disk_pwrite;
	disk.fs_type = disk_fs_type;
	disk.mount_id = disk_mount_id;
	syncs_fail = ids_fail = nr_read = nr_unmarked = nr_marked = 0;
	is_full = false;
	lives = 0;
	sr_event = noted;
	sr_sys = &disk;
	sr_mode = REFD_DURABILITY_BATCH; /* records contain no objects */
	/* No checkpoint syncs before the test does. */
	sr_interval_ns = 3600 * INT64_C(1000000000);
	sr_setup();
}

static enum refd_status update_to(const char *name, const char *hex,
    enum refd_durability mode, char **text)
{
	enum refd_status status;
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_make_txn(&id, sr_repo, name, hex);
	txn->req.durability = mode;
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	status = txn->refused;
	if (status == REFD_OK && txn->updates[0].status == REFD_PENDING)
		sr_apply(txn);
	if (status == REFD_OK)
		status = txn->updates[0].status;
	if (text != NULL)
		*text = txn->updates[0].text != NULL ?
		    strdup(txn->updates[0].text) :
		    NULL;
	sr_done_with(txn);
	return status;
}

static enum refd_status update(const char *name, const char *hex)
{
	return update_to(name, hex, REFD_DURABILITY_DEFAULT, NULL);
}

/* While anybody uses the failed file system, every update there is refused. */
static void is_served(const char *name, const char *hex)
{
	int i;

	for (i = 0; i < TRIES && update(name, hex) != REFD_OK; i++)
		poll(NULL, 0, 5);
	ck_assert_int_lt(i, TRIES);
}

static void object_path(const char *hex, char path[128])
{
	snprintf(path, 128, "r.git/objects/%.2s/%s", hex, hex + 2);
}

/* The object as the disk has it: the content was in memory alone. */
static void lose(const char *hex)
{
	char path[128], command[512];

	object_path(hex, path);
	snprintf(command, sizeof(command),
	    "chmod u+w %s && : >%s && chmod u-w %s", path, path, path);
	tmp_run("%s", command);
}

/* Adds a commit whose sync fails. */
static void fail_to_sync(void)
{
	ck_assert_int_eq(update("refs/heads/a", sr_commit), REFD_OK);
	sr_make_commit("lost", second);
	syncs_fail = 1;
	ck_assert_int_eq(update("refs/heads/a", second), REFD_IO);
	ck_assert_int_eq(syncs_fail, 0);
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

TEST(what_was_not_lost_is_served)
{
	int i, read;

	fail_to_sync();
	is_served("refs/heads/a", second);
	read = nr_read;
	ck_assert_int_gt(read, 0);
	/* Every object is read once. */
	ck_assert_int_eq(update("refs/heads/b", second), REFD_OK);
	ck_assert_int_eq(nr_read, read);
	/* A second failure, reported to any thread, causes a second read. */
	sr_make_commit("more", second);
	syncs_fail = 1;
	for (i = 0; i < TRIES && nr_read == read; i++) {
		update("refs/heads/a", second);
		poll(NULL, 0, 5);
	}
	ck_assert_int_gt(nr_read, read);
	is_served("refs/heads/a", second);
}

static void is_refused(enum refd_durability mode)
{
	char path[128], *text = NULL;
	int i;

	object_path(second, path);
	for (i = 0; i < TRIES; i++) {
		ck_assert_int_eq(
		    update_to("refs/heads/b", sr_commit, mode, &text), REFD_IO);
		if (text != NULL && strstr(text, path) != NULL)
			break;
		free(text);
		text = NULL;
		poll(NULL, 0, 5);
	}
	ck_assert_ptr_nonnull(text);
	ck_assert_msg(strstr(text, "remove it") != NULL, "%s", text);
	free(text);
}

static void is_mended(void)
{
	char path[128], hex[REFD_OID_MAX_HEX + 1];

	object_path(second, path);
	tmp_run("rm %s", path);
	sr_make_commit("mended", hex);
	ck_assert_int_eq(update("refs/heads/a", hex), REFD_OK);
	ck_assert_int_eq(update("refs/heads/b", sr_commit), REFD_OK);
}

TEST(what_was_lost_is_named)
{
	struct store_stats stats;

	fail_to_sync();
	lose(second);
	is_refused(REFD_DURABILITY_DEFAULT);
	is_refused(REFD_DURABILITY_FSYNC);
	store_stats(sr_store, &stats);
	ck_assert_uint_eq(stats.suspect_fs, 1);
	is_mended();
}

TEST(what_was_lost_is_refused_without_memory)
{
	fail_to_sync();
	lose(second);
	is_refused(REFD_DURABILITY_DEFAULT);
	lacks_memory = true;
	ck_assert_int_eq(update("refs/heads/b", sr_commit), REFD_IO);
	lacks_memory = false;
	is_mended();
}

static int nr_opened(void)
{
	int before = nr_read;

	is_refused(REFD_DURABILITY_DEFAULT);
	return nr_read - before;
}

/* The store may be large. A lost object is not searched again. */
TEST(what_is_lost_is_not_read_again)
{
	char path[128];

	fail_to_sync();
	lose(second);
	is_refused(REFD_DURABILITY_DEFAULT);
	ck_assert_int_eq(nr_opened(), 0);
	/* Unless another program touched the object. */
	object_path(second, path);
	tmp_run("chmod u+w %s && chmod u-w %s", path, path);
	ck_assert_int_gt(nr_opened(), 0);
	ck_assert_int_eq(nr_opened(), 0);
	is_mended();
}

/* In mode periodic nothing waits for objects, and the next syncfs makes them
 * durable. First the barrier refuses, and then admission alone. */
TEST(no_mode_is_let_through)
{
	sr_close();
	sr_mode = REFD_DURABILITY_PERIODIC;
	sr_open();
	ck_assert_int_eq(update_to("refs/heads/a", sr_commit,
			     REFD_DURABILITY_JOURNAL, NULL),
	    REFD_OK);
	sr_make_commit("lost", second);
	syncs_fail = 1;
	ck_assert_int_eq(update_to("refs/heads/a", second,
			     REFD_DURABILITY_BATCH, NULL),
	    REFD_IO);
	lose(second);
	is_refused(REFD_DURABILITY_DEFAULT);
	is_refused(REFD_DURABILITY_DEFAULT);
	is_mended();
}

TEST(a_restart_believes_no_more)
{
	fail_to_sync();
	lose(second);
	sr_close();
	sr_open();
	is_refused(REFD_DURABILITY_DEFAULT);
	sr_close();
	sr_open();
	is_refused(REFD_DURABILITY_DEFAULT);
	is_mended();
}

static uint64_t id_ino(const char *repo)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s/refd/id", tmp_root, repo);
	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

static char *id_text(const char *repo)
{
	char path[512], buf[8192];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s/refd/id", tmp_root, repo);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	len = fread(buf, 1, sizeof(buf) - 1, file);
	fclose(file);
	buf[len] = '\0';
	return strdup(buf);
}

/* What a member of the group puts in the place of the id. */
static const char *const forged[] = {
	"uuid 00112233445566778899aabbccddeeff\n"
	"journal 00000000000000000000000000000000\npath /x\n",
	"garbage",
};

/* The id is as new as the failure: a power loss would separate both. The later
 * successful sync says nothing about the id file. */
TEST(what_a_new_repository_is_known_by, .times = 4)
{
	char *before, *after;
	uint64_t ino;
	int i;

	/* Everything before is durable: the second repository is new. */
	ck_assert_int_eq(update("refs/heads/a", sr_commit), REFD_OK);
	tmp_run("git clone -q --bare --shared r.git new.git");
	snprintf(sr_repo, sizeof(sr_repo), "%s/new.git", tmp_root);
	syncs_fail = 1;
	ck_assert_int_eq(update("refs/heads/b", sr_commit), REFD_IO);
	ck_assert_int_eq(syncs_fail, 0);
	ino = id_ino("new.git");
	before = id_text("new.git");
	if (_i == 1) {
		sr_close();
		sr_open();
	}
	/* No update is served before the new id is written. */
	ids_fail = 1;
	for (i = 0; i < TRIES && ids_fail > 0; i++) {
		ck_assert_int_ne(update("refs/heads/b", sr_commit), REFD_OK);
		poll(NULL, 0, 5);
	}
	ck_assert_int_eq(ids_fail, 0);
	/* The repository is open, and keeps the id of its opening. */
	if (_i >= 2)
		tmp_put("new.git/refd/id", forged[_i - 2]);
	is_served("refs/heads/b", sr_commit);
	ck_assert(id_ino("new.git") != ino);
	after = id_text("new.git");
	ck_assert_str_eq(after, before);
	free(before);
	free(after);
	/* The id file is replaced once, and never without suspect objects. */
	ino = id_ino("new.git");
	ck_assert_int_eq(update("refs/heads/c", sr_commit), REFD_OK);
	ck_assert(id_ino("new.git") == ino);
	sr_close();
	lives = 1000;
	sr_open();
	ck_assert_int_eq(update("refs/heads/d", sr_commit), REFD_OK);
	ck_assert(id_ino("new.git") == ino);
}

/* An unreadable list: any file system may have failed. */
TEST(a_start_that_knows_nothing, .times = 4)
{
	static const char *const odd[] = { "mkfifo syncs", "ln -s syncs syncs",
		"truncate -s 100M syncs", "head -c 100 /dev/zero >syncs" };
	int read;

	ck_assert_int_eq(update("refs/heads/a", sr_commit), REFD_OK);
	sr_make_commit("second", second);
	sr_close();
	tmp_run("cd state && rm syncs && %s", odd[_i]);
	sr_open();
	read = nr_read;
	is_served("refs/heads/a", second);
	ck_assert_int_gt(nr_read, read);
	sr_close();
	lose(second);
	sr_open();
	is_refused(REFD_DURABILITY_DEFAULT);
	sr_close();
	/* An administrator removes the file. */
	tmp_run("rm state/syncs");
	sr_open();
	read = nr_read;
	ck_assert_int_eq(update("refs/heads/b", sr_commit), REFD_OK);
	ck_assert_int_eq(nr_read, read);
}

/* The mark is on another disk than the repository. Work goes on when there is
 * room. */
TEST(no_room_for_a_mark)
{
	char *text = NULL;

	ck_assert_int_eq(update("refs/heads/a", sr_commit), REFD_OK);
	sr_make_commit("second", second);
	is_full = true;
	ck_assert_int_eq(update_to("refs/heads/a", second,
			     REFD_DURABILITY_DEFAULT, &text),
	    REFD_NOSPACE);
	ck_assert_ptr_nonnull(text);
	ck_assert_msg(strstr(text, "state directory") != NULL, "%s", text);
	free(text);
	ck_assert_int_eq(update("refs/heads/a", second), REFD_NOSPACE);
	ck_assert_int_eq(nr_unmarked, 1);
	ck_assert_int_eq(nr_marked, 0);
	is_full = false;
	ck_assert_int_eq(update("refs/heads/a", second), REFD_OK);
	ck_assert_int_eq(nr_marked, 1);
	ck_assert_int_eq(nr_unmarked, 1);
}

/* The file system left memory, so memory equals the disk. git must find broken
 * objects. */
TEST(mounted_anew)
{
	struct store_stats stats;
	int read = nr_read;

	fail_to_sync();
	sr_close();
	lives = 1000;
	sr_open();
	ck_assert_int_eq(update("refs/heads/a", second), REFD_OK);
	ck_assert_int_eq(nr_read, read);
	store_stats(sr_store, &stats);
	ck_assert_uint_eq(stats.suspect_fs, 1);
}

/* The objects belong to another repository, through an alternate. */
TEST(an_alternate_is_read_too)
{
	tmp_run("git clone -q --bare --shared r.git fork.git");
	fail_to_sync();
	lose(second);
	snprintf(sr_repo, sizeof(sr_repo), "%s/fork.git", tmp_root);
	is_refused(REFD_DURABILITY_DEFAULT);
	is_mended();
}
