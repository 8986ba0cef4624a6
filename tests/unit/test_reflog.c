/*
 * Proves that reflogs equal git's byte for byte: lines, messages, policies,
 * created files and refusals. A failed append leaves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/files/format/reflog.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LOG          "logs/refs/heads/x"

static const struct sys *sys = &sys_kernel;

static enum refd_object_format format; /* SHA-1 unless a test says */

static struct reflog_file log_at(int dirfd, const char *path)
{
	return (struct reflog_file){ .sys = sys,
		.dirfd = dirfd,
		.path = path,
		.format = format,
		.file_mode = 0644,
		.dir_mode = 0755 };
}

static int append(const struct sys *on, int dirfd, const char *path,
    const char *line, size_t len)
{
	struct reflog_file log = log_at(dirfd, path);
	int fd;

	log.sys = on;
	fd = reflog_append(&log, line, len);
	return fd < 0 ? fd : SYS(on, close, fd);
}

static int retract(int dirfd, const char *path, const char *line)
{
	const struct reflog_file log = log_at(dirfd, path);

	return reflog_retract(&log, line, strlen(line));
}

static struct refd_oid oid(const char *hex)
{
	struct refd_oid o;

	ck_assert_int_eq(refd_oid_parse(hex, format, &o), 0);
	return o;
}

static const char *const messages[] = {
	"push",
	"  two  blanks\tand\ta tab ",
	"line one\nline two\r\n",
	"\n\n",
	"form\ffeed \v vertical",
	"\xc3\xa9 and \x01 stay",
	"a\t\n\r b",
};

static void line_is_gits(const char *given)
{
	struct refd_oid null_oid = { { 0 } }, new_oid;
	char *hex, *git, *line, *message;
	size_t len;

	setenv("MESSAGE", given, 1);
	tmp_run("git init -q r && cd r && GIT_COMMITTER_DATE='1700000000 "
		"+0130' git update-ref -m \"$MESSAGE\" refs/heads/x $(git "
		"commit-tree -m m $(git hash-object -w -t tree /dev/null))");
	hex = tmp_output("git -C r rev-parse refs/heads/x");
	new_oid = oid(hex);
	free(hex);
	git = tmp_get("r/.git/logs/refs/heads/x");
	message = reflog_normalise(given);
	line = reflog_line(&null_oid, &new_oid, format,
	    "C O Mitter <committer@example.com> 1700000000 +0130", message,
	    &len);
	ck_assert_str_eq(line, git);
	ck_assert_uint_eq(strlen(line), len);
	free(line);
	free(message);
	free(git);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(a_line_is_what_git_writes, .times = COUNT(messages))
{
	line_is_gits(messages[_i]);
}

TEST(a_line_of_sha256)
{
	struct refd_oid from, to;
	struct reflog_file log;
	char *hex;

	format = REFD_FORMAT_SHA256;
	setenv("GIT_DEFAULT_HASH", "sha256", 1);
	line_is_gits("push");
	hex = tmp_output("git -C r rev-parse refs/heads/x");
	log = log_at(tmp_fd, "r/.git/logs/refs/heads/x");
	ck_assert_int_eq(reflog_last(&log, &from, &to), 1);
	ck_assert(refd_oid_is_null(&from));
	from = oid(hex);
	ck_assert(refd_oid_eq(&from, &to));
	log.format = REFD_FORMAT_SHA1;
	ck_assert_int_eq(reflog_last(&log, &from, &to), 0);
	free(hex);
}

TEST(a_line_can_not_be_forged)
{
	struct refd_oid o = { { 0 } };
	size_t len;

	ck_assert_ptr_null(reflog_line(&o, &o, REFD_FORMAT_SHA1,
	    "A <a>\nB <b> 1 +0000", NULL, &len));
	ck_assert_ptr_null(reflog_line(&o, &o, REFD_FORMAT_SHA1,
	    "A <a> 1 +0000", "x\ny", &len));
}

TEST(a_policy_is_parsed_as_git_parses_it)
{
	static const char *const values[] = {
		"true",
		"TRUE",
		"yes",
		"On",
		"1",
		"2",
		"-1",
		"0x10",
		"010",
		"1k",
		"3G",
		"0",
		"0k",
		"false",
		"No",
		"off",
		"",
		"always",
		"ALWAYS",
		"maybe",
		"truely",
		"1 ",
		" 1",
		"1x",
		"2g",
		"1.5",
		"99999999999",
		"1kk",
		"tru",
	};
	enum reflog_policy policy;
	char *git;
	size_t i;
	int r;

	tmp_run("git init -q r");
	for (i = 0; i < COUNT(values); i++) {
		r = reflog_policy_parse(values[i], true, &policy);
		if (r == 0 && policy == REFLOG_ALWAYS) {
			ck_assert_int_eq(strcasecmp(values[i], "always"), 0);
			continue;
		}
		git = tmp_output("git -C r -c 'x.y=%s' config --type=bool x.y "
				 "2>/dev/null || echo fatal",
		    values[i]);
		ck_assert_msg(strcmp(git,
				  r < 0                       ? "fatal\n" :
				      policy == REFLOG_NORMAL ? "true\n" :
								"false\n") == 0,
		    "'%s': %d %d, git says %s", values[i], r, (int)policy, git);
		free(git);
	}
	ck_assert_int_eq(reflog_policy_parse(NULL, true, &policy), 0);
	ck_assert_int_eq(policy, REFLOG_NEVER);
	ck_assert_int_eq(reflog_policy_parse(NULL, false, &policy), 0);
	ck_assert_int_eq(policy, REFLOG_NORMAL);
	ck_assert_int_eq(reflog_policy_parse("k", false, &policy), -1);
}

/* For each name: does git create the log without a request? */
TEST(a_policy_creates_what_git_creates)
{
	static const char *const names[] = {
		"refs/heads/x",
		"refs/remotes/o/x",
		"refs/notes/commits",
		"refs/tags/t",
		"refs/other/x",
		"refs/headsx/y",
		"ORIG_HEAD",
		"refs/stash",
	};
	static const char *const values[] = { "true", "always", "false" };
	enum reflog_policy policy;
	size_t i, v;

	tmp_run("git init -q --bare r && cd r && git commit-tree -m m $(git "
		"hash-object -w -t tree /dev/null) >../c");
	for (v = 0; v < COUNT(values); v++) {
		reflog_policy_parse(values[v], false, &policy);
		for (i = 0; i < COUNT(names); i++) {
			tmp_run("cp -r r t && git -C t -c "
				"core.logAllRefUpdates=%s update-ref %s "
				"$(cat c)",
			    values[v], names[i]);
			ck_assert_int_eq(reflog_policy_creates(policy,
					     names[i]),
			    tmp_status("test -e t/logs/%s", names[i]) == 0);
			tmp_run("rm -r t");
		}
	}
	ck_assert(reflog_policy_creates(REFLOG_NORMAL, "HEAD"));
	ck_assert(!reflog_policy_creates(REFLOG_NEVER, "HEAD"));
}

static int prepare(const char *path, bool create, bool *will_log)
{
	struct reflog_file log = log_at(tmp_fd, path);
	unsigned made_dirs;
	bool made;

	log.create = create;
	log.file_mode = 0640;
	log.dir_mode = 02750;
	return reflog_prepare(&log, will_log, &made, &made_dirs);
}

TEST(preparing_makes_file_and_directories)
{
	bool will_log = false;

	umask(0077);
	ck_assert_int_eq(prepare(LOG, true, &will_log), 0);
	ck_assert(will_log);
	ck_assert_uint_eq(tmp_mode(LOG), 0640);
	ck_assert_uint_eq(tmp_mode("logs/refs"), 02750);
	will_log = false;
	ck_assert_int_eq(prepare(LOG, true, &will_log), 0);
	ck_assert(will_log);
}

/* Another process makes each directory just before refd. */
static int mkdir_too_late(const struct sys *on, int dirfd, const char *path,
    mode_t mode)
{
	(void)on;
	return SYS(sys, mkdirat, dirfd, path, mode) == 0 ? -EEXIST : -ENOENT;
}

TEST(directories_may_be_made_by_others_meanwhile)
{
	struct reflog_file log = log_at(tmp_fd, LOG);
	struct sys beside = *sys;
	bool will_log, made;
	unsigned made_dirs;

	beside.mkdirat = mkdir_too_late;
	log.sys = &beside;
	log.create = true;
	ck_assert_int_eq(reflog_prepare(&log, &will_log, &made, &made_dirs), 0);
	ck_assert(made && tmp_exists(LOG));
	ck_assert_uint_eq(made_dirs, 3);
}

TEST(without_create_only_an_existing_log_is_used)
{
	bool will_log = true;

	ck_assert_int_eq(prepare(LOG, false, &will_log), 0);
	ck_assert(!will_log);
	ck_assert(!tmp_exists("logs"));
	tmp_put(LOG, "");
	ck_assert_int_eq(prepare(LOG, false, &will_log), 0);
	ck_assert(will_log);
	tmp_mkdir("logs/refs/heads/d");
	ck_assert_int_eq(prepare("logs/refs/heads/d", false, &will_log), 0);
	ck_assert(!will_log);
	ck_assert(tmp_exists("logs/refs/heads/d"));
}

TEST(what_is_in_the_way)
{
	bool will_log = false;

	tmp_mkdir(LOG "/a/b");
	ck_assert_int_eq(prepare(LOG, true, &will_log), 0);
	ck_assert(will_log);
	ck_assert_int_eq(prepare(LOG "/below", true, &will_log), -ENOTDIR);
	tmp_put("logs/refs/heads/full/log", "");
	ck_assert_int_eq(prepare("logs/refs/heads/full", true, &will_log),
	    -EISDIR);
	tmp_put("target", "");
	tmp_run("ln -s ../../../target logs/refs/heads/link; ln -s nowhere "
		"logs/refs/heads/dangling; mkfifo logs/refs/heads/fifo");
	ck_assert_int_eq(prepare("logs/refs/heads/link", true, &will_log),
	    -ELOOP);
	ck_assert_int_eq(prepare("logs/refs/heads/dangling", true, &will_log),
	    -ELOOP);
	ck_assert(!tmp_exists("logs/refs/heads/nowhere"));
	ck_assert_int_eq(prepare("logs/refs/heads/fifo", true, &will_log),
	    -EINVAL);
}

/* git reads the appended lines, also after its own expire has replaced the log
 * by a new file. */
TEST(git_reads_what_was_appended)
{
	char *hex, *line, *out;
	struct refd_oid o;
	size_t len;
	int repo;

	tmp_run("git init -q --bare r && cd r && git config "
		"core.logAllRefUpdates true && git update-ref -m one "
		"refs/heads/x $(git commit-tree -m m $(git hash-object -w -t "
		"tree /dev/null))");
	hex = tmp_output("git -C r rev-parse refs/heads/x");
	o = oid(hex);
	repo = openat(tmp_fd, "r", O_RDONLY | O_DIRECTORY);
	line = reflog_line(&o, &o, REFD_FORMAT_SHA1, "A <a@b> 1700000000 +0000",
	    "two", &len);
	ck_assert_int_eq(append(sys, repo, LOG, line, len), 0);
	tmp_run("git -C r reflog expire --expire=never --rewrite "
		"refs/heads/x");
	ck_assert_int_eq(append(sys, repo, LOG, line, len), 0);
	out = tmp_output("git -C r reflog show --format=%%gs refs/heads/x");
	ck_assert_str_eq(out, "two\ntwo\none\n");
	free(out);
	ck_assert_int_eq(retract(repo, LOG, line), 0);
	out = tmp_output("git -C r reflog show --format=%%gs refs/heads/x");
	ck_assert_str_eq(out, "two\none\n");
	free(out);
	free(line);
	free(hex);
	close(repo);
}

/* A line that git never synced may end early, or in NULs as on ext4. */
TEST(git_reads_what_was_appended_to_a_torn_end)
{
	static const char *const ends[] = { "0000", "\\0\\0\\0" };
	char *git, *nr, *line;
	struct refd_oid a;
	size_t len, i;

	tmp_run("git init -q r && cd r && git commit -q --allow-empty -m m && "
		"git branch x");
	git = tmp_output("git -C r rev-parse x");
	a = oid(git);
	free(git);
	line = reflog_line(&a, &a, REFD_FORMAT_SHA1, "A <a> 1 +0000", "ours",
	    &len);
	for (i = 0; i < COUNT(ends); i++) {
		tmp_run("printf '%s' >>r/.git/" LOG, ends[i]);
		ck_assert_int_eq(append(sys, tmp_fd, "r/.git/" LOG, line, len),
		    0);
		ck_assert_int_eq(append(sys, tmp_fd, "r/.git/" LOG, line, len),
		    0);
	}
	nr = tmp_output("git -C r reflog --format=%%gs x | grep -c ours");
	ck_assert_str_eq(nr, "4\n");
	free(nr);
	free(line);
}

TEST(appending_to_nothing_is_enoent)
{
	ck_assert_int_eq(append(sys, tmp_fd, LOG, "x\n", 2), -ENOENT);
	tmp_mkdir(LOG);
	ck_assert_int_eq(append(sys, tmp_fd, LOG, "x\n", 2), -ENOENT);
	tmp_put("target", "");
	tmp_run("ln -s target link");
	ck_assert_int_eq(append(sys, tmp_fd, "link", "x\n", 2), -ELOOP);
}

static int no_space(const struct sys *s, int fd, const void *buf, size_t len)
{
	sys_kernel.write_all(s, fd, buf, len - 1);
	return -ENOSPC;
}

TEST(a_failed_append_leaves_nothing)
{
	struct sys faulty = sys_kernel;
	char *text;

	faulty.write_all = no_space;
	tmp_put(LOG, "first\n");
	ck_assert_int_eq(append(&faulty, tmp_fd, LOG, "second\n", 7), -ENOSPC);
	text = tmp_get(LOG);
	ck_assert_str_eq(text, "first\n");
	free(text);
}

/* The second name may be any file of the daemon's account. */
TEST(a_log_with_a_second_name_is_left_alone)
{
	const char *const lines[] = { "line\n" };
	struct reflog_file log = log_at(tmp_fd, LOG);
	size_t added, cut;
	bool will_log, is_added;
	char *text;

	tmp_put("secret", "first\nline\ntorn");
	tmp_mkdir("logs/refs/heads");
	ck_assert_int_eq(linkat(tmp_fd, "secret", tmp_fd, LOG, 0), 0);
	ck_assert_int_eq(prepare(LOG, true, &will_log), -EMLINK);
	ck_assert_int_eq(append(sys, tmp_fd, LOG, "x\n", 2), -EMLINK);
	ck_assert_int_eq(retract(tmp_fd, LOG, "torn"), 0);
	log.create = true;
	ck_assert_int_eq(reflog_complete(&log, "x\n", 2, &is_added), -EMLINK);
	ck_assert_int_eq(reflog_repair(&log, lines, 1, 0, &added, &cut),
	    -EMLINK);
	text = tmp_get("secret");
	ck_assert_str_eq(text, "first\nline\ntorn");
	free(text);
	/* git replaces the log by a new file, and refd writes to this file. */
	ck_assert_int_eq(unlinkat(tmp_fd, "secret", 0), 0);
	ck_assert_int_eq(append(sys, tmp_fd, LOG, "x\n", 2), 0);
}

static void check_retract(const char *before, const char *line,
    const char *after)
{
	char *text;

	tmp_put(LOG, before);
	ck_assert_int_eq(retract(tmp_fd, LOG, line), 0);
	text = tmp_get(LOG);
	ck_assert_str_eq(text, after);
	free(text);
}

TEST(only_the_last_line_is_taken_back)
{
	check_retract("a\nb\n", "b\n", "a\n");
	check_retract("b\n", "b\n", "");
	check_retract("a\nb\n", "a\n", "a\nb\n");
	check_retract("a\nxb\n", "b\n", "a\nxb\n");
	check_retract("\n", "b\n", "\n");
	check_retract("", "b\n", "");
	ck_assert_int_eq(retract(tmp_fd, "logs/no", "b\n"), 0);
}

static int delete_log(const char *path)
{
	const struct reflog_file log = log_at(tmp_fd, path);

	return reflog_delete(&log);
}

TEST(deleting_prunes_down_to_the_kind_of_ref)
{
	tmp_put("logs/refs/heads/a/b/c", "");
	tmp_put("logs/refs/heads/a/d", "");
	tmp_put("logs/HEAD", "");
	ck_assert_int_eq(delete_log("logs/refs/heads/a/b/c"), 0);
	ck_assert(!tmp_exists("logs/refs/heads/a/b"));
	ck_assert_int_eq(delete_log("logs/refs/heads/a/d"), 0);
	ck_assert(!tmp_exists("logs/refs/heads/a"));
	ck_assert(tmp_exists("logs/refs/heads"));
	ck_assert_int_eq(delete_log("logs/HEAD"), 0);
	ck_assert_int_eq(delete_log("logs/HEAD"), 0);
	ck_assert_int_eq(delete_log("logs/refs/heads"), 0);
	tmp_put("worktrees/logs/logs/refs/bisect/bad", "");
	ck_assert_int_eq(delete_log("worktrees/logs/logs/refs/bisect/bad"), 0);
	ck_assert(tmp_exists("worktrees/logs/logs/refs/bisect"));
}
