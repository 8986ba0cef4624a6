/*
 * Proves that refd reads and rewrites packed-refs as git does, with random
 * files: sorted and unsorted, with and without headers and peeled lines, some
 * broken. Every ref listed by git has the same value in refd, and refd finds no
 * other ref. After a rewrite, git lists exactly the remaining refs. If git
 * dies, refd refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/packed_fixture.h"
#include "tests/lib/suite.h"

#define NR_MAX 3000

static unsigned seed;
static char commit[3][REFD_OID_MAX_HEX + 1];
static char names[NR_MAX][64];
static size_t nr_names;

static unsigned pick(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 12) % n;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Distinct names. No name is a directory of another name. */
static void make_names(size_t nr, bool sorted)
{
	static const char *const dirs[] = { "heads/", "heads/a/", "heads/a-/",
		"tags/", "tags/v1.", "x/\xc3\xa9/", "notes/deep/deeper/" };
	size_t i;

	nr_names = nr;
	for (i = 0; i < nr; i++)
		snprintf(names[i], sizeof(names[i]), "refs/%s%u_%zu",
		    dirs[pick(COUNT(dirs))], pick(1000), i);
	if (sorted)
		qsort(names, nr, sizeof(names[0]), by_bytes);
}

static const char *const headers[] = { HEADER,
	"# pack-refs with: peeled sorted fully-peeled \n",
	"# pack-refs with: sorted\n", "# pack-refs with: peeled \n",
	"# pack-refs with:\n", "" };

/* Errors of the last line. */
static const char *const ends[] = { "", "", "", "", "\n", "x\n", A,
	A " refs/heads/zz", "^" A "\n^" A "\n" };

static void make_file(void)
{
	const char *header = headers[pick(COUNT(headers))];
	const char *end = ends[pick(COUNT(ends))];
	bool sorted = strstr(header, "sorted") != NULL || pick(2) == 0;
	char path[4096 + 32];
	size_t i;
	FILE *f;

	make_names(pick(3) == 0 ? pick(20) : pick(NR_MAX), sorted);
	snprintf(path, sizeof(path), "%s/repo/other", tmp_root);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(header, f);
	for (i = 0; i < nr_names; i++) {
		fprintf(f, "%s %s\n", commit[pick(3)], names[i]);
		if (pick(10) == 0)
			fprintf(f, "^%s\n", commit[pick(3)]);
	}
	fputs(end, f);
	ck_assert_int_eq(fclose(f), 0);
	tmp_run("mv repo/other repo/packed-refs");
}

/* The refs listed by git, or NULL if git dies. */
static char *git_list(void)
{
	if (tmp_status("git -C repo for-each-ref --format="
		       "'%%(objectname) %%(refname)' >listed 2>errors") != 0)
		return NULL;
	return tmp_output("cat listed");
}

static bool is_readable(struct packed_snapshot **snap)
{
	int r = packed_snapshot(packed, snap);

	if (r == 0)
		r = packed_check(*snap);
	ck_assert(r == 0 || r == -EBADMSG);
	return r == 0;
}

static void check_listed(const struct packed_snapshot *snap, char *listed,
    size_t nr)
{
	char *line, *save = NULL, hex[REFD_OID_MAX_HEX + 1], other[128];
	const size_t digits = refd_object_format_hex(packed_format);
	char below[REFD_PATH_MAX];
	struct refd_oid oid;
	const char *name;

	for (line = strtok_r(listed, "\n", &save); line != NULL;
	    nr--, line = strtok_r(NULL, "\n", &save)) {
		line[digits] = '\0';
		name = line + digits + 1;
		ck_assert_int_eq(packed_lookup(snap, name, &oid), 1);
		ck_assert_str_eq(refd_oid_hex(&oid, packed_format, hex), line);
		snprintf(other, sizeof(other), "%s!", name);
		ck_assert_int_eq(packed_lookup(snap, other, NULL), 0);
		snprintf(other, sizeof(other), "%s/", name);
		ck_assert_int_eq(packed_find_below(snap, other, below), 0);
		*(strrchr(other, '/')) = '\0';
		strrchr(other, '/')[1] = '\0';
		ck_assert_int_eq(packed_lookup(snap, other, NULL), 0);
		ck_assert_int_eq(packed_find_below(snap, other, below), 1);
		ck_assert_int_eq(strncmp(below, other, strlen(other)), 0);
	}
	ck_assert_uint_eq(nr, 0);
}

/* Deletes some refs, moves some, and adds a new ref. */
static size_t rewrite(void)
{
	struct packed_edit *edits = calloc(nr_names + 1, sizeof(*edits));
	size_t i, nr = 0, gone = 0;
	struct refd_oid oid;
	bool changed;

	ck_assert_int_eq(refd_oid_parse(commit[0], packed_format, &oid), 0);
	qsort(names, nr_names, sizeof(names[0]), by_bytes);
	for (i = 0; i < nr_names; i++) {
		if (pick(5) > 0)
			continue;
		edits[nr].name = names[i];
		edits[nr++].oid = pick(2) == 0 ? &oid : NULL;
		gone += edits[nr - 1].oid == NULL;
	}
	edits[nr++] =
	    (struct packed_edit){ .name = "refs/zzz/new", .oid = &oid };
	ck_assert_int_eq(packed_rewrite_begin(packed, edits, nr, 0644, false,
			     INT64_MAX, &changed),
	    0);
	ck_assert_int_eq(packed_rewrite_finish(packed), 0);
	free(edits);
	return nr_names - gone + 1;
}

static struct suite_case sha256 = { .name = "sha256",
	.setup = packed_setup_sha256,
	.teardown = packed_teardown,
	.seconds = 120 };

CASE(.name = "packed_random", .setup = packed_setup,
    .teardown = packed_teardown, .seconds = 120, .also = &sha256);

TEST(files_are_read_and_rewritten_as_by_git, .times = 3)
{
	const size_t digits = refd_object_format_hex(packed_format);
	struct packed_snapshot *snap = NULL;
	unsigned refused = 0, i;
	char *listed;

	tmp_run(
	    "git init -q --bare repo; cd repo; t=$(git mktree </dev/null); "
	    "for i in 1 2 3; do git commit-tree -m $i $t; done >../commits");
	listed = tmp_get("commits");
	for (i = 0; i < 3; i++)
		memcpy(commit[i], listed + i * (digits + 1), digits);
	free(listed);
	use_repo("repo");
	seed = 1000 * (unsigned)_i + 1;
	for (i = 0; i < 25; i++) {
		make_file();
		listed = git_list();
		ck_assert_msg(is_readable(&snap) == (listed != NULL),
		    "case %d/%u: git and refd disagree", _i, i);
		if (listed != NULL) {
			check_listed(snap, listed, nr_names);
			free(listed);
			packed_snapshot_put(snap);
			nr_names = rewrite();
			listed = git_list();
			snap = take();
			check_listed(snap, listed, nr_names);
		} else {
			refused++;
		}
		packed_snapshot_put(snap);
		snap = NULL;
		free(listed);
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_lt(refused, 20);
}
