/*
 * Proves that the bytes of a row's objects are refused when malformed, that the
 * memory of all rows has a bound, that a node notices objects that are missing
 * behind a row, and which old values a new value has behind it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/row_objects_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* Makes r with the commits a and b, and s with the objects of a. */
#define PAIR                                                                   \
	"git init -q r && cd r && mkdir d && echo f >f && echo g >d/g && "     \
	"git add . && git commit -q -m a && git tag a && git clone -q --bare " \
	". ../s && echo f2 >f && echo h >d/h && git update-index --add "       \
	"--cacheinfo 160000,$(git rev-parse a | tr 0-9 1-90),m && git add f "  \
	"d && git commit -q -m b && git tag b && git tag -m t t"

/* ---- bytes ---- */

struct counted {
	size_t nr, bytes;
	int result; /* of the second call */
};

static int count(void *arg, const struct row_object *object)
{
	struct counted *counted = arg;

	counted->bytes += object->len;
	return ++counted->nr == 2 ? counted->result : 0;
}

/* The bytes have an allocation of the exact size. */
static int each(const void *bytes, size_t len, struct counted *counted)
{
	uint8_t *exact = malloc(len > 0 ? len : 1);
	int r;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, bytes, len);
	counted->nr = counted->bytes = 0;
	r = row_objects_each(exact, len, count, counted);
	free(exact);
	return r;
}

static struct suite_case sha256 = { .name = "sha256",
	.setup = odb_rig_setup_sha256,
	.teardown = row_objects_rig_teardown,
	.seconds = 120 };

CASE(.name = "sha1", .setup = odb_rig_setup,
    .teardown = row_objects_rig_teardown, .seconds = 120, .also = &sha256);

/* A tag, an empty file, and a file of 258 bytes. */
TEST(cut_bytes)
{
	uint8_t bytes[5 + 3 + 5 + 5 + 258] = { 4, 3, 0, 0, 0, 't', 'a', 'g', 3,
		0, 0, 0, 0, 3, 2, 1, 0, 0 };
	struct counted counted = { .nr = 0 };
	size_t len;
	int r;

	for (len = 0; len <= sizeof(bytes); len++) {
		r = each(bytes, len, &counted);
		ck_assert_int_eq(r,
		    len == 0 || len == 8 || len == 13 || len == sizeof(bytes) ?
			0 :
			-EBADMSG);
		ck_assert_uint_eq(counted.nr,
		    (size_t)(len >= 8) + (len >= 13) + (len == sizeof(bytes)));
	}
	ck_assert_uint_eq(counted.bytes, 3 + 258);
	counted.result = -EXDEV;
	ck_assert_int_eq(each(bytes, sizeof(bytes), &counted), -EXDEV);
	counted.result = 7;
	ck_assert_int_eq(each(bytes, sizeof(bytes), &counted), 7);
	ck_assert_uint_eq(counted.nr, 2);
	bytes[17] = 0x80;
	counted.result = 0;
	ck_assert_int_eq(each(bytes, sizeof(bytes), &counted), -EBADMSG);
}

TEST(types)
{
	uint8_t bytes[5] = { 0 };
	struct counted counted = { .nr = 0 };
	int type;

	for (type = 0; type < 256; type++) {
		bytes[0] = (uint8_t)type;
		ck_assert_int_eq(each(bytes, sizeof(bytes), &counted),
		    type >= 1 && type <= 4 ? 0 : -EBADMSG);
	}
}

/* ---- memory ---- */

static struct row_objects *room(size_t len, size_t nr_rows)
{
	return row_objects_new(len, nr_rows, 0, 0);
}

TEST(memory)
{
	const size_t most = ROW_OBJECTS_HELD - sizeof(struct row_objects);
	struct row_objects *large, *small;

	row_objects_free(NULL);
	ck_assert_ptr_null(room(most + 1, 1));
	ck_assert_ptr_null(room(most / 2 + 1, 2));
	ck_assert_ptr_null(row_objects_new(most, 1, 1, 0));
	ck_assert_ptr_null(row_objects_new(most, 1, 0, 1));
	small = row_objects_new(100, 4, 3, 2);
	ck_assert_ptr_nonnull(small);
	ck_assert_uint_eq(small->len, 100);
	ck_assert_uint_eq(small->charged,
	    sizeof(*small) + 400 + 3 * sizeof(*small->tips) +
		2 * sizeof(*small->ancestors));
	memset(small->ancestors, 1, 2 * sizeof(*small->ancestors));
	memset(small->tips, 2, 3 * sizeof(*small->tips));
	memset(small->bytes, 3, small->len);
	ck_assert_uint_eq(small->ancestors[1].oid.bytes[0], 1);
	ck_assert_uint_eq(small->tips[2].bytes[0], 2);
	ck_assert_ptr_null(room(most - small->charged + 1, 1));
	large = room(most - small->charged, 1);
	ck_assert_ptr_nonnull(large);
	ck_assert_ptr_null(room(0, 1));
	row_objects_free(small);
	row_objects_free(large);
	large = room(most, 1);
	ck_assert_ptr_nonnull(large);
	row_objects_free(large);
}

/* Each row of a divided transaction counts. */
TEST(memory_of_a_collection)
{
	size_t len, rest;

	tmp_run(PAIR);
	row_objects_rig_know("a");
	row_objects_rig_has("b:f", "b:f");
	len = row_objects_rig->len;
	rest = row_objects_rig->charged - len;
	row_objects_rig_rows = (ROW_OBJECTS_HELD - rest) / len;
	row_objects_rig_has("b:f", "b:f");
	ck_assert_uint_eq(row_objects_rig->charged,
	    len * row_objects_rig_rows + rest);
	row_objects_rig_rows++;
	row_objects_rig_refuses("b:f");
	row_objects_rig_rows--;
	row_objects_rig_has("b:f", "b:f");
}

/* ---- ancestors ---- */

static bool is_behind(const char *tip, const char *old)
{
	const struct refd_oid of_tip = odb_rig_named(tip);
	const struct refd_oid of_old = odb_rig_named(old);

	return row_objects_is_behind(row_objects_rig, &of_tip, &of_old);
}

/* The commits 1 to 5 in a row, SIDE behind 2, and a merge M of SIDE and 5. */
#define COMMITS                                                                \
	"git init -q r && cd r && for i in 1 2 3 4 5; do git commit -q "       \
	"--allow-empty -m $i && git tag $i; done && git checkout -q -b side "  \
	"2 && git commit -q --allow-empty -m side && git merge -q -m m 5 && "  \
	"git tag m && git reset -q --hard m^1 && git tag of-5 -m x 5"

TEST(ancestors)
{
	tmp_run(COMMITS);
	row_objects_rig_know("2");
	ck_assert_int_eq(row_objects_rig_collect("m 4 side"), 0);
	ck_assert(is_behind("m", "m"));
	ck_assert(is_behind("m", "5"));
	ck_assert(is_behind("m", "4"));
	ck_assert(is_behind("m", "3"));
	ck_assert(is_behind("m", "side"));
	/* The known commit, and what is behind it. */
	ck_assert(is_behind("m", "2"));
	ck_assert(!is_behind("m", "1"));
	/* One tip is behind the other. */
	ck_assert(is_behind("4", "4"));
	ck_assert(is_behind("4", "3"));
	ck_assert(is_behind("4", "2"));
	ck_assert(!is_behind("4", "m"));
	ck_assert(!is_behind("4", "5"));
	ck_assert(!is_behind("4", "side"));
	ck_assert(is_behind("side", "2"));
	ck_assert(!is_behind("side", "3"));
	ck_assert(!is_behind("side", "m"));
	/* No tip; not a commit. */
	ck_assert(!is_behind("5", "5"));
	ck_assert(!is_behind("5", "4"));
	ck_assert(!is_behind("m", "m^{tree}"));
}

TEST(ancestors_of_other_tips)
{
	tmp_run(COMMITS);
	row_objects_rig_know("4 2");
	ck_assert_int_eq(row_objects_rig_collect("4 of-5 5 m^{tree}"), 0);
	/* Nothing is known of what a known tip has behind it. */
	ck_assert(is_behind("4", "4"));
	ck_assert(!is_behind("4", "3"));
	ck_assert(is_behind("of-5", "of-5"));
	ck_assert(!is_behind("of-5", "5"));
	ck_assert(!is_behind("of-5", "4"));
	ck_assert(is_behind("5", "4"));
	ck_assert(!is_behind("5", "3"));
	ck_assert(is_behind("m^{tree}", "m^{tree}"));
}

/* A row can have 64 tips. Each tip is a child of the tip before. */
TEST(many_ancestors)
{
	char tips[64 * 8];
	size_t i, len = 0;

	tmp_run("git init -q r && cd r && for i in $(seq 64); do git commit -q "
		"--allow-empty -m $i && git tag t$i; done");
	for (i = 1; i <= 64; i++)
		len += (size_t)snprintf(tips + len, sizeof(tips) - len, " t%zu",
		    i);
	row_objects_rig_know("t1^{tree} t1");
	ck_assert_int_eq(row_objects_rig_collect(tips), 0);
	ck_assert_uint_eq(row_objects_rig->nr_tips, 64);
	ck_assert(is_behind("t64", "t1"));
	ck_assert(is_behind("t64", "t63"));
	ck_assert(!is_behind("t63", "t64"));
	ck_assert(is_behind("t1", "t1"));
	ck_assert(!is_behind("t1", "t64"));
	ck_assert(is_behind("t33", "t32"));
	ck_assert(!is_behind("t32", "t33"));
}

/* ---- the other node ---- */

/* What row_objects_missing() says about the collection in the repository
 * NAME. */
static int missing_in(const char *name, struct refd_oid *missing)
{
	odb_rig_open(name);
	return row_objects_missing(row_objects_rig->bytes, row_objects_rig->len,
	    odb_rig, odb_rig_format, missing);
}

static void lacks(const char *revision)
{
	const struct refd_oid wanted = odb_rig_named(revision);
	struct refd_oid missing;

	ck_assert_int_eq(missing_in("s", &missing), 1);
	ck_assert(refd_oid_eq(&missing, &wanted));
}

/* Before a command: $f is the file in s of an object of r. */
#define FILE_IN_S                                                              \
	"p=$(git -C r rev-parse %s) && f=s/objects/${p%%${p#??}}/${p#??} && "

TEST(missing_objects)
{
	/* Old objects, and objects of the row. */
	static const char *const revisions[] = { "a", "a:d/g", "b", "b^{tree}",
		"b:f", "b:d/h" };
	struct refd_oid missing;
	size_t i;

	tmp_run(PAIR " && cp -rn .git/objects ../s && cd .. && cp -r s keep");
	row_objects_rig_know("a");
	row_objects_rig_has("t", "t b b^{tree} b:f b:d b:d/h");
	ck_assert_int_eq(missing_in("s", &missing), 0);
	for (i = 0; i < sizeof(revisions) / sizeof(revisions[0]); i++) {
		tmp_run(FILE_IN_S "rm -f $f", revisions[i]);
		lacks(revisions[i]);
		tmp_run(FILE_IN_S ": >$f", revisions[i]);
		ck_assert_int_eq(missing_in("s", &missing), -EIO);
		tmp_run("rm -rf s && cp -r keep s");
	}
	/* What the row does not name is not looked for. */
	tmp_run(FILE_IN_S "rm -f $f", "a:f");
	ck_assert_int_eq(missing_in("s", &missing), 0);
}

static int missing_behind(const void *bytes, size_t len)
{
	struct refd_oid missing;

	return row_objects_missing(bytes, len, odb_rig, odb_rig_format,
	    &missing);
}

TEST(malformed_objects)
{
	odb_rig_make_objects();
	odb_rig_open("r");
	ck_assert_int_eq(missing_behind("", 0), 0);
	ck_assert_int_eq(missing_behind("\3\0\0\0\0\3", 6), -EBADMSG);
	ck_assert_int_eq(missing_behind("\2\1\0\0\0x", 6), -EBADMSG);
	ck_assert_int_eq(missing_behind("\1\1\0\0\0x", 6), -EBADMSG);
	ck_assert_int_eq(missing_behind("\4\1\0\0\0x", 6), -EBADMSG);
	ck_assert_int_eq(missing_behind("\3\1\0\0\0x", 6), 0);
}
