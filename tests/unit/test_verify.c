/*
 * Proves the findings of refd verify in a repository made by git: files that
 * stop git, leftovers, and contradictions. A sound repository has no findings.
 * A finding that is gone at a second look does not count.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/verify_help.h"

#define MINUTE_NS (60 * INT64_C(1000000000))

#define HAS(line, words)                                                       \
	ck_assert_msg(vh_has(line, words), "no '%s' (%s) in:%s", line, words,  \
	    vh_lines())
#define FINDS(n)                                                               \
	do {                                                                   \
		size_t found_ = vh_look("r");                                  \
		ck_assert_msg(found_ == (n), "%zu found:%s", found_,           \
		    vh_lines());                                               \
	} while (0)

/* r has two commits, main (loose), a (packed), t (a packed tag of a tag), and
 * an empty log without a ref. */
static void setup(void)
{
	tmp_setup();
	vh_reset();
	tmp_run("git config --global user.name a &&"
		"git config --global user.email a@b &&"
		"git -c init.defaultBranch=main init -q r && cd r &&"
		"git commit -q --allow-empty -m 1 &&"
		"git tag -a -m x t0 && git tag -a -m x t t0 &&"
		"git branch a && git pack-refs --all &&"
		"git commit -q --allow-empty -m 2");
}

static void teardown(void)
{
	tmp_teardown();
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(nothing)
{
	FINDS(0);
	tmp_run("cd r && git worktree add -q ../w a && git -C ../w commit -q "
		"--allow-empty -m 3 && git -C ../w checkout -q --detach &&"
		"git symbolic-ref refs/remotes/o/HEAD refs/remotes/o/main &&"
		"git stash list && git gc -q && git pack-refs --all &&"
		"git branch b/c && git branch -d b/c");
	FINDS(0);
	/* By every name of the repository. */
	ck_assert_uint_eq(vh_look("r/.git"), 0);
	ck_assert_uint_eq(vh_look("r/.git/worktrees/w"), 0);
	ck_assert_ptr_null(vh_why());
	tmp_run("git init -q --bare bare");
	ck_assert_uint_eq(vh_look("bare"), 0);
}

TEST(not_to_be_looked_at)
{
	tmp_mkdir("d");
	vh_look("d");
	ck_assert_ptr_nonnull(vh_why());
	vh_look("absent");
	ck_assert_ptr_nonnull(strstr(vh_why(), "absent"));
	tmp_run("git init -q s && git -C s config "
		"core.repositoryformatversion 1 && git -C s config "
		"extensions.unheardOf 1");
	vh_look("s");
	ck_assert_ptr_nonnull(strstr(vh_why(), "'unheardof'"));
}

TEST(broken_refs)
{
	tmp_put("r/.git/refs/heads/empty", "");
	tmp_put_bytes("r/.git/refs/heads/nuls", "\0\0\0", 3);
	tmp_put("r/.git/refs/heads/words", "what is this\n");
	tmp_put("r/.git/refs/heads/short", "0123456789abcdef\n");
	tmp_put("r/.git/refs/heads/null",
	    "0000000000000000000000000000000000000000\n");
	tmp_put("r/.git/refs/heads/nowhere", "ref: refs/heads/..\n");
	tmp_run("mkfifo r/.git/refs/heads/fifo");
	tmp_run("ln -s /etc/passwd r/.git/refs/heads/link");
	FINDS(8);
	HAS("ref-broken refs/heads/empty", "empty");
	HAS("ref-broken refs/heads/nuls", "NUL");
	HAS("ref-broken refs/heads/words", "neither");
	HAS("ref-broken refs/heads/short", "neither");
	HAS("ref-broken refs/heads/null", "null id");
	HAS("ref-broken refs/heads/nowhere", "refs/heads/..");
	HAS("ref-broken refs/heads/fifo", "FIFO");
	HAS("ref-broken refs/heads/link", "");
}

TEST(broken_heads)
{
	tmp_run("cd r && git worktree add -q ../w a && "
		": >.git/worktrees/w/HEAD");
	FINDS(1);
	HAS("ref-broken worktrees/w/HEAD", "empty");
	tmp_put("r/.git/HEAD", "");
	FINDS(2);
	HAS("ref-broken HEAD", "empty");
	tmp_run("rm r/.git/HEAD");
	FINDS(2);
}

TEST(files_of_a_worktree)
{
	tmp_run("cd r && git worktree add -q ../w a && cd .git/worktrees/w && "
		"mkdir -p refs/worktree/d && ln -s d refs/worktree/l && "
		"ln logs/HEAD ../../../../log");
	FINDS(2);
	HAS("ref-name worktrees/w/refs/worktree/l", "a symbolic link");
	HAS("log-linked worktrees/w/logs/HEAD", "1 log has a second name");
}

TEST(worktrees_behind_a_link)
{
	tmp_run("cd r && git worktree add -q ../w a && "
		"mv .git/worktrees ../away && ln -s ../../away .git/worktrees "
		"&& : >.git/refs/heads/empty");
	FINDS(2);
	HAS("ref-unreadable worktrees", "symbolic link");
	HAS("ref-broken refs/heads/empty", "empty");
}

TEST(names)
{
	tmp_run("cd r/.git && cp refs/heads/main 'refs/heads/a b' && "
		"cp refs/heads/main refs/heads/a..b && "
		"sed -n 's,refs/heads/a$,refs/heads/.p,p' packed-refs"
		" >>packed-refs");
	FINDS(4);
	HAS("ref-name refs/heads/a b", "not accept");
	HAS("ref-name refs/heads/a..b", "not accept");
	HAS("packed-unsorted refs/heads/.p", "line");
	tmp_run("cd r/.git && sed -i '1s/ $//' packed-refs");
	FINDS(4);
	HAS("packed-unsorted refs/heads/.p", "line");
	tmp_run("cd r/.git && sed -i '1s/ sorted//' packed-refs");
	FINDS(3);
	HAS("ref-name refs/heads/.p", "not accept");
}

TEST(conflicts)
{
	tmp_run("cd r/.git && mkdir refs/heads/a && "
		"cp refs/heads/main refs/heads/a/b");
	FINDS(1);
	HAS("ref-conflict refs/heads/a/b", "'refs/heads/a'");
	tmp_run("cd r/.git && rm -r refs/heads/a && "
		"sed -i 's,refs/heads/a$,&/b,' packed-refs && "
		"cp refs/heads/main refs/heads/a && "
		"rm logs/refs/heads/a");
	FINDS(1);
	HAS("ref-conflict refs/heads/a", "refs/heads/a/b");
}

TEST(objects)
{
	tmp_run("cd r && echo %040d >.git/refs/heads/lost", 7);
	tmp_run("cd r && git rev-parse 'HEAD^{tree}' >.git/refs/heads/tree &&"
		"git rev-parse t >.git/refs/heads/tag &&"
		"git update-ref refs/trees/ok 'HEAD^{tree}'");
	FINDS(3);
	HAS("object-missing refs/heads/lost", "0007");
	HAS("object-not-commit refs/heads/tree", "not a commit");
	HAS("object-not-commit refs/heads/tag", "not a commit");
	tmp_run("cd r/.git && rm refs/heads/lost refs/heads/tree "
		"refs/heads/tag && echo '%040d refs/heads/z' >>packed-refs",
	    9);
	FINDS(2);
	HAS("object-missing refs/heads/z", "0009");
	HAS("packed-unsorted refs/heads/z", "");
	/* A value that a loose ref hides does not count. */
	tmp_run("cd r/.git && cp refs/heads/main refs/heads/z");
	FINDS(1);
}

TEST(packed_lines)
{
	char *good = tmp_get("r/.git/packed-refs");
	char *bad;

	ck_assert_ptr_nonnull(good);
	ck_assert_int_gt(asprintf(&bad, "%s0123 refs/heads/x\n", good), 0);
	tmp_put("r/.git/packed-refs", bad);
	free(bad);
	FINDS(1);
	HAS("packed-malformed packed-refs", "no ref");
	good[strlen(good) - 1] = '\0';
	tmp_put("r/.git/packed-refs", good);
	FINDS(1);
	HAS("packed-malformed packed-refs", "no end");
	tmp_put("r/.git/packed-refs", "# whatever\n");
	FINDS(1);
	HAS("packed-malformed packed-refs", "header");
	free(good);
	tmp_run("cd r && rm .git/packed-refs && mkdir .git/packed-refs");
	FINDS(1);
	HAS("packed-malformed packed-refs", "can't be read");
}

/* As a failed creation of refs/heads/a/x by git leaves it. */
TEST(packed_beside_an_empty_directory)
{
	tmp_run("cd r/.git && mkdir refs/heads/a && rm -f logs/refs/heads/a && "
		"sed -i 's,.* refs/heads/a$,%040d refs/heads/a,' packed-refs",
	    7);
	FINDS(1);
	HAS("object-missing refs/heads/a", "0007");
}

/* Some programs sort, and do not say so. */
TEST(packed_refs_that_nobody_searches)
{
	tmp_run("cd r/.git && awk -v oid=$(cat refs/heads/main) 'BEGIN { "
		"print \"# pack-refs with: peeled\"; "
		"for (i = 100000; i < 190000; i++) "
		"print oid, \"refs/tags/n\" i }' >packed-refs");
	FINDS(1);
	HAS("packed-malformed packed-refs", "were not checked");
}

TEST(packed_doubles_and_peels)
{
	tmp_run("cd r/.git && cp packed-refs p && "
		"sed -i '/refs.heads.a$/{p}' packed-refs");
	FINDS(1);
	HAS("packed-duplicate refs/heads/a", "line 3");
	/* Both peeled lines name the commit. */
	tmp_run("cd r/.git && sed \"s/^^.*/^$(cat refs/heads/main)/\" p "
		">packed-refs");
	FINDS(2);
	HAS("packed-peeled refs/tags/t", "it is not");
	HAS("packed-peeled refs/tags/t0", "it is not");
	tmp_run("cd r/.git && grep -v '^^' p >packed-refs");
	FINDS(2);
	HAS("packed-peeled refs/tags/t", "no line");
	tmp_run("cd r/.git && sed \"/refs.heads.a$/a ^$(cat refs/heads/main)\""
		" p >packed-refs");
	FINDS(1);
	HAS("packed-peeled refs/heads/a", "no tag");
}

TEST(locks)
{
	char pid[64], path[4200];
	int fd;

	tmp_put("r/.git/refs/heads/x.lock", "");
	tmp_put("r/.git/HEAD.lock", "");
	tmp_put("r/.git/packed-refs.lock", "");
	tmp_put("r/.git/packed-refs.new", "");
	FINDS(0);
	/* A time in the future makes no lock young. */
	tmp_run("touch -d '1 day' r/.git/HEAD.lock");
	vh_ahead_ns = 180 * MINUTE_NS;
	FINDS(3);
	HAS("lock-stale refs/heads/x", "3 hours old; no process");
	HAS("lock-stale HEAD", "another writer");
	HAS("lock-stale packed-refs.lock", "another writer");
	snprintf(path, sizeof(path), "%s/r/.git/refs/heads/x.lock", tmp_root);
	fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	FINDS(3);
	snprintf(pid, sizeof(pid), "process %ld has it open", (long)getpid());
	HAS("lock-held refs/heads/x", pid);
	close(fd);

	/* Git's names of the holders are no locks, and no refs or logs. */
	tmp_run("cd r/.git && echo 'pid 0' >HEAD~pid.lock && "
		"echo nonsense >refs/heads/other~pid.lock && "
		"echo 'pid 1' >logs/refs/heads/main~pid.lock && "
		"mkdir packed-refs~pid.lock");
	tmp_put("r/.git/refs/heads/x~pid.lock", "pid 2147483647\n");
	FINDS(3);
	HAS("lock-stale refs/heads/x", "process 2147483647, which took it");
	HAS("lock-stale HEAD", "no process");
	snprintf(pid, sizeof(pid), "pid %ld\n", (long)getpid());
	tmp_put("r/.git/refs/heads/x~pid.lock", pid);
	FINDS(3);
	snprintf(pid, sizeof(pid), "process %ld took it", (long)getpid());
	HAS("lock-held refs/heads/x", pid);
	/* Anybody can write the number of a different user's process. */
	if (geteuid() == 0) {
		tmp_run("chown 1 r/.git/refs/heads/x~pid.lock");
		FINDS(3);
		HAS("lock-stale refs/heads/x", "no process");
	}
	tmp_run("cd r/.git && rm HEAD.lock packed-refs.lock refs/heads/x.lock");
	FINDS(1);
	HAS("packed-refs-new packed-refs.new", "packing");
}

TEST(logs)
{
	tmp_run("cd r && git branch torn && git branch nuls && git branch bad "
		"&& git branch lags && git branch gone && git branch up && "
		"cd .git && printf torn >>logs/refs/heads/torn && "
		"printf '\\0\\0\\0' >>logs/refs/heads/nuls && "
		"echo what >>logs/refs/heads/bad && "
		"git rev-parse HEAD~1 >refs/heads/lags && "
		"rm refs/heads/gone && : >logs/refs/heads/never && "
		"rm logs/refs/heads/up && mkdir logs/refs/heads/up && "
		": >logs/refs/heads/up/x && "
		/* A writer is at work. */
		": >logs/refs/heads/begun && : >refs/heads/begun.lock");
	FINDS(8);
	HAS("log-torn refs/heads/torn", "cut off");
	HAS("log-torn refs/heads/nuls", "NUL");
	HAS("log-malformed refs/heads/bad", "line 2");
	HAS("log-disagrees refs/heads/lags", "ends with");
	HAS("log-orphan refs/heads/gone", "no such ref");
	HAS("log-empty refs/heads/never", "no such ref");
	HAS("log-empty refs/heads/up/x", "no such ref");
	HAS("log-blocked refs/heads/up", "below");
	/* An empty log of a ref and an expired log are fine. */
	tmp_run("cd r && rm -r .git/logs/refs/heads/* && "
		": >.git/logs/refs/heads/main");
	FINDS(0);
}

TEST(logs_with_a_second_name)
{
	tmp_run("cd r && git branch one && git branch two && "
		"ln .git/logs/refs/heads/one 1 && "
		"ln .git/logs/refs/heads/two 2");
	FINDS(1);
	tmp_run("rm r/2");
	FINDS(1);
	HAS("log-linked logs/refs/heads/one", "1 log has a second name");
}

/* A log of some bytes with a hole of 8 TiB is not read to its end. */
TEST(a_log_with_a_hole)
{
	tmp_run("cd r && git branch huge && "
		"truncate -s 8T .git/logs/refs/heads/huge && "
		"echo x >>.git/logs/refs/heads/huge");
	FINDS(1);
	HAS("log-torn refs/heads/huge", "cut off");
}

/* A directory of which only the first entry can be read. */
static const char *damaged;
static struct sys_dir *damaged_dir;
static bool has_begun;

static int open_dir(const struct sys *sys, int dirfd, const char *path,
    struct sys_dir **dir)
{
	int r = sys_kernel.dir_open(sys, dirfd, path, dir);

	if (r == 0 && strcmp(path, damaged) == 0) {
		damaged_dir = *dir;
		has_begun = false;
	} else if (r == 0 && *dir == damaged_dir) {
		damaged_dir = NULL;
	}
	return r;
}

static int next_in_dir(const struct sys *sys, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	if (dir == damaged_dir && has_begun)
		return -EIO;
	has_begun = has_begun || dir == damaged_dir;
	return sys_kernel.dir_next(sys, dir, entry);
}

TEST(directories_that_cannot_be_read_to_their_end)
{
	struct sys failing = *vh_opt.sys;

	failing.dir_open = open_dir;
	failing.dir_next = next_in_dir;
	vh_opt.sys = &failing;
	tmp_run("cd r && git branch d/x && git branch d/y");
	damaged = "refs/heads/d";
	FINDS(1);
	HAS("ref-unreadable refs/heads/d", "Input/output error");
	damaged = "logs/refs/heads/d";
	FINDS(1);
	HAS("log-unreadable logs/refs/heads/d", "Input/output error");
	damaged = "logs";
	FINDS(1);
	HAS("log-unreadable logs", "Input/output error");
}

static void *look_at_r(void *arg)
{
	*(size_t *)arg = vh_look("r");
	return NULL;
}

/* A level costs a descriptor, and hardly any of the stack. */
TEST(deep_directories)
{
	pthread_attr_t attr;
	pthread_t thread;
	size_t nr;

	tmp_run("cd r/.git && "
		"deep=$(printf 'd/%%.0s' $(seq 900)) && "
		"mkdir -p refs/heads/$deep logs/refs/heads/$deep && "
		"git rev-parse HEAD >refs/heads/$deep/x");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1024 * 1024);
	ck_assert_int_eq(pthread_create(&thread, &attr, look_at_r, &nr), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	ck_assert_msg(nr == 0, "%zu found:%s", nr, vh_lines());
}

static void finish_writing(void)
{
	tmp_run("cd r/.git && cp refs/heads/main refs/heads/b && "
		"rm refs/heads/c.lock packed-refs.new && "
		"rm refs/heads/g logs/refs/heads/g");
}

/* git refs migrate, killed before and after HEAD was gone. */
TEST(git_migrated)
{
	tmp_run("git init -q --bare m && mkdir m/ref_migration.a1B2c3");
	ck_assert_uint_eq(vh_look("m"), 1);
	HAS("ref-migration ref_migration.a1B2c3", "git refs migrate");
	tmp_run("mv m/HEAD m/refs m/ref_migration.a1B2c3");
	vh_look("m");
	HAS("ref-migration ref_migration.a1B2c3", "killed");
	ck_assert_ptr_nonnull(strstr(vh_why(), "not a repository"));
}

/* After a power loss. The configuration named the format of the ids. */
TEST(lost_config)
{
	static const char *const losses[] = { ": >s/config", "rm s/config",
		"printf '[core]\nbare = true\n' >s/config",
		"head -c 100 /dev/zero >s/config" };
	static const char *const refs[] = { "true", "git -C s pack-refs --all",
		"git -C s symbolic-ref HEAD refs/heads/gone",
		"git -C s update-ref --no-deref HEAD main && "
		"git -C s update-ref -d refs/heads/main" };
	size_t i, k, is_malformed;

	for (i = 0; i < 4; i++)
		for (k = 0; k < 4; k++) {
			tmp_run("rm -rf s && git init -q --bare "
				"--object-format=sha256 s && cd s && "
				"git symbolic-ref HEAD refs/heads/main && "
				"git update-ref refs/heads/main $(git "
				"commit-tree -m m $(git mktree </dev/null))");
			tmp_run("%s", refs[k]);
			ck_assert_msg(vh_look("s") == 0, "%s", vh_lines());
			tmp_run("%s", losses[i]);
			is_malformed = i == 3;
			ck_assert_msg(vh_look("s") == 1 + is_malformed,
			    "%zu %zu:%s", i, k, vh_lines());
			HAS("config-lost config", "ids of sha256");
		}
	tmp_run("rm -rf s/refd && : >s/config && : >s/refs/heads/broken");
	ck_assert_uint_eq(vh_repair("s"), 2);
	ck_assert(vh_did("ref-broken refs/heads/broken",
	    "restore the configuration"));
	/* Without a configuration, SHA-1 is certain for git. */
	tmp_run(": >r/.git/config");
	FINDS(0);
}

TEST(looks_twice)
{
	tmp_run("cd r/.git && : >refs/heads/b && : >refs/heads/c.lock && "
		": >packed-refs.new && cp refs/heads/main refs/heads/g && "
		"touch -d '2 hours ago' refs/heads/c.lock && "
		"cp logs/refs/heads/a logs/refs/heads/g");
	FINDS(4);
	vh_meanwhile = finish_writing;
	FINDS(0);
}
