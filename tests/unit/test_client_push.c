/*
 * Proves that the hook understands receive-pack, byte by byte and in one piece,
 * and that receive-pack understands the hook: versions, features, names that
 * can't be reported, ids of a different length, push options and namespaces.
 * Verdicts come in input order on one line each. Verdicts of a further hook are
 * copied.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/push/push.h"
#include "proto/limits.h"
#include "tests/lib/suite.h"

#define A   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define Z   "0000000000000000000000000000000000000000"
#define Z64 "0000000000000000000000000000000000000000000000000000000000000000"
#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct push push;
static struct push_reader in;
static const char *why;
static struct pkt_buf buf;

static void setup(void)
{
	memset(&push, 0, sizeof(push));
	memset(&in, 0, sizeof(in));
	memset(&buf, 0, sizeof(buf));
	in.fd = -1;
	why = NULL;
}

static void teardown(void)
{
	push_done(&push);
	push_reader_done(&in);
	pkt_buf_done(&buf);
	if (in.fd >= 0)
		close(in.fd);
}

/* The content of BUF becomes the hook's standard input. */
static void serve(void)
{
	int ends[2], size = 1 << 20;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	ck_assert_int_eq(write(ends[0], buf.data, buf.len), (ssize_t)buf.len);
	close(ends[0]);
	in.fd = ends[1];
	pkt_buf_done(&buf);
	memset(&buf, 0, sizeof(buf));
}

static void put(const char *s)
{
	pkt_put(&buf, s, strlen(s));
}

static void read_commands(void)
{
	pkt_flush(&buf);
	serve();
	ck_assert(push_read_commands(&in, &push, &why));
}

#define put_bytes(s) pkt_put(&buf, s, sizeof(s) - 1)

static void expect_out(const char *bytes, size_t len)
{
	ck_assert(!pkt_buf_failed(&buf));
	ck_assert_msg(buf.len == len && !memcmp(buf.data, bytes, len),
	    "wrote %.*s", (int)buf.len, buf.data);
}

/* ---- the greeting ---- */

CASE(.setup = setup, .teardown = teardown);

TEST(test_versions, .times = 9)
{
	static const struct {
		const char *packet;
		size_t len;
		bool ok, atomic, options;
	} cases[] = {
		{ "version=1", 9, true, false, false },
		{ "version=1\n", 10, true, false, false },
		{ "version=1\0atomic", 16, true, true, false },
		{ "version=1\0push-options atomic\n", 30, true, true, true },
		{ "version=1\0push-options", 22, true, false, true },
		{ "version=1\0subatomic atomics", 27, true, false, false },
		{ "version=2", 9, false, false, false },
		{ "version=10", 10, false, false, false },
		{ "version", 7, false, false, false },
	};

	pkt_put(&buf, cases[_i].packet, cases[_i].len);
	pkt_flush(&buf);
	serve();
	ck_assert_int_eq(push_read_version(&in, &push, &why), cases[_i].ok);
	ck_assert_int_eq(push.atomic, cases[_i].atomic);
	ck_assert_int_eq(push.has_options, cases[_i].options);
	ck_assert_int_eq(why == NULL, cases[_i].ok);
}

TEST(test_greets)
{
	push_put_version(false, &buf);
	expect_out("000dversion=10000", 17);
	pkt_buf_done(&buf);
	push_put_version(true, &buf);
	expect_out("001aversion=1\0push-options0000", 30);
}

/* ---- commands ---- */

TEST(test_commands)
{
	char hex[REFD_OID_MAX_HEX + 1];

	put("version=1");
	pkt_flush(&buf);
	put(A " " Z " refs/heads/a");
	put(Z " " A " refs/heads/caf\303\251");
	pkt_flush(&buf);
	serve();
	ck_assert(push_read_version(&in, &push, &why));
	ck_assert(push_read_commands(&in, &push, &why));
	ck_assert_uint_eq(push.nr, 2);
	ck_assert_str_eq(push.commands[0].name, "refs/heads/a");
	ck_assert_str_eq(
	    refd_oid_hex(&push.commands[0].old_oid, REFD_FORMAT_SHA1, hex), A);
	ck_assert(refd_oid_is_null(&push.commands[0].new_oid));
	ck_assert(!push.commands[1].unreportable);
	ck_assert(refd_oid_is_null(&push.commands[1].old_oid));
}

TEST(test_many)
{
	char line[128];
	int i;

	for (i = 0; i < 1500; i++) {
		snprintf(line, sizeof(line), Z " " A " refs/heads/b%d", i);
		put(line);
	}
	read_commands();
	ck_assert_uint_eq(push.nr, 1500);
	ck_assert_str_eq(push.commands[1499].name, "refs/heads/b1499");
}

TEST(test_unreportable)
{
	put(Z " " A " refs/heads/a b");
	put(Z " " A " refs/heads/a\nb");
	put(Z " " A " refs/heads/a\n");
	put(Z " " A " refs/heads/\001");
	put(Z " " A " refs/heads/\177");
	put_bytes(Z " " A " refs/heads/a\0b");
	put(Z " " A " ");
	put(Z " " A " refs/heads/good");
	read_commands();
	ck_assert_uint_eq(push.nr, 8);
	ck_assert(!push.commands[7].unreportable);
	while (--push.nr > 0)
		ck_assert(push.commands[push.nr - 1].unreportable);
	push.nr = 8;
	push_refuse(&push, "no");
	push_put_report(&push, &buf);
	expect_out("0019ng refs/heads/good no0000", 29);
}

TEST(test_sha256)
{
	char hex[REFD_OID_MAX_HEX + 1];

	put(A64 " " Z64 " refs/heads/a");
	read_commands();
	ck_assert_int_eq(push.commands[0].object_format, REFD_FORMAT_SHA256);
	ck_assert_str_eq(push.commands[0].name, "refs/heads/a");
	ck_assert_str_eq(refd_oid_hex(&push.commands[0].old_oid,
			     REFD_FORMAT_SHA256, hex),
	    A64);
	ck_assert(refd_oid_is_null(&push.commands[0].new_oid));
}

TEST(test_two_formats)
{
	put(A64 " " A64 " refs/heads/a");
	put(A " " A " refs/heads/b");
	pkt_flush(&buf);
	serve();
	ck_assert(!push_read_commands(&in, &push, &why));
	ck_assert_str_eq(why, "receive-pack sent a malformed command");
}

TEST(test_broken_input, .times = 6)
{
	switch (_i) {
	case 0: /* ends too early */
		put(Z " " A " refs/heads/a");
		break;
	case 1:
		put("hello");
		break;
	case 2:
		put(Z " " A);
		break;
	case 3:
		put(Z "x" A " refs/heads/a");
		break;
	case 4:
		put("g" A " " A " refs/heads/a");
		break;
	case 5:
		pkt_delim(&buf);
		break;
	}
	if (_i > 0)
		pkt_flush(&buf);
	serve();
	ck_assert(!push_read_commands(&in, &push, &why));
	ck_assert_ptr_nonnull(why);
}

TEST(test_no_pkt_line)
{
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_eq(write(ends[0], "zzzz", 4), 4);
	in.fd = ends[1];
	ck_assert(!push_read_version(&in, &push, &why));
	close(ends[0]);
}

/* ---- the report ---- */

static void read_three(void)
{
	put(Z " " A " refs/heads/c");
	put(Z " " A " refs/heads/a");
	put(Z " " A " refs/heads/b");
	read_commands();
}

TEST(test_report)
{
	static const char wanted[] = "0013ok refs/heads/c"
				     "0022ng refs/heads/a two lines: \"x\""
				     "0013ok refs/heads/b"
				     "0000";

	read_three();
	push.commands[1].ng = strdup("two\nlines:\t\"x\"");
	push_put_report(&push, &buf);
	expect_out(wanted, sizeof(wanted) - 1);
}

TEST(test_fall_through)
{
	static const char wanted[] =
	    "0013ok refs/heads/c0017option fall-through"
	    "0013ok refs/heads/a0017option fall-through"
	    "0013ok refs/heads/b0017option fall-through0000";

	read_three();
	push.commands[0].is_gits = true;
	push.commands[1].is_gits = true;
	push.commands[2].is_gits = true;
	push_put_report(&push, &buf);
	expect_out(wanted, sizeof(wanted) - 1);
}

TEST(test_refuse_keeps_verdicts)
{
	read_three();
	push.commands[1].ng = strdup("first");
	push_refuse(&push, "later");
	ck_assert_str_eq(push.commands[0].ng, "later");
	ck_assert_str_eq(push.commands[1].ng, "first");
}

TEST(test_long_reason)
{
	char *reason = malloc(REFD_PACKET_MAX + 1);
	struct pkt pkt;

	memset(reason, 'r', REFD_PACKET_MAX);
	reason[REFD_PACKET_MAX] = '\0';
	read_three();
	push_refuse(&push, reason);
	push_put_report(&push, &buf);
	ck_assert(!pkt_buf_failed(&buf));
	ck_assert_int_eq(pkt_parse(buf.data, buf.len, &pkt), REFD_PACKET_MAX);
	free(reason);
}

/* Packets of a further hook are copied. */
TEST(test_said)
{
	static const char wanted[] =
	    "0013ok refs/heads/c"
	    "0013ok refs/heads/a0014option refname x0013ok refs/heads/a"
	    "0016ng refs/heads/b no0000";
	struct pkt_buf *said;

	read_three();
	said = &push.commands[1].said;
	pkt_putf(said, "ok refs/heads/a");
	pkt_putf(said, "option refname x");
	pkt_putf(said, "ok refs/heads/a");
	pkt_putf(&push.commands[2].said, "ng refs/heads/b no");
	push_put_report(&push, &buf);
	expect_out(wanted, sizeof(wanted) - 1);
}

/* As packets, with an empty option and an option with a newline. */
TEST(test_options)
{
	static const char three[] = "0008one\n00040007a\nb0000";

	put(Z " " A " refs/heads/c");
	read_commands();
	close(in.fd);
	push_reader_done(&in);
	buf.data = strdup(three);
	buf.len = buf.size = sizeof(three) - 1;
	serve();
	ck_assert(push_read_options(&in, &push, &why));
	ck_assert_uint_eq(push.options.len, sizeof(three) - 5);
	ck_assert_int_eq(memcmp(push.options.data, three, sizeof(three) - 5),
	    0);
}

TEST(test_namespace, .times = 5)
{
	static const struct {
		const char *path, *ref;
	} cases[] = {
		{ NULL, "refs/heads/c" },
		{ "", "refs/heads/c" },
		{ "t", "refs/namespaces/t/refs/heads/c" },
		{ "t/u", "refs/namespaces/t/refs/namespaces/u/refs/heads/c" },
		{ "/t//u/",
		    "refs/namespaces/t/refs/namespaces/u/refs/heads/c" },
	};

	read_three();
	push_set_namespace(&push, cases[_i].path);
	ck_assert_str_eq(push.commands[0].ref, cases[_i].ref);
	ck_assert_str_eq(push.commands[0].name, "refs/heads/c");
}
