/*
 * Proves the repairs of refd verify --repair. A broken ref gets the last value
 * of the journal, or the value of its log if the log is newer or the only
 * source. The object of the value always exists. Torn logs are cut, leftovers
 * are moved aside, and old contents are saved, all as the owner of the
 * repository. Well-formed values, foreign locks and work for recovery are not
 * touched. A daemon may serve the repository.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/journal/record.h"
#include "tests/lib/journal_help.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/verify_help.h"

#define DID(line, words)                                                       \
	ck_assert_msg(vh_did(line, words), "no '%s' (%s) in:%s", line, words,  \
	    vh_lines())
#define REPAIRS(n)                                                             \
	do {                                                                   \
		size_t found_ = vh_repair("r.git");                            \
		ck_assert_msg(found_ == (n), "%zu found:%s", found_,           \
		    vh_lines());                                               \
	} while (0)

static char older[41], third[41];

static void make_commit(const char *message, char hex[41])
{
	char *out;

	out = tmp_output("git -C r.git commit-tree -m %s %s^{tree}", message,
	    sr_commit);
	memcpy(hex, out, 40);
	free(out);
}

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

static void is_at(const char *ref, const char *hex)
{
	char *out = tmp_output("git -C r.git rev-parse --verify %s", ref);

	ck_assert_int_eq(strncmp(out, hex, 40), 0);
	free(out);
}

static void setup(void)
{
	sr_setup();
	vh_reset();
	/* The file outlives the store. */
	tmp_run("git config --global user.name a && "
		"git config --global user.email a@b && "
		"git -C r.git config core.logAllRefUpdates true");
	make_commit("y", older);
	make_commit("z", third);
	update("refs/heads/a", older);
	update("refs/heads/a", sr_commit);
}

static void teardown(void)
{
	sr_teardown();
}

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

/* Beside the daemon that owns the journal. */
TEST(from_the_journal)
{
	tmp_run("cd r.git && rm logs/refs/heads/a && : >refs/heads/a && "
		"chmod 640 refs/heads/a");
	REPAIRS(1);
	DID("ref-broken refs/heads/a repaired", sr_commit);
	DID("ref-broken refs/heads/a repaired", "the journal's record");
	is_at("refs/heads/a", sr_commit);
	ck_assert_uint_eq(tmp_mode("r.git/refs/heads/a"), 0640);
	tmp_run("test $(ls r.git/refd/saved | wc -l) = 1 && "
		"test ! -s r.git/refd/saved/*refs%%2Fheads%%2Fa && "
		"test ! -e r.git/refs/heads/a.lock");
	REPAIRS(0);
	/* The daemon continues with this value. */
	update("refs/heads/a", older);
	is_at("refs/heads/a", older);
}

/* Every ref gets its own value, although the journal is read once. */
TEST(several_at_once)
{
	update("refs/heads/b", third);
	update("refs/heads/c", older);
	update("refs/heads/b", older);
	update("refs/heads/c", third);
	update("refs/heads/sound", third);
	tmp_run("cd r.git && rm -r logs/refs && "
		"for i in a b c never; do : >refs/heads/$i; done");
	REPAIRS(4);
	is_at("refs/heads/a", sr_commit);
	is_at("refs/heads/b", older);
	is_at("refs/heads/c", third);
	is_at("refs/heads/sound", third);
	DID("ref-broken refs/heads/never", "neither journal nor log");
}

/* Only the log has the later value of git. */
TEST(from_the_log)
{
	tmp_run("cd r.git && git update-ref -m m refs/heads/a %s && "
		"printf '\\0' >refs/heads/a",
	    third);
	REPAIRS(1);
	DID("ref-broken refs/heads/a repaired", "its log");
	is_at("refs/heads/a", third);
	tmp_run("cd r.git && git branch g %s && : >refs/heads/g", third);
	REPAIRS(1);
	DID("ref-broken refs/heads/g repaired", third);
	/* Deleted by refd, made by git. */
	update("refs/heads/a", "0000000000000000000000000000000000000000");
	tmp_run("cd r.git && git branch a %s && : >refs/heads/a", older);
	REPAIRS(1);
	is_at("refs/heads/a", older);
}

/* git's lock needs no file of refd. */
TEST(where_refd_never_served)
{
	char *out;

	tmp_run("cp -r r.git o.git && rm -r o.git/refd && "
		": >o.git/refs/heads/a");
	ck_assert_uint_eq(vh_repair("o.git"), 1);
	DID("ref-broken refs/heads/a repaired", "its log");
	out = tmp_output("git -C o.git rev-parse --verify refs/heads/a");
	ck_assert_int_eq(strncmp(out, sr_commit, 40), 0);
	free(out);
	tmp_run("test -e o.git/refd/saved/*refs%%2Fheads%%2Fa && "
		"test ! -e o.git/refs/heads/a.lock");
}

/* The last value with an existing object; for a branch, a commit. */
TEST(objects_that_are_gone)
{
	tmp_run("cd r.git && rm objects/%.2s/%s && : >refs/heads/a", sr_commit,
	    sr_commit + 2);
	REPAIRS(1);
	DID("ref-broken refs/heads/a repaired", older);
	DID("ref-broken refs/heads/a repaired", "the journal's record");
	vh_look("r.git");
	ck_assert(vh_has("log-disagrees refs/heads/a", ""));
	tmp_run("cd r.git && rm objects/%.2s/%s && : >refs/heads/a", older,
	    older + 2);
	REPAIRS(1);
	DID("ref-broken refs/heads/a", "neither journal nor log");
	tmp_run("test ! -s r.git/refs/heads/a && "
		"test ! -e r.git/refs/heads/a.lock");
}

/* The journal of another daemon is not named, and may have the last update, as
 * after a power loss. Then its log has an older value. */
TEST(without_its_journal)
{
	tmp_run("cd r.git && sed -i '$d' logs/refs/heads/a && "
		"printf torn >>logs/refs/heads/a && : >refs/heads/a && "
		": >packed-refs.new");
	sr_close();
	tmp_run("mv state of-another");
	REPAIRS(4);
	DID("journal-unreadable ", "");
	DID("ref-broken refs/heads/a", "name it by --state");
	DID("log-torn refs/heads/a", "name it by --state");
	DID("packed-refs-new packed-refs.new", "name it by --state");
	sr_open();
	REPAIRS(4);
	DID("journal-other refd/id", "");
	DID("ref-broken refs/heads/a", "name it by --state");
	sr_close();
	tmp_run("rm -r state && mv of-another state && cp r.git/refd/id id");
	tmp_put("r.git/refd/id", "uuid\n");
	REPAIRS(4);
	DID("id-broken refd/id", "");
	DID("ref-broken refs/heads/a", "name it by --state");
	tmp_run("test ! -s r.git/refs/heads/a && test -e r.git/packed-refs.new "
		"&& test ! -e r.git/refd/saved && cp id r.git/refd/id");
	sr_open();
	REPAIRS(2);
	DID("ref-broken refs/heads/a repaired", "the journal's record");
	is_at("refs/heads/a", sr_commit);
}

/* No record of this journal awaits recovery in a repository that it does not
 * know. */
TEST(a_journal_that_does_not_know_it)
{
	tmp_run("cd r.git && sed -i '1s/ ...../ 00000/' refd/id && "
		": >refs/heads/a");
	REPAIRS(2);
	DID("journal-unknown refd/id", "");
	DID("ref-broken refs/heads/a repaired", "its log");
}

/* As after refd disable: any journal may take the repository. */
TEST(a_repository_of_no_journal)
{
	tmp_run("cd r.git && sed -i 's/^journal .*/journal "
		"00000000000000000000000000000000/' refd/id && "
		": >refs/heads/a");
	REPAIRS(1);
	DID("ref-broken refs/heads/a repaired", "the journal's record");
	is_at("refs/heads/a", sr_commit);
}

TEST(under_locks)
{
	tmp_run("cd r.git && : >refs/heads/a && : >refs/heads/a.lock");
	REPAIRS(1);
	DID("ref-broken refs/heads/a", "another has its lock");
	tmp_run("test ! -s r.git/refs/heads/a && "
		"test -e r.git/refs/heads/a.lock");
}

/* Another writer locks the ref as soon as the new value is in place. */
static int lock_and_fail(const struct sys *sys, int fd)
{
	struct sys_stat st, dir;

	if (SYS(sys, fstat, fd, &st) == 0 &&
	    SYS(sys, lstatat, tmp_fd, "r.git/refs/heads", &dir) == 0 &&
	    st.ino == dir.ino) {
		tmp_put("r.git/refs/heads/a.lock", "");
		return -EIO;
	}
	return sys_kernel.fsync(sys, fd);
}

TEST(a_lock_taken_after_the_value)
{
	struct sys failing = *vh_opt.sys;

	failing.fsync = lock_and_fail;
	vh_opt.sys = &failing;
	tmp_run(": >r.git/refs/heads/a");
	REPAIRS(1);
	DID("ref-broken refs/heads/a", "not repaired");
	is_at("refs/heads/a", sr_commit);
	ck_assert(tmp_exists("r.git/refs/heads/a.lock"));
}

/* A useless value may still be intended. */
TEST(well_formed_values)
{
	tmp_run("cd r.git && echo %040d >refs/heads/a && rm -r logs", 7);
	REPAIRS(1);
	ck_assert(vh_has("object-missing refs/heads/a", ""));
	tmp_run("grep -q 07 r.git/refs/heads/a && "
		"test ! -e r.git/refd/saved");
}

/* Everything that is reported as broken can be repaired. */
TEST(values_that_git_does_not_take)
{
	update("refs/heads/b", third);
	update("refs/heads/c", older);
	tmp_run("cd r.git && echo %040d >refs/heads/a && "
		"echo ref: refs/heads/x..y >refs/heads/b && "
		"git pack-refs --all --no-prune && rm refs/heads/c && "
		"sed -i 's,^[^ ]* refs/heads/c$,%040d refs/heads/c,' "
		"packed-refs && rm -r logs",
	    0, 0);
	REPAIRS(3);
	DID("ref-broken refs/heads/a repaired", "the old file is");
	DID("ref-broken refs/heads/b repaired", "the old file is");
	DID("ref-broken refs/heads/c repaired", "the journal's record");
	is_at("refs/heads/a", sr_commit);
	is_at("refs/heads/b", third);
	is_at("refs/heads/c", older);
	REPAIRS(0);
}

/* Somebody pointed HEAD to a by refd. */
static void record_head(void)
{
	struct record_member m = { .name = "HEAD",
		.worktree = "",
		.status = REFD_OK,
		.action = RECORD_WRITE,
		.target = "refs/heads/a" };
	struct record rec = { .committer = "a <a> 0 +0000",
		.message = "",
		.members = &m,
		.nr_members = 1,
		.nr_updates = 1 };
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.repo = 1,
		.final = true };
	struct journal *j;
	uint8_t *body;

	tmp_run("git -C r.git symbolic-ref HEAD refs/heads/a");
	sr_close();
	j = help_open(&sys_kernel, sr_state, NULL);
	body = record_encode(&rec, &row.len);
	row.body = body;
	refd_txid_make(&row.txid);
	ck_assert_int_eq(journal_commit(j, &row, 1, true), 0);
	free(body);
	help_close(j);
	sr_open();
}

TEST(a_missing_head)
{
	record_head();
	tmp_run("rm r.git/HEAD");
	REPAIRS(1);
	DID("ref-broken HEAD repaired", "restored to refs/heads/a");
	is_at("HEAD", sr_commit);
	tmp_run("test \"$(ls -A r.git/refd/saved)\" = ''");
	REPAIRS(0);
}

TEST(heads)
{
	tmp_run("cd r.git && : >HEAD");
	REPAIRS(1);
	DID("ref-broken HEAD", "echo ref: refs/heads/");
	/* The log has ids, which would detach HEAD. */
	tmp_run("cd r.git && cp logs/refs/heads/a logs/HEAD");
	REPAIRS(1);
	DID("ref-broken HEAD", "echo ref: refs/heads/");
	tmp_run("test ! -s r.git/HEAD && rm r.git/HEAD");
	REPAIRS(1);
	DID("ref-broken HEAD", "echo ref: refs/heads/");
	tmp_run("cd r.git && test ! -e HEAD && echo ref: refs/heads/a >HEAD");
	is_at("HEAD", sr_commit);
}

TEST(logs)
{
	tmp_run("cd r.git && cp logs/refs/heads/a ../log && "
		"printf 'torn\\0' >>logs/refs/heads/a && "
		"cp logs/refs/heads/a ../torn && "
		"mkdir logs/refs/heads/d && : >logs/refs/heads/d/e");
	REPAIRS(2);
	DID("log-torn refs/heads/a repaired", "5 bytes cut off");
	DID("log-empty refs/heads/d/e repaired", "removed");
	tmp_run("cmp log r.git/logs/refs/heads/a && "
		"cmp torn r.git/refd/saved/*logs* && "
		"test ! -e r.git/logs/refs/heads/d && "
		"test ! -e r.git/refs/heads/d && git -C r.git branch d a");
	REPAIRS(0);
}

/* Only this account may write the copy of a log if nobody else could write the
 * log. Otherwise the text of a member could pass for one of refd. */
TEST(a_log_that_others_may_write)
{
	tmp_run("cd r.git && printf torn >>logs/refs/heads/a && "
		"chmod 664 logs/refs/heads/a");
	REPAIRS(1);
	DID("log-torn refs/heads/a repaired", "4 bytes cut off");
	tmp_run("test $(stat -c %%a r.git/refd/saved/*logs*) = 664");
	if (!suite_is_root(__func__))
		return;
	tmp_run("cd r.git && printf torn >>logs/refs/heads/a && "
		"chmod 644 logs/refs/heads/a && chown 65534 logs/refs/heads/a");
	REPAIRS(1);
	DID("log-torn refs/heads/a", "not repaired: ");
	tmp_run("test $(ls r.git/refd/saved | wc -l) = 1");
}

/* The inode that cannot be synced. */
static uint64_t unsynced;

static int fsync_or_fail(const struct sys *sys, int fd)
{
	struct sys_stat st;

	if (SYS(sys, fstat, fd, &st) == 0 && st.ino == unsynced)
		return -EIO;
	return sys_kernel.fsync(sys, fd);
}

/* What --repair tells survives a power loss. */
TEST(logs_are_synced)
{
	struct sys failing = *vh_opt.sys;
	struct sys_stat st;

	failing.fsync = fsync_or_fail;
	vh_opt.sys = &failing;
	tmp_run("cd r.git && printf torn >>logs/refs/heads/a && "
		"mkdir logs/refs/heads/d && : >logs/refs/heads/d/e");
	ck_assert_int_eq(sys_kernel.lstatat(&sys_kernel, tmp_fd,
			     "r.git/logs/refs/heads/a", &st),
	    0);
	unsynced = st.ino;
	REPAIRS(2);
	DID("log-torn refs/heads/a", "not repaired: ");
	DID("log-empty refs/heads/d/e repaired", "removed");
	/* The directory of the log goes, too. */
	tmp_run("mkdir r.git/logs/refs/heads/d && "
		": >r.git/logs/refs/heads/d/e");
	ck_assert_int_eq(sys_kernel.lstatat(&sys_kernel, tmp_fd,
			     "r.git/logs/refs/heads", &st),
	    0);
	unsynced = st.ino;
	REPAIRS(1);
	DID("log-empty refs/heads/d/e", "not repaired: ");
}

/* Links are reported. Nothing behind them is read or changed. */
TEST(links_on_the_way)
{
	tmp_run("mv r.git/refs/heads away && ln -s ../../away "
		"r.git/refs/heads && : >away/a && mv r.git/logs/refs/heads l "
		"&& ln -s ../../../l r.git/logs/refs/heads && "
		"ln -s . away/ring && ln -s . away/ring2 && "
		"ls -A away >before");
	REPAIRS(2);
	ck_assert(vh_has("ref-broken refs/heads", ""));
	ck_assert(vh_has("log-unreadable refs/heads", ""));
	tmp_run("test -L r.git/refs/heads && mv away r.git/away && "
		"ln -sfn ../away r.git/refs/heads");
	REPAIRS(2);
	ck_assert(vh_has("ref-name refs/heads", "a symbolic link"));
	tmp_run("test -L r.git/refs/heads && mv r.git/away away");
	tmp_run("ls -A away | cmp before - && test ! -s away/a");
}

TEST(packed_new)
{
	tmp_put("r.git/packed-refs.new", "half a li");
	tmp_run("! git -C r.git pack-refs --all");
	REPAIRS(1);
	DID("packed-refs-new packed-refs.new repaired", "refd/saved/");
	tmp_run("git -C r.git pack-refs --all && "
		"grep -q half r.git/refd/saved/*new");
}

/* Nothing is repaired whose former content cannot be saved. */
TEST(a_full_directory)
{
	tmp_run(
	    "mkdir r.git/refd/saved && cd r.git/refd/saved && "
	    "seq 100 | xargs touch && cd ../.. && : >refs/heads/a && "
	    "printf torn >>logs/refs/heads/a && echo half >packed-refs.new");
	REPAIRS(3);
	DID("ref-broken refs/heads/a", "refd/saved is full");
	DID("log-torn refs/heads/a", "refd/saved is full");
	/* A move takes no room. */
	DID("packed-refs-new packed-refs.new repaired", "refd/saved/");
	tmp_run("test ! -s r.git/refs/heads/a && "
		"test $(ls r.git/refd/saved | wc -l) = 101 && "
		"rm r.git/refd/saved/*0");
	REPAIRS(2);
	is_at("refs/heads/a", sr_commit);
}

TEST(a_link_in_place_of_the_directory)
{
	tmp_run(
	    "mkdir prey && ln -s ../../prey r.git/refd/saved && "
	    "cd r.git && : >refs/heads/a && "
	    "printf torn >>logs/refs/heads/a && echo half >packed-refs.new");
	REPAIRS(3);
	DID("ref-broken refs/heads/a", "a symbolic link is in the way");
	DID("log-torn refs/heads/a", "a symbolic link is in the way");
	DID("packed-refs-new packed-refs.new", "a symbolic link is in the way");
	tmp_run("test ! -s r.git/refs/heads/a && test -z \"$(ls prey)\" && "
		"test -e r.git/packed-refs.new");
}
