/*
 * Proves that a watch reports only changes, waits if there are none, and is
 * woken only for matching changes. A position of a different journal is a gap.
 * A user without the right to read a repository gets nothing about it, by watch
 * or by log.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/journal/journal_internal.h"
#include "tests/lib/history_fixture.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct store_question *watch_from(uint64_t lsn)
{
	struct store_question *ask = fixture_ask(REFD_VERB_WATCH);

	ask->req.select.has_after = true;
	ask->req.select.after.lsn = lsn;
	return ask;
}

CASE(.setup = fixture_setup, .teardown = fixture_teardown, .seconds = 60);

TEST(a_watch_tells_changes_alone, .times = FIXTURE_WAYS)
{
	struct fixture_record r;

	fixture_some();
	fixture_begin(&r, fixture_a, "refs/heads/same"); /* 7 */
	r.members[0].new_oid = r.members[0].old_oid;
	fixture_commit(&r);
	fixture_open(_i);
	ck_assert_str_eq(fixture_told(watch_from(2), NULL),
	    " refs/heads/topic/x@3 refs/tags/v1@3 refs/heads/topic/y@4"
	    " refs/heads/main@5 refs/heads/main@6");
	ck_assert_str_eq(fixture_told(watch_from(7), NULL), "");
}

static unsigned nr_concerned;

static void concerned(void *arg, struct store_question *ask)
{
	struct history_watches *watches = arg;

	(void)ask;
	watches->list = NULL;
	nr_concerned++;
}

/* Indexes all new rows. Do they wake ASK? */
static bool wakes(struct store_question *ask)
{
	struct history_watches watches = { .list = ask,
		.concern = concerned,
		.arg = &watches };

	nr_concerned = 0;
	ck_assert_int_eq(
	    history_index(fixture.h, journal_last_lsn(fixture.j), &watches), 0);
	return nr_concerned > 0;
}

TEST(a_watch_waits_for_what_concerns_it, .times = FIXTURE_WAYS)
{
	struct store_question *ask = fixture_ask(REFD_VERB_WATCH);
	char path[4200];

	fixture_some();
	fixture_open(_i);
	snprintf(path, sizeof(path), "%s/a.git", fixture.root);
	ask->req.git_dir = path;
	ask->req.select.patterns[0] = "refs/heads/";
	ask->req.select.nr_patterns = 1;
	/* Only later changes, although earlier ones may be indexed later. */
	ck_assert(!history_answer(fixture.h, ask, 6));
	ck_assert_uint_eq(ask->req.select.after.lsn, 6);
	ck_assert(!wakes(ask));
	fixture_update(fixture_b, "refs/heads/main");
	ck_assert(!wakes(ask));
	fixture_update(fixture_a, "refs/tags/v3");
	ck_assert(!wakes(ask));
	ck_assert(!fixture_answer(ask));
	ck_assert_uint_eq(ask->req.select.after.lsn, 8);
	fixture_update(fixture_a, "refs/heads/main");
	ck_assert(wakes(ask));
	ck_assert(fixture_answer(ask));
	ck_assert_uint_eq(ask->answer.nr_changes, 1);
	ck_assert_uint_eq(ask->answer.next.lsn, 9);
	fixture_free(ask);
}

/* A repository without history. */
TEST(a_watch_waits_for_a_new_repository, .times = FIXTURE_WAYS)
{
	struct store_question *ask = fixture_ask(REFD_VERB_WATCH);
	char path[4200];

	fixture_some();
	snprintf(path, sizeof(path), "%s/new.git", fixture.root);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	fixture_open(_i);
	ask->req.git_dir = path;
	ck_assert(!fixture_answer(ask));
	fixture_update(fixture_repo("new.git", 0755), "refs/heads/main");
	ck_assert(wakes(ask));
	ck_assert(fixture_answer(ask));
	ck_assert_str_eq(ask->answer.changes[0].name, "refs/heads/main");
	fixture_free(ask);
}

/* Only published rows are reported. */
TEST(what_is_not_visible_is_not_told, .times = FIXTURE_WAYS)
{
	struct store_question *ask = watch_from(0);

	fixture_some();
	fixture_open(_i);
	fixture_index_upto(2);
	ck_assert(history_answer(fixture.h, ask, 2));
	ck_assert_uint_eq(ask->answer.nr_changes, 2);
	ck_assert_uint_eq(ask->answer.next.lsn, 2);
	ck_assert(!ask->answer.more);
	fixture_free(ask);
}

/* ---- gaps ---- */

static bool has_gap(struct store_question *ask, uint64_t *first)
{
	bool gap;

	ck_assert(fixture_answer(ask));
	gap = ask->answer.has_gap;
	*first =
	    ask->answer.nr_changes > 0 ? ask->answer.changes[0].record->lsn : 0;
	fixture_free(ask);
	return gap;
}

TEST(a_position_that_is_not_this_journals_is_a_gap, .times = FIXTURE_WAYS)
{
	struct store_question *ask;
	uint64_t first;

	fixture_some();
	fixture_open(_i);
	ck_assert(!has_gap(watch_from(2), &first));
	ck_assert(has_gap(watch_from(7), &first));
	ck_assert_uint_eq(first, 1);
	ask = watch_from(2);
	ask->req.select.has_journal = true;
	ck_assert(has_gap(ask, &first));
	ck_assert_uint_eq(first, 1);
	ask = watch_from(2);
	ask->req.select.has_journal = true;
	memcpy(ask->req.select.journal, journal_uuid(fixture.j), 16);
	ck_assert(!has_gap(ask, &first));
	ck_assert_uint_eq(first, 3);
}

/* If many watches wait, one turn cannot compare every name with every watch.
 * Watches without a comparison are woken, and become questions. */
TEST(a_turn_of_listening_ends)
{
	struct store_question *ask = fixture_ask(REFD_VERB_WATCH);
	struct history_watches watches = { .list = ask,
		.concern = concerned,
		.arg = &watches };
	uint64_t indexed;

	fixture_a = fixture_repo("a.git", 0755);
	fixture_updates(fixture_a, 400, "refs/heads/main", "refs/heads/main");
	fixture_open(0);
	ask->req.select.patterns[0] = "refs/heads/other";
	ask->req.select.nr_patterns = 1;
	ask->req.select.has_after = true;
	ask->req.select.after.lsn = 1;
	nr_concerned = 0;
	ck_assert_int_eq(history_index(fixture.h, 400, &watches), 0);
	ck_assert_uint_eq(history_indexed(fixture.h), 400);
	ck_assert_uint_eq(nr_concerned, 0);
	/* Some looks at the clock, two for every row. */
	fixture_updates(fixture_a, 400, "refs/heads/main", "refs/heads/main");
	fixture.mono_step_ns = 1000000;
	ck_assert_int_eq(history_index(fixture.h, 800, &watches), 1);
	indexed = history_indexed(fixture.h);
	ck_assert_uint_gt(indexed, 401);
	ck_assert_uint_lt(indexed, 420);
	/* The time is over before the first watch is compared. */
	fixture.mono_step_ns = 10000000;
	nr_concerned = 0;
	ck_assert_int_eq(history_index(fixture.h, 800, &watches), 1);
	ck_assert_uint_eq(history_indexed(fixture.h), indexed + 1);
	ck_assert_uint_eq(nr_concerned, 1);
	ck_assert_ptr_null(watches.list);
	fixture_free(ask);
}

/* ---- rights ---- */

static const char *told_to(uint32_t uid, uint32_t gid, bool watch)
{
	struct store_question *ask =
	    watch ? watch_from(0) : fixture_ask(REFD_VERB_LOG);

	ask->peer.uid = uid;
	ask->peer.gids = malloc(sizeof(gid));
	ask->peer.gids[0] = gid;
	ask->peer.nr_gids = 1;
	return fixture_told(ask, NULL);
}

TEST(a_tenant_sees_his_own_alone, .times = FIXTURE_WAYS)
{
	char path[4200];
	struct fixture_record r;

	if (!suite_is_root(__func__))
		return;
	ck_assert_int_eq(chmod(tmp_root, 0755), 0);
	fixture_some();
	fixture_begin(&r, 0, "refs/heads/nowhere"); /* 7: no repository */
	r.members[0].status = REFD_NOREPO;
	fixture_commit(&r);
	fixture_open(_i);
	ck_assert_str_eq(told_to(2000, 2000, true),
	    " refs/heads/main@1 refs/heads/topic/x@3 refs/tags/v1@3"
	    " refs/heads/main@5 refs/heads/main@6");
	snprintf(path, sizeof(path), "%s/b.git/refs", fixture.root);
	ck_assert_int_eq(chown(path, 2000, 3000), 0);
	ck_assert_ptr_nonnull(strstr(told_to(2000, 1, false), "topic/y@4"));
	/* The group has no right. */
	ck_assert_ptr_null(strstr(told_to(2001, 3000, false), "topic/y@4"));
	ck_assert_int_eq(chmod(path, 0750), 0);
	ck_assert_ptr_nonnull(strstr(told_to(2001, 3000, false), "topic/y@4"));
	ck_assert_ptr_null(strstr(told_to(2001, 3001, false), "topic/y@4"));
	/* The right to list names is not enough. */
	ck_assert_int_eq(chmod(path, 0744), 0);
	ck_assert_ptr_null(strstr(told_to(2001, 3001, false), "topic/y@4"));
	/* A closed directory further up closes everything below. */
	ck_assert_int_eq(chmod(path, 0755), 0);
	ck_assert_ptr_nonnull(strstr(told_to(2001, 3001, false), "topic/y@4"));
	ck_assert_int_eq(chmod(tmp_root, 0750), 0);
	ck_assert_ptr_null(strstr(told_to(2001, 3001, false), "topic/y@4"));
	ck_assert_int_eq(chmod(tmp_root, 0755), 0);
	/* Only root learns of records without a repository. */
	ck_assert_ptr_null(strstr(told_to(2000, 2000, false), "nowhere"));
	ck_assert_ptr_nonnull(
	    strstr(fixture_log(NULL, NULL, false, 0, NULL), "nowhere"));
}

/* The disk of a repository may hang during the check of rights. The journal
 * must not be held then: after a failed sync it could not be opened again. */
static unsigned looks, looks_with_journal;

static int look_at_lock(const struct sys *sys, int dir, const char *path,
    struct sys_stat *st)
{
	(void)sys;
	looks++;
	if (pthread_rwlock_trywrlock(&fixture.j->use_lock.lock) == 0)
		pthread_rwlock_unlock(&fixture.j->use_lock.lock);
	else
		looks_with_journal++;
	return SYS(&sys_kernel, lstatat, dir, path, st);
}

TEST(rights_do_not_hold_the_journal, .times = FIXTURE_WAYS)
{
	if (!suite_is_root(__func__))
		return;
	ck_assert_int_eq(chmod(tmp_root, 0755), 0);
	fixture_some();
	fixture_open(_i);
	looks = looks_with_journal = 0;
	fixture.sys.lstatat = look_at_lock;
	ck_assert_str_eq(told_to(2000, 2000, false),
	    " refs/heads/main@1 refs/heads/topic/x@3 refs/tags/v1@3"
	    " refs/tags/v2@3:stale refs/heads/main@5 refs/heads/main@6");
	ck_assert_uint_gt(looks, 0);
	ck_assert_uint_eq(looks_with_journal, 0);
}

/* A record may have megabytes. A question reads only the rows that it needs: a
 * read of the last row would find the damage. */
TEST(the_last_row_is_not_read_for_its_place, .times = FIXTURE_WAYS)
{
	struct store_question *ask;

	fixture_some();
	fixture_open(_i);
	fixture_sql("journal.db",
	    "UPDATE record SET body = zeroblob(10) WHERE lsn = 6");
	ask = fixture_ask(REFD_VERB_LOG);
	ask->req.select.has_before = true;
	ask->req.select.before.lsn = 3;
	ck_assert_str_eq(fixture_told(ask, NULL),
	    " refs/heads/main@1 refs/heads/main@2");
}

/* ---- identity of a repository ---- */

static void expect_told(const char *to_reader, const char *to_root)
{
	ck_assert_str_eq(told_to(2000, 2000, true), to_reader);
	ck_assert_str_eq(told_to(2000, 2000, false), to_reader);
	ck_assert_str_eq(fixture_log("a.git", NULL, false, 0, NULL), to_root);
}

/* Makes one record in a.git, which everybody may read. Returns the path. */
static const char *one_record(int way)
{
	static char path[4200];

	ck_assert_int_eq(chmod(tmp_root, 0755), 0);
	fixture_a = fixture_repo("a.git", 0755);
	fixture_update(fixture_a, "refs/heads/main");
	fixture_open(way);
	snprintf(path, sizeof(path), "%s/a.git", fixture.root);
	expect_told(" refs/heads/main@1", " refs/heads/main@1");
	return path;
}

/* The readers of the new repository learn nothing about the old one. */
TEST(another_repository_at_the_path_is_another, .times = FIXTURE_WAYS)
{
	const char *path;

	if (!suite_is_root(__func__))
		return;
	path = one_record(_i);
	tmp_run("mv %s %s.away && mkdir -m 755 %s %s/refs", path, path, path,
	    path);
	expect_told("", "");
}

/* The inode number of a deleted repository is free, and a new repository at the
 * same path may soon get this number. */
TEST(an_inode_number_does_not_say_which_it_is, .times = FIXTURE_WAYS)
{
	static const uint8_t other[16] = { 1, 2, 3 };
	const char *path;

	if (!suite_is_root(__func__))
		return;
	path = one_record(_i);
	fixture_write_id(path, other);
	expect_told("", "");
	tmp_run("rm -r %s/refd", path);
	expect_told("", "");
}

/* A user with write access to a repository may write in its refd/. */
TEST(an_id_counts_only_as_the_daemon_wrote_it, .times = FIXTURE_WAYS)
{
	const char *path;

	if (!suite_is_root(__func__))
		return;
	path = one_record(_i);
	tmp_run("mv %s/refd/id %s/id && ln -s ../id %s/refd/id", path, path,
	    path);
	expect_told("", "");
	tmp_run("mv %s/id %s/refd/id && mv %s/refd %s/x && ln -s x %s/refd",
	    path, path, path, path, path);
	expect_told("", "");
	tmp_run("rm %s/refd && mv %s/x %s/refd && chmod 0 %s/refd/id", path,
	    path, path, path);
	expect_told(" refs/heads/main@1", " refs/heads/main@1");
}

/* If others may write the id, it counts only where the journal has the
 * repository, since somebody may have forged the id in a ref of refd. */
TEST(an_open_id_counts_only_in_its_place, .times = FIXTURE_WAYS)
{
	const char *path;

	if (!suite_is_root(__func__))
		return;
	path = one_record(_i);
	tmp_run("chmod 664 %s/refd/id", path);
	expect_told(" refs/heads/main@1", " refs/heads/main@1");
	tmp_run("mv %s %s/moved.git", path, fixture.root);
	ck_assert_str_eq(fixture_log("moved.git", NULL, false, 0, NULL), "");
	tmp_run("chmod 644 %s/moved.git/refd/id", fixture.root);
	ck_assert_str_eq(fixture_log("moved.git", NULL, false, 0, NULL),
	    " refs/heads/main@1");
	/* A double at the former path has no history, and makes no copy. */
	tmp_run("mkdir -m 755 %s %s/refs %s/refd && "
		"cp %s/moved.git/refd/id %s/refd && chmod 664 %s/refd/id",
	    path, path, path, fixture.root, path, path);
	expect_told("", "");
	ck_assert_str_eq(fixture_log("moved.git", NULL, false, 0, NULL),
	    " refs/heads/main@1");
}

/* A start of the machine may only change the device number. */
TEST(it_is_known_by_its_id_whatever_its_device, .times = FIXTURE_WAYS)
{
	struct journal_repo known = { .id = 0 };
	struct stat st;

	if (!suite_is_root(__func__))
		return;
	known.path = (char *)one_record(_i);
	ck_assert_int_eq(stat(known.path, &st), 0);
	memcpy(known.uuid, &st.st_ino, sizeof(st.st_ino));
	known.dev = st.st_dev + 1;
	known.ino = st.st_ino;
	ck_assert_int_eq(journal_register_repo(fixture.j, &known), 0);
	ck_assert_uint_eq(known.id, fixture_a);
	fixture_open(_i);
	expect_told(" refs/heads/main@1", " refs/heads/main@1");
}

/* A copy has the id of the original until the first write through refd. */
TEST(a_copy_has_no_history_and_what_was_moved_has, .times = FIXTURE_WAYS)
{
	const char *path;

	if (!suite_is_root(__func__))
		return;
	path = one_record(_i);
	tmp_run("cp -a %s %s/copy.git", path, fixture.root);
	ck_assert_str_eq(fixture_log("copy.git", NULL, false, 0, NULL), "");
	tmp_run("rm -r %s", path);
	/* The copy may just as well be the moved original. */
	ck_assert_str_eq(fixture_log("copy.git", NULL, false, 0, NULL),
	    " refs/heads/main@1");
	/* At the old path, nothing tells who may read the history. */
	expect_told("", " refs/heads/main@1");
}

/* The owner of a directory on the way replaces a closed directory by a link to
 * its contents. */
TEST(a_link_leads_nowhere, .times = FIXTURE_WAYS)
{
	if (!suite_is_root(__func__))
		return;
	ck_assert_int_eq(chmod(tmp_root, 0755), 0);
	tmp_run("cd %s && mkdir -m 755 shared shared/closed", fixture.root);
	fixture_a = fixture_repo("shared/closed/a.git", 0755);
	fixture_update(fixture_a, "refs/heads/main");
	fixture_open(_i);
	ck_assert_str_eq(told_to(2000, 2000, true), " refs/heads/main@1");
	tmp_run("chmod 700 %s/shared/closed", fixture.root);
	ck_assert_str_eq(told_to(2000, 2000, true), "");
	tmp_run("cd %s/shared && mv closed away && mkdir -m 755 closed && "
		"ln -s ../away/a.git closed/a.git",
	    fixture.root);
	ck_assert_str_eq(told_to(2000, 2000, true), "");
}
