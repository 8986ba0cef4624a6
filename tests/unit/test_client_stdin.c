/*
 * Proves that the client reads the language of update-ref --stdin as git does:
 * every command with and without -z, quoting, "option no-deref", the order of
 * start, commit and abort, and git's error messages, including the messages of
 * git 2.39. Nearly all inputs here were given to a real git, and the expected
 * answers are git's.
 */
#include <stdio.h>
#include <string.h>

#include "client/update/stdin.h"
#include "tests/lib/suite.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

static struct stdin_parser p;

/* Resolves forty digits, and "tip". */
static bool resolve(void *ctx, const char *name, struct refd_oid *oid)
{
	(void)ctx;
	if (!strcmp(name, "tip"))
		name = B;
	return strlen(name) == REFD_SHA1_HEX &&
	    refd_oid_parse(name, REFD_FORMAT_SHA1, oid) == 0;
}

static void open_bytes(const char *input, size_t len, char end)
{
	memset(&p, 0, sizeof(p));
	p.in =
	    len ? fmemopen((void *)input, len, "r") : fopen("/dev/null", "r");
	ck_assert_ptr_nonnull(p.in);
	p.end = end;
	p.resolve = resolve;
}

static void open_text(const char *input)
{
	open_bytes(input, strlen(input), '\n');
}

#define open_z(input) open_bytes(input, sizeof(input) - 1, '\0')

static void close_input(void)
{
	fclose(p.in);
	stdin_done(&p);
}

static void expect(enum stdin_event event)
{
	enum stdin_event got = stdin_next(&p);

	ck_assert_msg(got == event, "event %d: %s", (int)got,
	    got == STDIN_ERROR ? p.error.data : "");
}

static void expect_oid(const struct refd_oid *oid, const char *hex)
{
	char got[REFD_OID_MAX_HEX + 1];

	ck_assert_str_eq(refd_oid_hex(oid, REFD_FORMAT_SHA1, got), hex);
}

static void expect_change(enum refd_action action, const char *name,
    const char *new, const char *old)
{
	expect(STDIN_CHANGE);
	ck_assert_int_eq(p.update.action, action);
	ck_assert_str_eq(p.update.name, name);
	expect_oid(&p.update.new_oid, new);
	ck_assert_int_eq(p.update.has_old, old != NULL);
	expect_oid(&p.update.old_oid, old ? old : Z);
}

/* ---- correct input ---- */

TEST(test_commands)
{
	open_text("update refs/heads/a " A "\n"
		  "update refs/heads/a " A " tip\n"
		  "update refs/heads/a tip " Z "\n"
		  "create refs/heads/b " A "\n"
		  "delete refs/heads/c\n"
		  "delete refs/heads/c " B "\n"
		  "verify refs/heads/d " A "\n"
		  "verify refs/heads/d\n");
	expect_change(REFD_UPDATE, "refs/heads/a", A, NULL);
	expect_change(REFD_UPDATE, "refs/heads/a", A, B);
	expect_change(REFD_UPDATE, "refs/heads/a", B, Z);
	expect_change(REFD_CREATE, "refs/heads/b", A, NULL);
	expect_change(REFD_DELETE, "refs/heads/c", Z, NULL);
	expect_change(REFD_DELETE, "refs/heads/c", Z, B);
	expect_change(REFD_VERIFY, "refs/heads/d", Z, A);
	/* The ref must not exist. */
	expect_change(REFD_VERIFY, "refs/heads/d", Z, Z);
	expect(STDIN_EOF_COMMIT);
	close_input();
}

TEST(test_zero_is_deletion)
{
	open_text("update refs/heads/a " Z "\n"
		  "update refs/heads/a " Z " " A "\n"
		  "update refs/heads/a " Z " " Z "\n"
		  /* git expects exactly one space, so the new value is
		   * empty. */
		  "update refs/heads/a  " A "\n");
	expect_change(REFD_DELETE, "refs/heads/a", Z, NULL);
	expect_change(REFD_DELETE, "refs/heads/a", Z, A);
	expect_change(REFD_UPDATE, "refs/heads/a", Z, Z);
	expect_change(REFD_DELETE, "refs/heads/a", Z, A);
	close_input();
}

TEST(test_z)
{
	open_z("update refs/heads/a\0" A "\0\0"
	       "update refs/heads/a\0" A "\0" B "\0"
	       "create refs/heads/b\0tip\0"
	       "delete refs/heads/c\0\0"
	       "delete refs/heads/c\0" A "\0"
	       "verify refs/heads/d\0\0"
	       "option no-deref\0"
	       "verify refs/heads/d\0" A "\0"
	       "start\0commit\0");
	expect_change(REFD_UPDATE, "refs/heads/a", A, NULL);
	expect_change(REFD_UPDATE, "refs/heads/a", A, B);
	expect_change(REFD_CREATE, "refs/heads/b", B, NULL);
	expect_change(REFD_DELETE, "refs/heads/c", Z, NULL);
	expect_change(REFD_DELETE, "refs/heads/c", Z, A);
	expect_change(REFD_VERIFY, "refs/heads/d", Z, Z);
	ck_assert(!p.update.no_deref);
	expect_change(REFD_VERIFY, "refs/heads/d", Z, A);
	ck_assert(p.update.no_deref);
	expect(STDIN_START);
	expect(STDIN_COMMIT);
	expect(STDIN_EOF);
	close_input();
}

TEST(test_no_deref)
{
	open_text("option no-deref\nupdate HEAD " A "\nupdate HEAD " A "\n");
	expect(STDIN_CHANGE);
	ck_assert(p.update.no_deref);
	expect(STDIN_CHANGE);
	ck_assert(!p.update.no_deref);
	close_input();

	open_text("update HEAD " A "\n");
	p.no_deref = true;
	expect(STDIN_CHANGE);
	ck_assert(p.update.no_deref);
	close_input();
}

TEST(test_quoted)
{
	open_text("update \"refs/heads/q\\303\\251\" " A "\n"
		  "update \"refs/heads/q\\\"\" \"" A "\" \"tip\"\n"
		  "create \"refs/heads/\\144\" " A "\n");
	expect_change(REFD_UPDATE, "refs/heads/q\303\251", A, NULL);
	expect_change(REFD_UPDATE, "refs/heads/q\"", A, B);
	expect_change(REFD_CREATE, "refs/heads/d", A, NULL);
	close_input();
}

TEST(test_symrefs)
{
	open_text("symref-update HEAD refs/heads/x\n"
		  "symref-update HEAD refs/heads/x ref refs/heads/y\n"
		  "symref-update HEAD refs/heads/x oid tip\n"
		  "symref-create refs/heads/s refs/heads/x\n"
		  "option no-deref\n"
		  "symref-delete refs/heads/s\n"
		  "option no-deref\n"
		  "symref-verify refs/heads/s refs/heads/x\n");
	expect_change(REFD_SYMREF_UPDATE, "HEAD", Z, NULL);
	ck_assert_str_eq(p.update.target, "refs/heads/x");
	ck_assert_ptr_null(p.update.old_target);
	expect(STDIN_CHANGE);
	ck_assert(p.update.has_old);
	ck_assert_str_eq(p.update.old_target, "refs/heads/y");
	expect_change(REFD_SYMREF_UPDATE, "HEAD", Z, B);
	ck_assert_ptr_null(p.update.old_target);
	expect_change(REFD_SYMREF_CREATE, "refs/heads/s", Z, NULL);
	ck_assert_str_eq(p.update.target, "refs/heads/x");
	expect_change(REFD_SYMREF_DELETE, "refs/heads/s", Z, NULL);
	expect(STDIN_CHANGE);
	ck_assert_int_eq(p.update.action, REFD_SYMREF_VERIFY);
	ck_assert_str_eq(p.update.old_target, "refs/heads/x");
	close_input();
}

TEST(test_symrefs_z)
{
	open_z("symref-update HEAD\0refs/heads/x\0\0\0"
	       "symref-update HEAD\0refs/heads/x\0ref\0refs/heads/y\0"
	       "symref-create refs/heads/s\0refs/heads/x\0"
	       "option no-deref\0"
	       "symref-verify refs/heads/s\0\0"
	       "symref-update HEAD\0refs/heads/x\0");
	expect_change(REFD_SYMREF_UPDATE, "HEAD", Z, NULL);
	expect(STDIN_CHANGE);
	ck_assert_str_eq(p.update.old_target, "refs/heads/y");
	expect_change(REFD_SYMREF_CREATE, "refs/heads/s", Z, NULL);
	expect_change(REFD_SYMREF_VERIFY, "refs/heads/s", Z, NULL);
	expect_change(REFD_SYMREF_UPDATE, "HEAD", Z, NULL);
	expect(STDIN_EOF_COMMIT);
	close_input();
}

/* ---- order ---- */

#define UP "update refs/heads/a " A "\n"

TEST(test_order, .times = 10)
{
	/* Letters: s start, c commit, a abort, p prepare, u update, E end of
	 * input with a commit, e end of input without a commit. */
	static const struct {
		const char *input, *events;
	} cases[] = {
		{ "", "E" },
		{ UP, "uE" },
		{ "start\n" UP, "sue" },
		{ "start\n" UP "commit\n", "suce" },
		{ UP "commit\n", "uce" },
		{ "abort\n", "ae" },
		{ "start\n" UP "abort\nstart\n" UP "commit\n", "suasuce" },
		{ "prepare\n", "pe" },
		{ "start\n" UP "prepare\ncommit\n", "supce" },
		{ UP "start\n" UP "commit\n", "usuce" },
	};
	static const char letters[] = "uspcaEe!";
	const char *at;

	open_text(cases[_i].input);
	for (at = cases[_i].events; *at; at++)
		expect((enum stdin_event)(strchr(letters, *at) - letters));
	close_input();
}

/* ---- wrong input ---- */

static const struct {
	const char *input, *error;
} bad[] = {
	{ "\n", "empty command in input" },
	{ " update x y\n", "whitespace before command:  update x y\n" },
	{ "frob x\n", "unknown command: frob x\n" },
	{ "start extra\n", "unknown command: start extra\n" },
	{ "commit", "unknown command: commit" },
	{ "updaterefs/heads/a\n", "unknown command: updaterefs/heads/a\n" },
	{ "update \n", "update: missing <ref>" },
	{ "update  refs/heads/a " A "\n", "update: missing <ref>" },
	{ "update refs/heads/a\n", "update refs/heads/a: missing <new-oid>" },
	{ "update refs/heads/a " A " " B " extra\n",
	    "update refs/heads/a: extra input:  extra\n" },
	{ "update refs/heads/a " A,
	    "update refs/heads/a: unexpected end of input when "
	    "reading <old-oid>" },
	{ "update refs/heads/a",
	    "update refs/heads/a: unexpected end of input when "
	    "reading <new-oid>" },
	{ "update refs/heads/a nosuch\n",
	    "update refs/heads/a: invalid <new-oid>: nosuch" },
	{ "update refs/heads/a " A " nosuch\n",
	    "update refs/heads/a: invalid <old-oid>: nosuch" },
	{ "update refs/heads/a\t" A "\n",
	    "update refs/heads/a: expected SP but got: \t" A "\n" },
	{ "update refs/heads/bad..name " A "\n",
	    "invalid ref format: refs/heads/bad..name" },
	{ "delete refs/heads/bad..name\n",
	    "invalid ref format: refs/heads/bad..name" },
	{ "update FETCH_HEAD " A "\n",
	    "refusing to update pseudoref 'FETCH_HEAD'" },
	{ "create refs/heads/a " Z "\n",
	    "create refs/heads/a: zero <new-oid>" },
	{ "create refs/heads/a\n", "create refs/heads/a: missing <new-oid>" },
	{ "create refs/heads/a " A " " B "\n",
	    "create refs/heads/a: extra input:  " B "\n" },
	{ "delete refs/heads/a " Z "\n",
	    "delete refs/heads/a: zero <old-oid>" },
	{ "verify \n", "verify: missing <ref>" },
	{ "option foo\n", "option unknown: foo\n" },
	{ "option no-dereference\n", "option unknown: no-dereference\n" },
	{ "update \"refs/heads/q1 " A "\n",
	    "badly quoted argument: \"refs/heads/q1 " A "\n" },
	{ "update \"refs/heads/q1\"x " A "\n",
	    "unexpected character after quoted argument: "
	    "\"refs/heads/q1\"x " A "\n" },
	{ "update \"refs/heads/a\\000b\" " A "\n",
	    "badly quoted argument: \"refs/heads/a\\000b\" " A "\n" },
	{ "update \"refs/heads/\\z\" " A "\n",
	    "badly quoted argument: \"refs/heads/\\z\" " A "\n" },
	{ "start\nstart\n", "cannot restart ongoing transaction" },
	{ "commit\ncommit\n", "transaction is closed" },
	{ "abort\n" UP, "transaction is closed" },
	{ "prepare\n" UP, "prepared transactions can only be closed" },
	{ "symref-update HEAD\n", "symref-update HEAD: missing <new-target>" },
	{ "symref-update HEAD a..b\n", "invalid ref format: a..b" },
	{ "symref-update HEAD refs/heads/x ref\n",
	    "symref-update HEAD: expected old value" },
	{ "symref-update HEAD refs/heads/x foo bar\n",
	    "symref-update HEAD: invalid arg 'foo' for old value" },
	{ "symref-update HEAD refs/heads/x oid nosuch\n",
	    "symref-update HEAD: invalid oid: nosuch" },
	{ "symref-delete refs/heads/s\n",
	    "symref-delete: cannot operate with deref mode" },
	{ "symref-verify \n", "symref-verify: cannot operate with deref mode" },
	{ "symref-create refs/heads/s\trefs/heads/x\n",
	    "expected SP but got: \trefs/heads/x\n" },
	{ "symref-update HEAD  foo bar\n",
	    "symref-update HEAD: missing <new-target>" },
	{ "symref-update HEAD refs/heads/x\tref\n",
	    "expected SP but got: \tref\n" },
	/* An empty word ends the optional arguments. */
	{ "symref-update HEAD refs/heads/x  foo bar\n",
	    "symref-update HEAD: extra input:  foo bar\n" },
	{ "symref-update HEAD refs/heads/x ref a..b\n",
	    "symref-update HEAD: invalid ref: a..b" },
	{ "symref-update HEAD refs/heads/x ref refs/heads/y z\n",
	    "symref-update HEAD: extra input:  z\n" },
	{ "option no-deref\nsymref-delete HEAD a..b\n",
	    "invalid ref format: a..b" },
	{ "option no-deref\nsymref-verify HEAD refs/heads/x y\n",
	    "symref-verify HEAD: extra input:  y\n" },
	{ "option no-deref \n", "option unknown: no-deref \n" },
	{ "option no-deref", "option unknown: no-deref" },
	{ "update refs/heads/a " A " ", "update refs/heads/a: extra input: " },
	{ "create refs/heads/a \n", "create refs/heads/a: zero <new-oid>" },
	{ "delete refs/heads/a \n", "delete refs/heads/a: zero <old-oid>" },
	/* git checks a ref name after the whole line. */
	{ "update FETCH_HEAD nosuch\n",
	    "update FETCH_HEAD: invalid <new-oid>: nosuch" },
	{ "update MERGE_HEAD " A " " B " x\n",
	    "update MERGE_HEAD: extra input:  x\n" },
	{ "symref-create FETCH_HEAD refs/heads/x\n",
	    "refusing to update pseudoref 'FETCH_HEAD'" },
	{ "delete foo\n", "refusing to update ref with bad name 'foo'" },
	{ "update foo " Z "\n", "refusing to update ref with bad name 'foo'" },
	{ "verify foo\n", "refusing to update ref with bad name 'foo'" },
	{ "symref-create foo refs/heads/x\n",
	    "refusing to update ref with bad name 'foo'" },
};

static void expect_error(const char *input, const char *error)
{
	enum stdin_event event;

	do
		event = stdin_next(&p);
	while (event != STDIN_ERROR && event != STDIN_EOF &&
	    event != STDIN_EOF_COMMIT);
	ck_assert_msg(event == STDIN_ERROR, "taken: %s", input);
	ck_assert_str_eq(p.error.data, error);
	close_input();
}

TEST(test_errors, .times = sizeof(bad) / sizeof(bad[0]))
{
	open_text(bad[_i].input);
	expect_error(bad[_i].input, bad[_i].error);
}

/* The messages of git 2.39 about values. */
TEST(test_errors_239, .times = 7)
{
	static const struct {
		const char *input, *error;
	} cases[] = {
		{ "update refs/heads/a\n",
		    "update refs/heads/a: missing <newvalue>" },
		{ "update refs/heads/a nosuch\n",
		    "update refs/heads/a: invalid <newvalue>: nosuch" },
		{ "update refs/heads/a " A " nosuch\n",
		    "update refs/heads/a: invalid <oldvalue>: nosuch" },
		{ "update refs/heads/a " A,
		    "update refs/heads/a: unexpected end of input when reading "
		    "<oldvalue>" },
		{ "create refs/heads/a\n",
		    "create refs/heads/a: missing <newvalue>" },
		{ "create refs/heads/a " Z "\n",
		    "create refs/heads/a: zero <newvalue>" },
		{ "delete refs/heads/a " Z "\n",
		    "delete refs/heads/a: zero <oldvalue>" },
	};

	open_text(cases[_i].input);
	p.messages = GIT_2_39;
	expect_error(cases[_i].input, cases[_i].error);
}

#define BYTES(input) input, sizeof(input) - 1

TEST(test_errors_z, .times = 6)
{
	static const struct {
		const char *input;
		size_t len;
		const char *error;
	} cases[] = {
		{ BYTES("update refs/heads/a\0" A "\0"),
		    "update refs/heads/a: unexpected end of input when reading "
		    "<old-oid>" },
		{ BYTES("update refs/heads/a\nb\0" A "\0\0"),
		    "invalid ref format: refs/heads/a\nb" },
		{ BYTES("update refs/heads/a\n\0"),
		    "invalid ref format: refs/heads/a\n" },
		{ BYTES("\0"), "empty command in input" },
		/* The next command is read as the missing argument. */
		{ BYTES("symref-update HEAD\0refs/heads/x\0start\0commit\0"),
		    "symref-update HEAD: invalid arg 'start' for old value" },
		{ BYTES("symref-update HEAD\0refs/heads/x\0ref\0"),
		    "symref-update HEAD: expected old value" },
	};

	open_bytes(cases[_i].input, cases[_i].len, '\0');
	expect_error(cases[_i].input, cases[_i].error);
}

/* With -z, quotes are part of the name. */
TEST(test_quotes_z)
{
	open_z("update \"a\"\0" A "\0\0");
	expect_change(REFD_UPDATE, "\"a\"", A, NULL);
	close_input();
}
