/*
 * Proves the findings of refd verify about a journal and a repository with refs
 * in reftables: older lists, logs that git keeps, a new stack, and tables
 * that cannot be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/reftable_help.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/verify_help.h"

#define HAS(line, words)                                                       \
	ck_assert_msg(vh_has(line, words), "no '%s' (%s) in:%s", line, words,  \
	    vh_lines())
#define FINDS(n)                                                               \
	do {                                                                   \
		size_t found_ = vh_look("r.git");                              \
		ck_assert_msg(found_ == (n), "%zu found:%s", found_,           \
		    vh_lines());                                               \
	} while (0)

static const char zeroes[] = "0000000000000000000000000000000000000000";
static char older[REFD_OID_MAX_HEX + 1];

static void update(const char *name, const char *hex)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, name, hex);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

/* Adds a table with INDEX. The store is closed. */
static void add_table(uint64_t index, const struct reftable_record *records,
    size_t nr)
{
	struct rh_bytes table =
	    rh_table(REFD_FORMAT_SHA1, index, index, records, nr);
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/reftable", sr_repo);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(fd, 0);
	rh_add(&sys_kernel, fd, &table, index, index, 1);
	close(fd);
	rh_free(&table);
}

/* A copy of the tables. A running store removes old ones. */
static void keep_tables(const char *name)
{
	sr_close();
	tmp_run("cp -r r.git/reftable %s", name);
	sr_open();
}

/* r.git has a, moved once, and b, made by refd in three tables. No git below
 * 2.45 can read the repository. */
static void setup(void)
{
	const struct reftable_record head =
	    rh_symref("HEAD", 1, "refs/heads/main");

	sr_setup_closed();
	vh_reset();
	sr_make_commit("y", older);
	tmp_run("cd r.git && git config core.repositoryFormatVersion 1 && "
		"git config core.logAllRefUpdates true && "
		"git config extensions.refStorage reftable && "
		"rm -r refs/heads && echo x >refs/heads && mkdir reftable && "
		"echo 'ref: refs/heads/.invalid' >HEAD");
	add_table(1, &head, 1);
	sr_open();
	update("refs/heads/a", older);
	keep_tables("1");
	update("refs/heads/a", sr_commit);
	keep_tables("2");
	update("refs/heads/b", sr_commit);
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 120);

TEST(tables_stand)
{
	FINDS(0);
	sr_close();
	FINDS(0);
	sr_open();
	update("refs/heads/b", zeroes);
	sr_close();
	FINDS(0);
}

/* Older lists, as after a power loss without a recovery. */
TEST(older_lists)
{
	sr_close();
	tmp_run("rm -r r.git/reftable && cp -r 2 r.git/reftable");
	FINDS(1);
	HAS("ref-gone refs/heads/b", sr_commit);
	tmp_run("rm -r r.git/reftable && cp -r 1 r.git/reftable");
	FINDS(2);
	HAS("journal-disagrees refs/heads/a", sr_commit);
	HAS("ref-gone refs/heads/b", sr_commit);
}

/* `git symbolic-ref -d` keeps the log, and adds a line. A merge then drops the
 * tombstone: the log ends with a deletion, so nothing was lost. */
TEST(a_deletion_that_keeps_the_log, .times = 2)
{
	const struct reftable_record line =
	    rh_log("refs/heads/b", 9, 1, _i == 0 ? 2 : 0, "m\n");

	sr_close();
	tmp_run("rm -r r.git/reftable && cp -r 2 r.git/reftable");
	add_table(9, &line, 1);
	FINDS(2);
	HAS("log-orphan refs/heads/b", "");
	HAS(_i == 0 ? "ref-lost refs/heads/b" : "ref-gone refs/heads/b",
	    sr_commit);
}

#define FDS 1024
static bool is_table[FDS];
static unsigned long reads_left;

static int note_table(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	int fd = sys_kernel.openat(sys, dirfd, path, flags, mode);

	if (fd >= 0 && fd < FDS)
		is_table[fd] = strstr(path, ".ref") != NULL;
	return fd;
}

static ssize_t read_some(const struct sys *sys, int fd, void *buf, size_t len,
    off_t at)
{
	if (fd < FDS && is_table[fd] && (reads_left == 0 || --reads_left == 0))
		return -EIO;
	return sys_kernel.pread(sys, fd, buf, len, at);
}

/* From the N-th read of a table on, all reads fail. What cannot be looked up is
 * not judged, and the failure is reported. */
TEST(tables_that_cannot_be_read, .times = 2)
{
	const struct reftable_record line =
	    rh_log("refs/heads/b", 9, 1, 2, "m\n");
	struct sys failing = *vh_opt.sys;
	unsigned long n = 0;
	size_t found;

	sr_close();
	if (_i == 1) {
		tmp_run("rm -r r.git/reftable && cp -r 2 r.git/reftable");
		add_table(9, &line, 1);
	}
	failing.openat = note_table;
	failing.pread = read_some;
	vh_opt.sys = &failing;
	do {
		reads_left = ++n;
		found = vh_look("r.git");
		ck_assert_msg(!vh_has("ref-gone refs/heads/b", "") &&
			!vh_has("journal-disagrees refs/heads/a", "") &&
			!vh_has("journal-disagrees refs/heads/b", ""),
		    "read %lu:%s", n, vh_lines());
		ck_assert_msg(reads_left > 0 ?
			found == (_i == 1 ? 2 : 0) :
			strstr(vh_lines(), "reftable-unreadable") != NULL,
		    "read %lu:%s", n, vh_lines());
	} while (reads_left == 0);
	ck_assert_uint_gt(n, 10);
}

/* A new stack counts from 1 again, for example after two migrations. */
TEST(a_new_stack_is_not_older)
{
	struct reftable_record records[3] = {
		rh_symref("HEAD", 1, "refs/heads/main"),
		rh_ref("refs/heads/a", 1, 0),
		rh_ref("refs/heads/b", 1, 0),
	};
	struct refd_oid oid;

	sr_close();
	ck_assert_int_eq(refd_oid_parse(sr_commit, REFD_FORMAT_SHA1, &oid), 0);
	records[1].ref.oid = oid;
	ck_assert_int_eq(refd_oid_parse(older, REFD_FORMAT_SHA1, &oid), 0);
	records[2].ref.oid = oid;
	tmp_run("rm -r r.git/reftable && mkdir r.git/reftable");
	add_table(1, records, 3);
	FINDS(0);
}

/* The list is there, and the tables of a and b are damaged. */
TEST(no_ref_can_be_read)
{
	sr_close();
	tmp_run("for f in r.git/reftable/*.ref; do : >$f; done");
	FINDS(1);
	ck_assert_ptr_nonnull(strstr(vh_lines(), "the file is empty"));
}

/* After a power loss the file may have no format. */
TEST(an_empty_configuration)
{
	sr_close();
	tmp_run(": >r.git/config");
	FINDS(0);
}
