/*
 * Proves which objects an object names, in both formats of ids, and that a
 * malformed object is refused. The content has an allocation of its exact size,
 * so the sanitizer detects a read past the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/object_links.h"
#include "tests/lib/suite.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- contents ---- */

static enum refd_object_format format;
static char content[4096];
static size_t content_len;

static void setup(void)
{
	format = REFD_FORMAT_SHA1;
	content_len = 0;
}

static void setup_sha256(void)
{
	setup();
	format = REFD_FORMAT_SHA256;
}

static struct refd_oid oid_of(uint8_t byte)
{
	struct refd_oid oid = { .bytes = { 0 } };

	memset(oid.bytes, byte, refd_object_format_bytes(format));
	return oid;
}

static void put(const void *data, size_t len)
{
	memcpy(content + content_len, data, len);
	content_len += len;
}

static void put_text(const char *text)
{
	put(text, strlen(text));
}

/* A line "WORD <id>". */
static void put_line(const char *word, uint8_t byte)
{
	const struct refd_oid oid = oid_of(byte);
	char hex[REFD_OID_MAX_HEX + 1];

	refd_oid_hex(&oid, format, hex);
	put_text(word);
	put_text(" ");
	put_text(hex);
	put_text("\n");
}

/* ENTRY: "<mode> <name>". */
static void put_entry(const char *entry, uint8_t byte)
{
	const struct refd_oid oid = oid_of(byte);

	put(entry, strlen(entry) + 1);
	put(oid.bytes, refd_object_format_bytes(format));
}

/* ---- what the callback gets ---- */

struct seen {
	struct object_link links[16];
	char names[16][16];
	size_t nr, stop_at;
};

static int see(void *arg, const struct object_link *link)
{
	struct seen *seen = arg;

	ck_assert_uint_lt(seen->nr, COUNT(seen->links));
	if (link->kind == OBJECT_LINK_ENTRY)
		snprintf(seen->names[seen->nr], sizeof(seen->names[0]), "%s",
		    link->name);
	seen->links[seen->nr++] = *link;
	return seen->nr == seen->stop_at ? 42 : 0;
}

static int look(enum object_type type, size_t len, struct seen *seen)
{
	const size_t stop_at = seen->stop_at;
	char *exact = malloc(len > 0 ? len : 1);
	int r;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, content, len);
	*seen = (struct seen){ .stop_at = stop_at };
	r = object_links_each(type, exact, len, format, see, seen);
	free(exact);
	return r;
}

static void is_link(const struct seen *seen, size_t nth,
    enum object_link_kind kind, uint8_t byte)
{
	const struct refd_oid oid = oid_of(byte);

	ck_assert_uint_lt(nth, seen->nr);
	ck_assert_int_eq(seen->links[nth].kind, kind);
	ck_assert_mem_eq(seen->links[nth].oid.bytes, oid.bytes,
	    sizeof(oid.bytes));
}

static void is_entry(const struct seen *seen, size_t nth, const char *name,
    uint8_t byte, bool is_tree)
{
	is_link(seen, nth, OBJECT_LINK_ENTRY, byte);
	ck_assert_str_eq(seen->names[nth], name);
	ck_assert_int_eq(seen->links[nth].is_tree, is_tree);
}

/* ---- well-formed objects ---- */

static struct suite_case sha256 = { .name = "sha256", .setup = setup_sha256 };

CASE(.name = "sha1", .setup = setup, .also = &sha256);

TEST(a_commit)
{
	struct seen seen = { .nr = 0 };

	put_line("tree", 1);
	put_line("parent", 2);
	put_line("parent", 3);
	put_text("author A <a@x> 1 +0000\n");
	/* Not in the place of a parent. */
	put_line("parent", 4);
	put_text("\nmessage\n");
	ck_assert_int_eq(look(OBJECT_COMMIT, content_len, &seen), 0);
	ck_assert_uint_eq(seen.nr, 3);
	is_link(&seen, 0, OBJECT_LINK_TREE, 1);
	is_link(&seen, 1, OBJECT_LINK_PARENT, 2);
	is_link(&seen, 2, OBJECT_LINK_PARENT, 3);
	seen.stop_at = 2;
	ck_assert_int_eq(look(OBJECT_COMMIT, content_len, &seen), 42);
	ck_assert_uint_eq(seen.nr, 2);
	seen.stop_at = 1;
	ck_assert_int_eq(look(OBJECT_COMMIT, content_len, &seen), 42);
	ck_assert_uint_eq(seen.nr, 1);
}

TEST(a_tag)
{
	struct seen seen = { .nr = 0 };

	put_line("object", 7);
	put_text("type commit\ntag t\n");
	ck_assert_int_eq(look(OBJECT_TAG, content_len, &seen), 0);
	ck_assert_uint_eq(seen.nr, 1);
	is_link(&seen, 0, OBJECT_LINK_TARGET, 7);
	seen.stop_at = 1;
	ck_assert_int_eq(look(OBJECT_TAG, content_len, &seen), 42);
}

/* Of the modes that git knows, with a leading zero, and odd ones, which git
 * takes for the next of these. The commit of a submodule is elsewhere. */
TEST(a_tree)
{
	struct seen seen = { .nr = 0 };

	put_entry("100644 file", 1);
	put_entry("100755 run", 2);
	put_entry("120000 link", 3);
	put_entry("160000 module", 4);
	put_entry("40000 dir", 5);
	put_entry("040000 old dir", 6);
	put_entry("0160000 old module", 7);
	put_entry("100600 ", 8);
	put_entry("40755 odd dir", 9);
	put_entry("160755 odd module", 10);
	put_entry("0 nothing", 11);
	put_entry("60000 device", 12);
	ck_assert_int_eq(look(OBJECT_TREE, content_len, &seen), 0);
	ck_assert_uint_eq(seen.nr, 7);
	is_entry(&seen, 0, "file", 1, false);
	is_entry(&seen, 1, "run", 2, false);
	is_entry(&seen, 2, "link", 3, false);
	is_entry(&seen, 3, "dir", 5, true);
	is_entry(&seen, 4, "old dir", 6, true);
	is_entry(&seen, 5, "", 8, false);
	is_entry(&seen, 6, "odd dir", 9, true);
	seen.stop_at = 4;
	ck_assert_int_eq(look(OBJECT_TREE, content_len, &seen), 42);
	ck_assert_uint_eq(seen.nr, 4);
}

TEST(no_links)
{
	struct seen seen = { .nr = 0 };

	put_line("tree", 1);
	ck_assert_int_eq(look(OBJECT_BLOB, content_len, &seen), 0);
	ck_assert_int_eq(look(OBJECT_BLOB, 0, &seen), 0);
	ck_assert_int_eq(look(OBJECT_TREE, 0, &seen), 0);
	ck_assert_int_eq(look(OBJECT_ABSENT, content_len, &seen), -EBADMSG);
	ck_assert_int_eq(look(OBJECT_ERROR, content_len, &seen), -EBADMSG);
	ck_assert_uint_eq(seen.nr, 0);
}

/* ---- malformed objects ---- */

/* Every cut of a commit and of a tag. */
TEST(cut_lines)
{
	struct seen seen = { .nr = 0 };
	const size_t line = strlen("tree \n") + refd_object_format_hex(format);
	size_t len;

	put_line("tree", 1);
	put_line("parent", 2);
	for (len = 0; len <= content_len; len++) {
		ck_assert_int_eq(look(OBJECT_COMMIT, len, &seen),
		    len < line ? -EBADMSG : 0);
		ck_assert_uint_eq(seen.nr,
		    (len >= line) + (size_t)(len == content_len));
	}
	content_len = 0;
	put_line("object", 3);
	for (len = 0; len <= content_len; len++)
		ck_assert_int_eq(look(OBJECT_TAG, len, &seen),
		    len < content_len ? -EBADMSG : 0);
}

TEST(wrong_lines)
{
	struct seen seen = { .nr = 0 };

	put_line("tree ", 1);
	ck_assert_int_eq(look(OBJECT_COMMIT, content_len, &seen), -EBADMSG);
	content_len = 0;
	put_line("parent", 1);
	put_line("tree", 1);
	ck_assert_int_eq(look(OBJECT_COMMIT, content_len, &seen), -EBADMSG);
	content_len = 0;
	put_line("tree", 1);
	content[10] = 'g';
	ck_assert_int_eq(look(OBJECT_COMMIT, content_len, &seen), -EBADMSG);
	content[10] = '1';
	content[content_len - 1] = ' ';
	ck_assert_int_eq(look(OBJECT_COMMIT, content_len, &seen), -EBADMSG);
	content_len = 0;
	put_text("type commit\n");
	put_line("object", 1);
	ck_assert_int_eq(look(OBJECT_TAG, content_len, &seen), -EBADMSG);
	ck_assert_uint_eq(seen.nr, 0);
}

static const char *const wrong_entries[] = {
	"",              /* no mode */
	" name",         /* no digits */
	"100644",        /* no space */
	"100644name",    /* no space */
	"100644\tname",  /* no space */
	"100684 name",   /* not octal */
	"-10644 name",   /* a sign */
	"00100644 name", /* eight digits */
};

/* The entries before the malformed one are seen. */
TEST(wrong_entry, .times = COUNT(wrong_entries))
{
	struct seen seen = { .nr = 0 };

	put_entry("100644 file", 1);
	put_entry(wrong_entries[_i], 2);
	put_entry("100644 other", 3);
	ck_assert_int_eq(look(OBJECT_TREE, content_len, &seen), -EBADMSG);
	ck_assert_uint_eq(seen.nr, 1);
	is_entry(&seen, 0, "file", 1, false);
}

/* No NUL, no id, or a truncated id. */
TEST(cut_entries)
{
	struct seen seen = { .nr = 0 };
	size_t len, first;

	put_entry("100644 file", 1);
	first = content_len;
	put_entry("40000 dir", 2);
	for (len = 1; len <= content_len; len++) {
		ck_assert_int_eq(look(OBJECT_TREE, len, &seen),
		    len == first || len == content_len ? 0 : -EBADMSG);
		ck_assert_uint_eq(seen.nr,
		    (len >= first) + (size_t)(len == content_len));
	}
}
