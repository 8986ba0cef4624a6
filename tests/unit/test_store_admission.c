/*
 * Proves how admission treats many transactions at once. A transaction of very
 * many objects delays no other repository. Later transactions of its own
 * repository wait and keep their order. The same holds for annotated tags,
 * whose contents are read. A tag is read once, however many refs name the tag
 * (finding F7). No turn relies on the look-ups of another turn. A used id is
 * known again after a start, although the start clears the filter. A repository
 * that is out of use is closed while another repository is in use. A request
 * that is refused makes nothing in a repository that no refd has served.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

/* Makes NR updates to TAGS. If TAGS is NULL, every update names a different
 * missing object. */
static struct txn *make_giant(const char *git_dir, size_t nr,
    const struct refd_oid *tags)
{
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.umask = 022,
		.git_dir = git_dir };
	struct refd_update *updates = calloc(nr, sizeof(*updates));
	char(*names)[40] = calloc(nr, sizeof(*names));
	struct txn *txn;
	size_t i;

	refd_txid_make(&req.txid);
	for (i = 0; i < nr; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/%s/g/%05zu",
		    tags != NULL ? "tags" : "heads", i);
		updates[i].action = REFD_UPDATE;
		updates[i].name = names[i];
		if (tags != NULL) {
			updates[i].new_oid = tags[i];
			continue;
		}
		memcpy(updates[i].new_oid.bytes, &i, sizeof(i));
		updates[i].new_oid.bytes[19] = 1;
	}
	req.updates = updates;
	req.nr_updates = nr;
	txn = txn_help_own(&req);
	free(updates);
	free(names);
	return txn;
}

static struct txn *make_small(const char *git_dir, const char *name)
{
	struct refd_txid id;

	refd_txid_make(&id);
	return sr_make_txn(&id, git_dir, name, sr_commit);
}

CASE(.setup = sr_setup, .teardown = sr_teardown, .seconds = 120);

TEST(a_giant_keeps_its_own_waiting_alone)
{
	enum { NR = 80000 };
	char other[4200];
	struct txn *txns[4];
	struct txn *back[4];
	size_t i;

	tmp_run("cp -r r.git other.git");
	snprintf(other, sizeof(other), "%s/other.git", tmp_root);
	/* Both repositories are open. */
	sr_done_with(sr_admit(&(struct refd_txid){ .bytes = { 1, 1 } }, sr_repo,
	    "refs/heads/x", sr_commit));
	sr_done_with(sr_admit(&(struct refd_txid){ .bytes = { 1, 2 } }, other,
	    "refs/heads/x", sr_commit));
	txns[0] = make_giant(sr_repo, NR, NULL);
	txns[1] = make_small(sr_repo, "refs/heads/one");
	txns[2] = make_small(sr_repo, "refs/heads/two");
	txns[3] = make_small(other, "refs/heads/other");
	for (i = 0; i < 4; i++)
		store_admit(sr_store, txns[i]);
	for (i = 0; i < 4; i++)
		back[i] = sr_wait_done().admitted;
	ck_assert_ptr_eq(back[0], txns[3]);
	for (i = 0; i < 3; i++)
		ck_assert_ptr_eq(back[i + 1], txns[i]);
	for (i = 0; i < NR; i++)
		ck_assert_int_eq(txns[0]->updates[i].status, REFD_NOOBJECT);
	for (i = 1; i < 4; i++)
		ck_assert_int_eq(txns[i]->updates[0].status, REFD_PENDING);
	for (i = 0; i < 4; i++)
		sr_done_with(txns[i]);
}

static size_t nr_preads;

static ssize_t count_pread(const struct sys *sys, int fd, void *buf, size_t len,
    off_t offset)
{
	nr_preads++;
	return sys_kernel.pread(sys, fd, buf, len, offset);
}

/* Admits NR refs. Every ref names one of NR_TAGS new tags. */
static void admit_tags(size_t nr, size_t nr_tags)
{
	struct refd_oid *tags = calloc(nr, sizeof(*tags));
	struct txn *giant, *small;
	char other[4200], *out, *rest;
	size_t i;

	tmp_run("cp -r r.git other.git");
	snprintf(other, sizeof(other), "%s/other.git", tmp_root);
	rest = out =
	    tmp_output("cd r.git && for i in $(seq %zu); do printf "
		       "'object %s\ntype commit\ntag %%s\ntagger a <a> "
		       "1 +0000\n\nm\n' $i | git hash-object -t tag "
		       "-w --stdin; done",
		nr_tags, sr_commit);
	for (i = 0; i < nr_tags; i++)
		ck_assert_int_eq(refd_oid_parse(strsep(&rest, "\n"),
				     REFD_FORMAT_SHA1, &tags[i]),
		    0);
	free(out);
	for (; i < nr; i++)
		tags[i] = tags[i % nr_tags];
	sr_done_with(sr_admit(&(struct refd_txid){ .bytes = { 1, 1 } }, sr_repo,
	    "refs/heads/x", sr_commit));
	sr_done_with(sr_admit(&(struct refd_txid){ .bytes = { 1, 2 } }, other,
	    "refs/heads/x", sr_commit));
	giant = make_giant(sr_repo, nr, tags);
	small = make_small(other, "refs/heads/other");
	nr_preads = 0;
	store_admit(sr_store, giant);
	if (nr_tags > 1) {
		store_admit(sr_store, small);
		ck_assert_ptr_eq(sr_wait_done().admitted, small);
		sr_done_with(small);
	} else {
		txn_free(small);
	}
	ck_assert_ptr_eq(sr_wait_done().admitted, giant);
	for (i = 0; i < nr; i++)
		ck_assert_ptr_nonnull(giant->updates[i].peeled);
	sr_done_with(giant);
	free(tags);
}

/* The content of every tag is read. */
TEST(annotated_tags_keep_their_own_waiting_alone)
{
	admit_tags(400, 400);
}

/* F7: an object is read once, however many refs name the object. */
TEST(a_tag_is_read_once)
{
	struct sys sys = sys_kernel;

	sr_close();
	sys.pread = count_pread;
	sr_sys = &sys;
	sr_open();
	admit_tags(1000, 1);
	sr_close();
	sr_sys = &sys_kernel;
	ck_assert_uint_gt(nr_preads, 0);
	ck_assert_uint_lt(nr_preads, 50);
}

/* Every thread serves both repositories sooner or later, and only one of the
 * repositories has the object. */
TEST(each_turn_looks_for_itself)
{
	char hex[REFD_OID_MAX_HEX + 1], other[4200];
	struct refd_txid id;
	struct txn *txn;
	int i;

	tmp_run("cp -r r.git other.git");
	snprintf(other, sizeof(other), "%s/other.git", tmp_root);
	sr_make_commit("alone", hex);
	for (i = 0; i < 100; i++) {
		refd_txid_make(&id);
		txn = sr_admit(&id, i % 2 == 0 ? sr_repo : other,
		    "refs/heads/x", hex);
		ck_assert_int_eq(txn->updates[0].status,
		    i % 2 == 0 ? REFD_PENDING : REFD_NOOBJECT);
		sr_done_with(txn);
	}
}

TEST(an_id_is_known_after_a_start)
{
	struct refd_txid old, id;
	struct txn *txn;

	refd_txid_make(&old);
	refd_txid_make(&id);
	old.bytes[5]--;
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	sr_apply(txn);
	sr_done_with(txn);
	sr_close();
	sr_open();
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	sr_done_with_replayed(txn);
	/* An older id that is new to the journal. */
	txn = sr_admit(&old, sr_repo, "refs/heads/b", sr_commit);
	ck_assert(!txn->replayed);
	sr_apply(txn);
	sr_done_with(txn);
	txn = sr_admit(&old, sr_repo, "refs/heads/b", sr_commit);
	ck_assert(txn->replayed);
	sr_done_with(txn);
}

/* An id of the future is looked up, and refused unless the journal knows the
 * id. The id stays out of the filter of recent ids, so the next id is looked
 * up, too. */
TEST(a_new_id_of_the_future_is_refused)
{
	struct refd_txid id;
	struct txn *txn;
	int i;

	refd_txid_make(&id);
	for (i = 0; i < 2; i++) {
		txn = sr_make_txn(&id, sr_repo, "refs/heads/a", sr_commit);
		txn->is_from_future = true;
		store_admit(sr_store, txn);
		ck_assert_ptr_eq(sr_wait_done().admitted, txn);
		ck_assert_int_eq(txn->refused, REFD_BADREQUEST);
		ck_assert_ptr_nonnull(strstr(txn->why, "check the clock"));
		sr_done_with(txn);
	}
	/* Time has passed. */
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_OK);
	sr_apply(txn);
	sr_done_with(txn);
	/* The clock is set back. */
	txn = sr_make_txn(&id, sr_repo, "refs/heads/a", sr_commit);
	txn->is_from_future = true;
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	sr_done_with_replayed(txn);
}

static _Atomic int64_t ahead_ns;

static int64_t now_ahead(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + ahead_ns;
}

static uint64_t open_repos(void)
{
	struct store_stats stats;

	store_stats(sr_store, &stats);
	return stats.open_repos;
}

/* Two minutes pass, and a second repository is in use in every second. */
TEST(a_repository_closes_while_another_is_in_use)
{
	static struct sys ahead;
	struct refd_txid id;
	char other[4200];
	int i;

	sr_close();
	ahead = sys_kernel;
	ahead.now_mono = now_ahead;
	sr_sys = &ahead;
	sr_open();
	tmp_run("cp -r r.git other.git");
	snprintf(other, sizeof(other), "%s/other.git", tmp_root);
	refd_txid_make(&id);
	sr_done_with(sr_admit(&id, other, "refs/heads/x", sr_commit));
	ck_assert_uint_eq(open_repos(), 1);
	ahead_ns = INT64_C(120) * 1000000000;
	for (i = 0; i < 10000 && (i == 0 || open_repos() > 1); i++) {
		/* A worker may still be putting the other repository back. */
		ahead_ns += 1000000000;
		refd_txid_make(&id);
		sr_done_with(sr_admit(&id, sr_repo, "refs/heads/x", sr_commit));
	}
	ck_assert_uint_eq(open_repos(), 1);
	sr_sys = &sys_kernel;
}

/* For a repository that no refd has served. */
static struct txn *stranger;
static int nr_looks; /* at refs/ of this repository */

/* The client of the stranger goes away while its rights are looked at, and the
 * thread of the scheduler has time to free the transaction. */
static int lstatat_and_go(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	if (stranger != NULL && strcmp(path, "refs") == 0 && ++nr_looks == 3) {
		store_give_up(sr_store, stranger);
		usleep(100000);
	}
	return sys_kernel.lstatat(sys, dirfd, path, st);
}

/* A refused request makes nothing. Nobody frees a transaction whose rights are
 * looked at (with the address sanitizer). */
TEST(a_stranger_who_goes_away)
{
	struct sys sys = sys_kernel;
	char other[4200];
	struct txn *txn;

	sr_close();
	sys.lstatat = lstatat_and_go;
	sr_sys = &sys;
	sr_open();
	tmp_run("cp -r r.git other.git && rm -rf other.git/refd");
	snprintf(other, sizeof(other), "%s/other.git", tmp_root);
	txn = make_small(other, "refs/heads/one");
	txn->peer.uid = 64001;
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_ne(txn->refused, REFD_OK);
	sr_done_with(txn);
	stranger = txn = make_small(other, "refs/heads/one");
	txn->peer.uid = 64001;
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	sr_done_with(txn);
	tmp_run("test ! -e other.git/refd");
	sr_close();
	ck_assert_int_ge(nr_looks, 3);
	sr_sys = &sys_kernel;
	sr_open();
}
