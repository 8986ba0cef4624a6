/*
 * Proves that refd reads packed-refs as git writes it, and refuses files that
 * stop git. A replaced file is never mistaken for the cached file, however
 * similar both are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/packed_fixture.h"
#include "tests/lib/suite.h"

static char found[REFD_PATH_MAX];

static struct suite_case sha256 = { .name = "sha256",
	.setup = packed_setup_sha256,
	.teardown = packed_teardown };

CASE(.name = "packed", .setup = packed_setup, .teardown = packed_teardown);

TEST(an_absent_file_is_empty)
{
	struct packed_snapshot *snap = take();

	ck_assert_int_eq(packed_lookup(snap, "refs/heads/x", NULL), 0);
	ck_assert_int_eq(packed_find_below(snap, "refs/", found), 0);
	packed_snapshot_put(snap);
	ck_assert_int_eq(packed_trim(packed), 0);
	replace(A " refs/heads/x\n");
	ck_assert_str_eq(value("refs/heads/x"), A);
	tmp_run("rm packed-refs");
	ck_assert_str_eq(value("refs/heads/x"), "");
}

TEST(what_git_packed_is_read, .also = &sha256)
{
	struct packed_snapshot *snap;
	const size_t digits = refd_object_format_hex(packed_format);
	char *refs, *line, *save = NULL;
	size_t nr = 0;

	make_packed_repo();
	refs = tmp_output("git -C repo for-each-ref "
			  "--format='%%(objectname) %%(refname)'");
	use_repo("repo");
	for (line = strtok_r(refs, "\n", &save); line != NULL;
	    line = strtok_r(NULL, "\n", &save)) {
		line[digits] = '\0';
		ck_assert_str_eq(value(line + digits + 1), line);
		nr++;
	}
	ck_assert_uint_eq(nr, 405);
	snap = take();
	ck_assert_int_eq(packed_find_below(snap, "refs/tags/light/", found), 1);
	ck_assert_str_eq(found, "refs/tags/light/t1");
	ck_assert_int_eq(packed_find_below(snap, "refs/heads/b1/", found), 0);
	ck_assert_int_eq(packed_find_below(snap, "refs/z/", found), 0);
	ck_assert_int_eq(packed_find_below(snap, "refs/a/", found), 0);
	ck_assert_int_eq(packed_lookup(snap, "refs/heads/b", NULL), 0);
	ck_assert_int_eq(packed_lookup(snap, "refs/heads/b2000", NULL), 0);
	ck_assert_int_eq(packed_lookup(snap, "", NULL), 0);
	packed_snapshot_put(snap);
	free(refs);
}

static const char *const well_formed[] = {
	"",
	HEADER,
	"# pack-refs with:\n",
	A " refs/heads/x\n",
	A " refs/heads/x\n^" B "\n",
	HEADER A " refs/heads/x\n^" B "\n" B " refs/heads/y\n",
	"# pack-refs with: sorted \n" B " refs/heads/z\n" A " refs/heads/x\n",
	"AAAAAAAAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa refs/heads/x\n",
};

static const char *const malformed[] = {
	"\n",
	"x\n",
	"#",
	"# pack-refs with:",
	"# other\n",
	HEADER "# again\n",
	HEADER "\n",
	A " refs/heads/x",
	A " refs/heads/x\n^" B,
	A " refs/heads/x\n^" B "\n^" B "\n",
	A " refs/heads/x\n^" B " \n",
	A " refs/heads/x\n^bbbb\n",
	A "\n",
	A " \n",
	A "  \n" A,
	A "a refs/heads/x\n",
	"gaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa refs/heads/x\n",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa refs/heads/x\n",
	"^" B "\n" A " refs/heads/x\n",
	HEADER "^" B "\n",
	A " refs/heads/x\r\n",
	HEADER A " refs/heads/x\n\n",
	HEADER A " refs/heads/x\n" B,
};

TEST(a_well_formed_file_is_taken)
{
	size_t i;

	for (i = 0; i < COUNT(well_formed); i++) {
		replace(well_formed[i]);
		ck_assert_str_eq(value("refs/heads/x"),
		    strstr(well_formed[i], "/x") != NULL ? A : "");
	}
}

TEST(a_malformed_file_is_refused)
{
	struct packed_snapshot *snap = NULL;
	size_t i;

	for (i = 0; i < COUNT(malformed); i++) {
		replace(malformed[i]);
		ck_assert_msg(packed_snapshot(packed, &snap) == -EBADMSG,
		    "'%s' was taken", malformed[i]);
	}
	tmp_put_bytes("packed-refs.nul", A " refs/heads/x\0y\n", 56);
	tmp_run("mv packed-refs.nul packed-refs");
	ck_assert_int_eq(packed_snapshot(packed, &snap), -EBADMSG);
	ck_assert_ptr_null(snap);
	replace(A " refs/heads/x\n");
	ck_assert_str_eq(value("refs/heads/x"), A);
}

TEST(the_other_object_format_is_malformed, .in = &sha256)
{
	static const char end[] = "aaaaaaaaaaaaaaaaaaaaaaaa";
	struct packed_snapshot *snap;
	char *text;

	replace(A " refs/heads/x\n");
	ck_assert_int_eq(packed_snapshot(packed, &snap), -EBADMSG);
	ck_assert_int_gt(asprintf(&text, "%s%s refs/heads/x\n^%s\n", A, end, A),
	    0);
	replace(text);
	free(text);
	ck_assert_int_eq(packed_snapshot(packed, &snap), -EBADMSG);
	ck_assert_int_gt(
	    asprintf(&text, "%s%s refs/heads/x\n^%s%s\n", A, end, B, end), 0);
	replace(text);
	free(text);
	ck_assert_int_eq(strncmp(value("refs/heads/x"), A, strlen(A)), 0);
}

TEST(a_directory_or_a_fifo_is_an_error)
{
	struct packed_snapshot *snap;

	tmp_mkdir("packed-refs");
	ck_assert_int_eq(packed_snapshot(packed, &snap), -EISDIR);
	tmp_run("rmdir packed-refs; mkfifo packed-refs");
	ck_assert_int_eq(packed_snapshot(packed, &snap), -EINVAL);
}

TEST(an_unsorted_file_is_sorted_in_memory)
{
	struct packed_snapshot *snap;

	/* the second file has a wrong header */
	replace(B " refs/z\n" A " refs/m\n^" B "\n" B " refs/a\n");
	ck_assert_str_eq(value("refs/a"), B);
	ck_assert_str_eq(value("refs/m"), A);
	replace(HEADER B " refs/z/1\n" A " refs/m\n" B " refs/a\n");
	snap = take();
	ck_assert_int_eq(packed_find_below(snap, "refs/z/", found), 1);
	ck_assert_str_eq(found, "refs/z/1");
	ck_assert_int_eq(packed_lookup(snap, "refs/m", NULL), 1);
	packed_snapshot_put(snap);
}

/* Bytes from 0x80 on sort after ASCII, as in git. */
TEST(names_are_compared_as_unsigned_bytes)
{
	replace(HEADER A " refs/heads/a\n" B " refs/heads/\xc3\xa9\n");
	ck_assert_str_eq(value("refs/heads/\xc3\xa9"), B);
	ck_assert_str_eq(value("refs/heads/a"), A);
}

/* Same length, same second, and, if the file system reuses inode numbers at
 * once, the same inode number. */
TEST(a_replaced_file_is_never_taken_for_the_cached_one)
{
	int i;

	for (i = 0; i < 500; i++) {
		replace(i % 2 ? A " refs/heads/x\n" : B " refs/heads/x\n");
		ck_assert_str_eq(value("refs/heads/x"), i % 2 ? A : B);
	}
	ck_assert_int_eq(packed_trim(packed), 1);
}

TEST(an_unchanged_file_is_not_read_again)
{
	struct packed_snapshot *a, *b;

	sys.openat = counting_openat;
	nr_opens = 0;
	replace(A " refs/heads/x\n");
	a = take();
	b = take();
	ck_assert_ptr_eq(a, b);
	ck_assert_uint_eq(nr_opens, 1);
	replace(B " refs/heads/x\n");
	packed_snapshot_put(b);
	b = take();
	ck_assert_ptr_ne(a, b);
	ck_assert_int_eq(packed_lookup(a, "refs/heads/x", NULL), 1);
	packed_snapshot_put(a);
	packed_snapshot_put(b);
}
