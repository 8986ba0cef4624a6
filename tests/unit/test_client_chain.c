/*
 * Proves which refs go to the hook behind refd's (by receive-pack's rule for
 * receive.procReceiveRefs), what input this hook gets, and how its answers are
 * reported: copied with their options, in input order. Without an answer,
 * receive-pack's words are used. A hook that writes without end does not fill
 * the memory.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/push/chain.h"
#include "client/push/chain_talk.h"
#include "tests/lib/hook_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void setup(void)
{
	hook_setup();
	unsetenv("REFD_CHAINED");
	signal(SIGPIPE, SIG_IGN); /* as main() does */
	tmp_run("git -C repo.git config refd.chain refs/for");
}

/* Uses bash to send and receive packets. */
static void chain_to(const char *shell)
{
	tmp_run("cd repo.git && cat >hooks/proc-receive <<'END'\n"
		"#!/bin/bash\n"
		"pkt() { printf '%%04x%%s' $((${#1} + 4)) \"$1\"; }\n"
		"cut() { dd bs=1 count=$1 status=none | tr '\\0' ' '; }\n"
		"get() {\n"
		"	while len=$(cut 4) && [ $((16#$len)) -gt 0 ]; do\n"
		"		cut $((16#$len - 4))\n"
		"		echo\n"
		"	done\n"
		"}\n"
		"%s\n"
		"END\n"
		"chmod +x hooks/proc-receive",
	    shell);
}

#define AGREE     "get >version; pkt version=1; printf 0000; get >commands; "
#define NO_REPORT " proc-receive failed to report status\n"
#define NOT_RUN   " fail to run proc-receive hook\n"

/* ---- which ---- */

CASE(.setup = setup, .teardown = hook_teardown, .seconds = 60);

TEST(test_matches, .times = 17)
{
	static const struct {
		const char *value, *command;
		bool does;
	} cases[] = {
		{ "refs/for", Z " " A " refs/for/main", true },
		{ "refs/for", Z " " A " refs/for", true },
		{ "refs/for", Z " " A " refs/fork", false },
		{ "refs/for/", Z " " A " refs/for/main", true },
		{ "a:refs/for", Z " " A " refs/for/main", true },
		{ "a:refs/for", A " " B " refs/for/main", false },
		{ "m:refs/for", A " " B " refs/for/main", true },
		{ "d:refs/for", A " " Z " refs/for/main", true },
		{ "am:refs/for", A " " Z " refs/for/main", false },
		{ "adm!:refs/heads", Z " " A " refs/tags/x", true },
		{ "adm!:refs/heads", Z " " A " refs/heads/x", false },
		{ "!:refs/heads", Z " " A " refs/tags/x", false },
		{ "refs", A " " B " HEAD", false },
		{ "adm!:refs", A " " B " HEAD", true },
		/* A deletion of a missing ref needs both flags. */
		{ "d:refs", Z " " Z " refs/tags/a", false },
		{ "ad:refs", Z " " Z " refs/tags/a", true },
		{ "refs/heads refs/tags", Z " " A " refs/tags/a", false },
	};
	struct push_command c = { 0 };
	struct push push = { .commands = &c, .nr = 1 };
	struct gitconfig config = { 0 };
	struct gitdir gd = { 0 };
	struct text why = { 0 };

	tmp_run("git -C repo.git config refd.chain '%s'", cases[_i].value);
	ck_assert(gitdir_find(&gd, ".", &why));
	gitconfig_load(&config, &gd);
	ck_assert_int_eq(
	    refd_oid_parse(cases[_i].command, REFD_FORMAT_SHA1, &c.old_oid), 0);
	ck_assert_int_eq(refd_oid_parse(cases[_i].command + 41,
			     REFD_FORMAT_SHA1, &c.new_oid),
	    0);
	c.name = (char *)cases[_i].command + 82;
	ck_assert(chain_is_set(&config));
	ck_assert_uint_eq(chain_mark(&config, &push), cases[_i].does);
	ck_assert_int_eq(c.is_chained, cases[_i].does);
	gitconfig_done(&config);
	gitdir_done(&gd);
}

/* ---- input and answers ---- */

/* The daemon takes the other two refs. */
#define TWO_OTHERS "serve transaction=[ok,ok]"

TEST(test_order)
{
	hook_serve(TWO_OTHERS);
	chain_to(AGREE "pkt 'ok refs/for/a'; pkt 'option refname refs/pull/1'; "
		       "pkt 'option forced-update'; pkt 'ok refs/for/a'; "
		       "pkt 'option refname refs/pull/2'; "
		       "pkt 'ng refs/for/b not today'; printf 0000");
	hook_push(Z " " A " refs/for/a", Z " " A " refs/heads/a",
	    Z " " A " refs/for/b", Z " " A " refs/heads/b", NULL);
	hook_expect("ok refs/for/a\noption refname refs/pull/1\n"
		    "option forced-update\nok refs/for/a\n"
		    "option refname refs/pull/2\n"
		    "ok refs/heads/a\nng refs/for/b not today\n"
		    "ok refs/heads/b\n");
	tmp_run("cd repo.git && printf 'version=1\n\n' | cmp - version && "
		"test \"$(cat commands)\" = '" Z " " A " refs/for/a\n" Z " " A
		" refs/for/b'");
}

/* A name comes twice: every command has its own verdict. */
TEST(test_name_that_comes_twice)
{
	hook_serve(TWO_OTHERS);
	chain_to(AGREE "pkt 'ok refs/for/a'; pkt 'ok refs/for/b'; "
		       "pkt 'ng refs/for/a not twice'; printf 0000");
	hook_push(Z " " A " refs/for/a", Z " " A " refs/for/b",
	    A " " B " refs/for/a", Z " " A " refs/heads/a",
	    Z " " A " refs/heads/b", NULL);
	hook_expect("ok refs/for/a\nok refs/for/b\n"
		    "ng refs/for/a not twice\n"
		    "ok refs/heads/a\nok refs/heads/b\n");
}

/* Like receive-pack, which asks no other hook. */
TEST(test_answers, .times = 10)
{
	static const struct {
		const char *shell, *reason;
	} cases[] = {
		{ AGREE "printf 0000", NO_REPORT },
		{ AGREE "pkt 'ok refs/for/z'; printf 0000", NO_REPORT },
		{ AGREE "pkt 'ok refs/heads/a'; printf 0000", NO_REPORT },
		{ AGREE "pkt 'option refname x'; printf 0000", NO_REPORT },
		{ AGREE "pkt 'yes refs/for/a'; printf 0000", NO_REPORT },
		{ AGREE, NOT_RUN },
		{ AGREE "printf zzzz", NOT_RUN },
		{ "get; exit 1", NOT_RUN },
		{ "exit 0", NOT_RUN },
		{ "kill -9 $$", NOT_RUN },
	};
	char *wanted = xasprintf("ng refs/for/a%s", cases[_i].reason);

	chain_to(cases[_i].shell);
	hook_push(Z " " A " refs/for/a", NULL);
	hook_expect(wanted);
	free(wanted);
}

/* The hook has sent all its verdicts. */
TEST(test_bad_end)
{
	chain_to(AGREE "pkt 'ok refs/for/a'; printf 0000; exit 1");
	hook_push(Z " " A " refs/for/a", NULL);
	hook_expect("ok refs/for/a\n");
}

/* Nobody waits for a background process of the hook. */
TEST(test_left_behind)
{
	chain_to(AGREE "pkt 'ok refs/for/a'; printf 0000; sleep 30 & exit 0");
	hook_push(Z " " A " refs/for/a", NULL);
	hook_expect("ok refs/for/a\n");
}

/* ---- all or nothing ---- */

TEST(test_atomic, .times = 2)
{
	static const char no[] =
	    " refd: an atomic push can't go both to refd and to the hook of "
	    "refd.chain\n";
	char *wanted = xasprintf("ng refs/for/a%sng refs/heads/a%s", no, no);

	chain_to(AGREE "pkt 'ok refs/for/a'; printf 0000");
	hook_begin(true);
	hook_put(Z " " A " refs/for/a");
	if (_i == 0) {
		hook_expect("ok refs/for/a\n");
		tmp_run("cd repo.git && "
			"printf 'version=1 atomic\n\n' | cmp - version");
	} else {
		hook_put(Z " " A " refs/heads/a");
		hook_expect(wanted);
		tmp_run("test ! -e repo.git/version");
	}
	free(wanted);
}

/* ---- which hook ---- */

TEST(test_hooks, .times = 4)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[len] = '\0';
	chain_to(AGREE "pkt 'ok refs/for/a'; printf 0000");
	hook_push(Z " " A " refs/for/a", NULL);
	switch (_i) {
	case 0: /* the hook itself */
		tmp_run("cd repo.git && ln -sf %s hooks/proc-receive", self);
		hook_expect("ng refs/for/a" NOT_RUN);
		break;
	case 1:
		tmp_run("cd repo.git && rm hooks/proc-receive");
		hook_expect("ng refs/for/a" NOT_RUN);
		break;
	case 2:
		tmp_run("cd repo.git && mv hooks/proc-receive other && "
			"git config refd.chainHook ./other && "
			"ln -sf %s hooks/proc-receive",
		    self);
		hook_expect("ok refs/for/a\n");
		break;
	case 3: /* through a script */
		ck_assert_ptr_nonnull(realpath(".", self));
		setenv("REFD_CHAINED", self, 1);
		hook_expect("ng refs/for/a" NOT_RUN);
		break;
	}
}

/* Of this process, in KiB. */
static long most_memory(void)
{
	struct rusage use;

	ck_assert_int_eq(getrusage(RUSAGE_SELF, &use), 0);
	return use.ru_maxrss;
}

static void count_bytes(void *data, const struct pkt *pkt)
{
	*(size_t *)data += pkt->len;
}

TEST(test_endless, .times = 2)
{
	static const char *const hooks[] = {
		/* behind the report */
		AGREE "pkt 'ok refs/for/a'; printf 0000; "
		      "head -c 200000000 /dev/zero",
		/* the report */
		AGREE "long=$(printf '%050000d' 0); for ((i = 0; i < 4000; "
		      "i++)); do pkt \"option x $long\" || exit; done",
	};
	struct push_command c = { .is_chained = true, .name = "refs/for/a" };
	struct push push = { .commands = &c, .nr = 1 };
	size_t reported = 0;
	long before;

	chain_to(hooks[_i]);
	before = most_memory();
	chain_talk("hooks/proc-receive", &push, count_bytes, &reported);
	ck_assert_uint_gt(reported, 0);
	ck_assert_int_lt(most_memory() - before, 100 * 1024);
	ck_assert_uint_le(reported, refd_answer_bytes_max(1));
}
