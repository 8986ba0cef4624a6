/*
 * Proves that a rewrite of packed-refs gives the same bytes as git, keeps the
 * replaced inode open for two seconds, and leaves the old file and no litter if
 * any call fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/packed_fixture.h"
#include "tests/lib/suite.h"

/* Compares with git's own deletion of NAMES in a copy of the repository. */
static void compare_with_git(const char *const *names, size_t nr)
{
	bool changed = false;
	size_t i;

	make_packed_repo();
	tmp_run("cp -a repo theirs");
	for (i = 0; i < nr; i++)
		tmp_run("echo 'delete %s' >>deletions", names[i]);
	tmp_run("git -C theirs update-ref --stdin <deletions && "
		"git -C theirs for-each-ref >want");
	use_repo("repo");
	ck_assert_int_eq(begin_without(names, nr, 0666, &changed), 0);
	ck_assert(changed);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	tmp_run("git -C repo for-each-ref | cmp - want && "
		"cmp repo/packed-refs theirs/packed-refs && "
		"git -C repo fsck 2>&1 && test ! -e repo/packed-refs.new");
	for (i = 0; i < nr; i++)
		ck_assert_str_eq(value(names[i]), "");
}

static struct suite_case sha256 = { .name = "sha256",
	.setup = packed_setup_sha256,
	.teardown = packed_teardown,
	.seconds = 60 };

/* Flushes of a busy disk take long. */
CASE(.name = "packed_rewrite", .setup = packed_setup,
    .teardown = packed_teardown, .seconds = 60);

TEST(a_rewrite_gives_gits_bytes, .also = &sha256)
{
	static const char *const names[] = {
		"refs/heads/b1",
		"refs/heads/b137",
		"refs/heads/b99",
		"refs/tags/light/t5",
		"refs/tags/note2",
		"refs/tags/note5",
	};

	compare_with_git(names, COUNT(names));
	ck_assert_str_ne(value("refs/tags/note3"), "");
}

TEST(all_refs_can_go)
{
	static const char *const names[] = { "refs/heads/x", "refs/heads/y" };
	bool changed;
	char *text;

	replace(HEADER A " refs/heads/x\n^" B "\n" A " refs/heads/y\n");
	ck_assert_int_eq(begin_without(names, 2, 0644, &changed), 0);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	text = tmp_get("packed-refs");
	ck_assert_str_eq(text, HEADER);
	free(text);
}

TEST(names_that_are_not_there_change_nothing)
{
	static const char *const names[] = { "refs/heads/no", "refs/heads/q" };
	bool changed = true;

	ck_assert_int_eq(begin_without(names, 2, 0644, &changed), 0);
	ck_assert(!changed);
	replace(A " refs/heads/p\n");
	changed = true;
	ck_assert_int_eq(begin_without(names, 2, 0644, &changed), 0);
	ck_assert(!changed);
	ck_assert_int_eq(begin_without(NULL, 0, 0644, &changed), 0);
	ck_assert(!changed);
	ck_assert(!tmp_exists("packed-refs.new"));
}

/* Unsorted lines, duplicates, no header: no header is added, and a name goes
 * with all its lines. */
TEST(an_odd_file_is_rewritten_sorted)
{
	static const char *const names[] = { "refs/m", "refs/m", "refs/q" };
	bool changed;
	char *text;

	replace(B " refs/z\n" A " refs/m\n^" B "\n" A " refs/b\n^" B "\n" A
		  " refs/m\n");
	ck_assert_int_eq(begin_without(names, 3, 0644, &changed), 0);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	text = tmp_get("packed-refs");
	ck_assert_str_eq(text, A " refs/b\n^" B "\n" B " refs/z\n");
	free(text);
}

static void check_header(const char *before, const char *after)
{
	static const char *const names[] = { "refs/heads/x" };
	char *was, *text;
	bool changed;

	ck_assert(asprintf(&was, "%s%s", before,
		      A " refs/heads/x\n" A " refs/heads/y\n") > 0);
	replace(was);
	free(was);
	ck_assert_int_eq(begin_without(names, 1, 0644, &changed), 0);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	text = tmp_get("packed-refs");
	ck_assert(asprintf(&was, "%s%s", after, A " refs/heads/y\n") > 0);
	ck_assert_str_eq(text, was);
	free(was);
	free(text);
}

/* git ignores the old header, because git peels every tag that it writes. */
TEST(the_header_is_gits)
{
	check_header("# pack-refs with: peeled fully-peeled sorted  mine \n",
	    HEADER);
	check_header("# pack-refs with: peeled fully-peeled\n", HEADER);
	check_header("# pack-refs with: peeled \n",
	    "# pack-refs with: peeled \n");
	check_header("# pack-refs with: fully-peeled-not \n",
	    "# pack-refs with: fully-peeled-not \n");
}

static const char *const just_x[] = { "refs/heads/x" };

static void begin_x(mode_t mode)
{
	bool changed = false;

	ck_assert_int_eq(begin_without(just_x, 1, mode, &changed), 0);
	ck_assert(changed);
}

TEST(the_mode_is_exact)
{
	umask(0077);
	replace(A " refs/heads/x\n");
	begin_x(0664);
	ck_assert_uint_eq(tmp_mode("packed-refs.new"), 0664);
	packed_rewrite_abandon(packed);
	begin_x(0600);
	ck_assert_uint_eq(tmp_mode("packed-refs.new"), 0600);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	ck_assert_uint_eq(tmp_mode("packed-refs"), 0600);
}

TEST(abandoning_leaves_the_file_as_it_was)
{
	replace(A " refs/heads/x\n" A " refs/heads/y\n");
	packed_rewrite_abandon(packed);
	begin_x(0644);
	ck_assert(tmp_exists("packed-refs.new"));
	ck_assert_str_eq(value("refs/heads/x"), A);
	packed_rewrite_abandon(packed);
	packed_rewrite_abandon(packed);
	ck_assert(!tmp_exists("packed-refs.new"));
	ck_assert_str_eq(value("refs/heads/x"), A);
	ck_assert_int_eq(packed_trim(packed), 1);
}

TEST(a_stale_new_file_goes)
{
	tmp_put("packed-refs.new", "left by a killed git");
	replace(A " refs/heads/x\n");
	begin_x(0644);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	ck_assert_str_eq(value("refs/heads/x"), "");
}

TEST(a_link_is_read_but_not_rewritten)
{
	bool changed;

	tmp_put("elsewhere", A " refs/heads/x\n");
	tmp_run("ln -s elsewhere packed-refs");
	ck_assert_str_eq(value("refs/heads/x"), A);
	ck_assert_int_eq(begin_without(just_x, 1, 0644, &changed), -ELOOP);
	ck_assert(!tmp_exists("packed-refs.new"));
	tmp_put("elsewhere2", B " refs/heads/x\n");
	tmp_run("mv elsewhere2 elsewhere");
	ck_assert_str_eq(value("refs/heads/x"), B);
}

TEST(a_link_that_leads_out_is_not_read)
{
	static const char *const targets[] = { "/etc/passwd", "../../elsewhere",
		"link", "linked/file", "./elsewhere" };
	struct packed_snapshot *snap;
	size_t i;

	tmp_put("elsewhere", A " refs/heads/x\n");
	tmp_put("dir/file", A " refs/heads/x\n");
	tmp_run("ln -s elsewhere link && ln -s dir linked");
	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		tmp_run("rm -f packed-refs");
		ck_assert_int_eq(symlinkat(targets[i], tmp_fd, "packed-refs"),
		    0);
		ck_assert_int_eq(packed_snapshot(packed, &snap), -ELOOP);
	}
	tmp_run("ln -sfn dir/file packed-refs");
	ck_assert_str_eq(value("refs/heads/x"), A);
}

static char order[16];

static int noted_write_all(const struct sys *t, int fd, const void *buf,
    size_t len)
{
	strcat(order, "w");
	return sys_kernel.write_all(t, fd, buf, len);
}

static int noted_fsync(const struct sys *t, int fd)
{
	strcat(order, "s");
	return sys_kernel.fsync(t, fd);
}

TEST(it_is_synced_whole_before_begin_returns)
{
	replace(A " refs/heads/x\n");
	sys.write_all = noted_write_all;
	sys.fsync = noted_fsync;
	begin_x(0644);
	ck_assert_str_eq(order, "ws");
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	ck_assert_str_eq(order, "ws");
}

static ino_t inode(const char *path)
{
	struct stat st;

	ck_assert_int_eq(fstatat(tmp_fd, path, &st, 0), 0);
	return st.st_ino;
}

TEST(a_replaced_file_is_kept_open_for_two_seconds)
{
	char name[32];
	ino_t old;
	int i;

	replace(A " refs/heads/x\n" A " refs/heads/y\n");
	old = inode("packed-refs");
	begin_x(0644);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	ck_assert_int_eq(packed_trim(packed), 1);
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "new%d", i);
		tmp_put(name, "");
		ck_assert(inode(name) != old);
	}
	now_ns += 1999999999;
	ck_assert_int_eq(packed_trim(packed), 1);
	now_ns += 1;
	ck_assert_int_eq(packed_trim(packed), 0);
	ck_assert_str_eq(value("refs/heads/y"), A);
	ck_assert_int_eq(packed_trim(packed), 1);
}

static bool is_foreign(void)
{
	value("refs/heads/y");
	return packed_take_foreign(packed);
}

TEST(files_of_others_are_known)
{
	static const char *const names[] = { "refs/heads/x" };
	bool changed;

	/* A young file may be of anybody. */
	replace(HEADER A " refs/heads/x\n" A " refs/heads/y\n");
	ck_assert(is_foreign());
	ck_assert(!is_foreign());
	ck_assert_int_eq(begin_without(names, 1, 0644, &changed), 0);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	ck_assert(!is_foreign());
	replace(HEADER A " refs/heads/y\n");
	ck_assert(is_foreign());
	/* Nobody has read the own file before it was replaced. */
	replace(HEADER A " refs/heads/x\n" A " refs/heads/y\n");
	ck_assert_int_eq(begin_without(names, 1, 0644, &changed), 0);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	is_foreign();
	ck_assert_int_eq(begin_without(names, 1, 0644, &changed), 0);
	ck_assert(!changed && !is_foreign());
	replace(HEADER A " refs/heads/y\n");
	ck_assert(is_foreign());
}

TEST(an_old_file_is_not_foreign)
{
	replace(HEADER A " refs/heads/y\n");
	tmp_run("touch -d '2 hours ago' packed-refs");
	ck_assert(!is_foreign());
}

TEST(a_snapshot_outlives_a_rewrite)
{
	struct packed_snapshot *old, *new_snap;

	replace(A " refs/heads/x\n" A " refs/heads/y\n");
	old = take();
	begin_x(0644);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	new_snap = take();
	ck_assert_int_eq(packed_lookup(new_snap, "refs/heads/x", NULL), 0);
	ck_assert_int_eq(packed_lookup(new_snap, "refs/heads/y", NULL), 1);
	ck_assert_int_eq(packed_lookup(old, "refs/heads/x", NULL), 1);
	packed_snapshot_put(old);
	packed_snapshot_put(new_snap);
}

/* ---- faults: the n-th call of the rewrite fails ---- */

static unsigned fault_at, nr_calls;

static bool fault(void)
{
	return nr_calls++ == fault_at;
}

#define FAULTY(name, parameters, ...)                                          \
	static int f_##name parameters                                         \
	{                                                                      \
		return fault() ? -EIO : sys_kernel.name(__VA_ARGS__);          \
	}

FAULTY(openat, (const struct sys *t, int d, const char *p, int f, mode_t m), t,
    d, p, f, m)
FAULTY(fstat, (const struct sys *t, int fd, struct sys_stat *st), t, fd, st)
FAULTY(lstatat,
    (const struct sys *t, int d, const char *p, struct sys_stat *st), t, d, p,
    st)
FAULTY(fchmod, (const struct sys *t, int fd, mode_t m), t, fd, m)
FAULTY(write_all, (const struct sys *t, int fd, const void *b, size_t n), t, fd,
    b, n)
FAULTY(fsync, (const struct sys *t, int fd), t, fd)
FAULTY(renameat,
    (const struct sys *t, int d, const char *p, int e, const char *q), t, d, p,
    e, q)

TEST(any_call_may_fail)
{
	const struct sys good = sys;
	bool changed, finished = false;
	int r, before, failures = 0;

	for (fault_at = 0; !finished; fault_at++) {
		replace(A " refs/heads/x\n" A " refs/heads/y\n");
		ck_assert_str_eq(value("refs/heads/x"), A);
		before = packed_trim(packed);
		sys.openat = f_openat;
		sys.fstat = f_fstat;
		sys.lstatat = f_lstatat;
		sys.fchmod = f_fchmod;
		sys.write_all = f_write_all;
		sys.fsync = f_fsync;
		sys.renameat = f_renameat;
		nr_calls = 0;
		r = begin_without(just_x, 1, 0644, &changed);
		if (r == 0)
			r = packed_rewrite_finish(packed);
		finished = nr_calls <= fault_at;
		sys = good;
		if (r < 0) {
			failures++;
			ck_assert_int_eq(r, -EIO);
			ck_assert_str_eq(value("refs/heads/x"), A);
			packed_rewrite_abandon(packed);
			ck_assert_int_eq(packed_trim(packed), before);
		} else {
			ck_assert_str_eq(value("refs/heads/x"), "");
		}
		ck_assert_str_eq(value("refs/heads/y"), A);
		ck_assert(!tmp_exists("packed-refs.new"));
	}
	ck_assert_int_ge(failures, 7);
}

static atomic_bool stop;

static void *reader(void *arg)
{
	struct packed_snapshot *snap;
	struct refd_oid oid;

	while (!atomic_load(&stop)) {
		if (packed_snapshot(packed, &snap) < 0 ||
		    packed_lookup(snap, "refs/heads/y", &oid) <= 0)
			return NULL;
		packed_snapshot_put(snap);
		packed_trim(packed);
	}
	return arg;
}

TEST(threads_share_it)
{
	pthread_t threads[3];
	void *result;
	size_t i;
	int n;

	replace(A " refs/heads/y\n");
	for (i = 0; i < COUNT(threads); i++)
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, reader, packed), 0);
	for (n = 0; n < 100; n++) {
		replace(A " refs/heads/x\n" A " refs/heads/y\n");
		begin_x(0644);
		ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	}
	atomic_store(&stop, true);
	for (i = 0; i < COUNT(threads); i++) {
		pthread_join(threads[i], &result);
		ck_assert_ptr_eq(result, packed);
	}
}

static int turns; /* changed by the owner of the turn */

static void *takes_turns(void *arg)
{
	int n;

	for (n = 0; n < 1000; n++) {
		if (!packed_turn_take(packed, 60000))
			return NULL;
		turns++;
		packed_turn_give(packed);
	}
	return arg;
}

/* Waiters wait for the owner of the turn, and all of them get a turn. */
TEST(turns_are_waited_for)
{
	pthread_t threads[4];
	void *result;
	size_t i;

	turns = 0;
	ck_assert(packed_turn_take(packed, 0));
	ck_assert(!packed_turn_take(packed, 0));
	ck_assert(!packed_turn_take(packed, 1));
	for (i = 0; i < COUNT(threads); i++)
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, takes_turns, packed), 0);
	packed_turn_give(packed);
	for (i = 0; i < COUNT(threads); i++) {
		pthread_join(threads[i], &result);
		ck_assert_ptr_eq(result, packed);
	}
	ck_assert_int_eq(turns, 4000);
	ck_assert(packed_turn_take(packed, 0));
}

/* A long turn delays every waiter once, and not again for later callers.
 * Otherwise these calls would take a hundred seconds. */
TEST(a_turn_that_hangs_is_waited_for_once)
{
	struct timespec began, now;
	int n;

	ck_assert(packed_turn_take(packed, 0));
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (n = 0; n < 1000; n++)
		ck_assert(!packed_turn_take(packed, 100));
	clock_gettime(CLOCK_MONOTONIC, &now);
	ck_assert_int_lt(now.tv_sec - began.tv_sec, 60);
	packed_turn_give(packed);
	ck_assert(packed_turn_take(packed, 100));
}
