/*
 * Proves that journal_open() refuses wrong files: no database, the database of
 * another program, a newer schema, the journal of another machine, a WAL
 * without a database, a damaged file. Every refusal has an errno and a
 * sentence, and changes no file. A journal that a crash left half made is made
 * again.
 */
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/journal_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* Refused with R and a sentence with WORD in it. No byte or name changes. */
static void assert_refused(int r, const char *word)
{
	char *before = tmp_output("ls; sha256sum -- journal.db*"), *after;
	char *why = NULL;

	ck_assert_int_eq(help_try_open(&sys_kernel, tmp_root, NULL, &why), r);
	ck_assert_msg(strstr(why, word) != NULL, "'%s' not in: %s", word, why);
	after = tmp_output("ls; sha256sum -- journal.db*");
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	free(why);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(what_is_no_database_is_refused)
{
	tmp_put("journal.db", "");
	assert_refused(-EBADMSG, "not a database");
	tmp_put("journal.db", "SQLite format 3");
	assert_refused(-EBADMSG, "not a database");
	tmp_run("head -c 8192 /dev/zero >journal.db");
	assert_refused(-EBADMSG, "not a database");
	tmp_run("rm journal.db && mkdir journal.db");
	assert_refused(-EISDIR, "journal.db");
}

TEST(somebody_elses_database_is_refused)
{
	help_ask("CREATE TABLE x(y)");
	assert_refused(-EBADMSG, "not a journal");
	help_ask("PRAGMA application_id=1");
	assert_refused(-EBADMSG, "not a journal");
	help_ask("PRAGMA journal_mode=WAL");
	assert_refused(-EBADMSG, "not a journal");
}

TEST(another_format_is_refused)
{
	help_close(help_open_here());
	help_ask("PRAGMA user_version=10");
	assert_refused(-EPROTO, "newer");
	help_ask("PRAGMA user_version=8");
	assert_refused(-EPROTO, "by an older refd (format 8, this one knows 9");
	help_ask("PRAGMA user_version=1");
	assert_refused(-EPROTO, "'refd recover --discard'");
	help_ask("PRAGMA user_version=0");
	assert_refused(-EBADMSG, "format number");
}

/* The id of this machine is in the file "machine-id" of tmp_root. */
static int openat_machine(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	char id[PATH_MAX + 16];

	snprintf(id, sizeof(id), "%s/machine-id", tmp_root);
	return sys_kernel.openat(sys, dirfd,
	    strcmp(path, "/etc/machine-id") == 0 ? id : path, flags, mode);
}

TEST(another_machines_journal_is_refused)
{
	struct sys sys = sys_kernel;
	char *why = NULL;

	sys.openat = openat_machine;
	tmp_put("machine-id", "0123456789abcdef0123456789abcdef\n");
	help_close(help_open(&sys, tmp_root, NULL));
	help_close(help_open(&sys, tmp_root, NULL));
	tmp_put("machine-id", "00000000000000000000000000000001\n");
	ck_assert_int_eq(help_try_open(&sys, tmp_root, NULL, &why), -EXDEV);
	ck_assert_ptr_nonnull(strstr(why, "another machine"));
	free(why);
	/* A missing id of the journal, or of the machine, is no reason to
	 * refuse. */
	tmp_put("machine-id", "");
	help_close(help_open(&sys, tmp_root, NULL));
	tmp_run("rm journal.db");
	help_close(help_open(&sys, tmp_root, NULL));
	tmp_put("machine-id", "00000000000000000000000000000001\n");
	help_close(help_open(&sys, tmp_root, NULL));
}

TEST(a_wal_without_its_database_is_refused)
{
	char *why = NULL;

	tmp_put("journal.db-wal", "frames");
	ck_assert_int_eq(help_try_open(&sys_kernel, tmp_root, NULL, &why),
	    -EBADMSG);
	ck_assert_ptr_nonnull(strstr(why, "WAL"));
	ck_assert(!tmp_exists("journal.db"));
	free(why);
	tmp_put("journal.db-wal", "");
	help_close(help_open_here());
}

TEST(a_damaged_database_is_refused)
{
	char *why = NULL;

	help_close(help_open_here());
	tmp_run("dd if=/dev/urandom of=journal.db bs=4096 seek=1"
		" count=1 conv=notrunc 2>&1");
	ck_assert_int_eq(help_try_open(&sys_kernel, tmp_root, NULL, &why),
	    -EBADMSG);
	free(why);
}

TEST(a_directory_that_is_not_there_is_told)
{
	char *why = NULL;

	ck_assert_int_eq(
	    help_try_open(&sys_kernel, "/nowhere/at/all", NULL, &why), -ENOENT);
	ck_assert_ptr_nonnull(strstr(why, "/nowhere/at/all"));
	free(why);
}

TEST(a_half_made_journal_is_made_again)
{
	tmp_put("journal.db.new", "half");
	tmp_put("journal.db.new-journal", "half");
	help_close(help_open_here());
	ck_assert(!tmp_exists("journal.db.new"));
	ck_assert(!tmp_exists("journal.db.new-journal"));
}

/* A user of the sqlite3 shell is in a write transaction. */
TEST(another_writer_is_told)
{
	struct journal *j = help_open_here();
	char path[4200];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/journal.db", tmp_root);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", 0, 0, 0), 0);
	ck_assert_int_eq(help_commit(j, 1, 1, 16), -EBUSY);
	ck_assert_int_eq(sqlite3_exec(db, "ROLLBACK", 0, 0, 0), 0);
	ck_assert_int_eq(help_commit(j, 1, 1, 16), 0);
	sqlite3_close(db);
	ck_assert_uint_eq(help_scan(j, NULL, 0), 1);
	help_close(j);
}
