/*
 * Fills a journal with history, fast: without flushes and refs. For tests that
 * search a very large history. The daemon must not run.
 *
 *	fill_journal STATE NUMBER REPOSITORY
 *
 * Writes NUMBER records. The newest record is from now, and the interval is a
 * tenth of a second. Nine of ten records belong to repositories that do not
 * exist any more. The rest belongs to REPOSITORY (a common dir that the journal
 * knows). There refs/heads/b0 to b9999 take turns, refs/heads/rare occurs ten
 * times, and the user "seldom" twenty times.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/journal/journal.h"
#include "daemon/store/journal/record.h"

#define AT_ONCE      2000
#define STEP_US      100000
#define WAL_MAX      (64 * 1024 * 1024)
#define OTHERS       100
#define OTHERS_FIRST 1000000 /* repository numbers */

static const char *wanted_path;

static void expect(bool ok, const char *doing)
{
	if (ok)
		return;
	fprintf(stderr, "fill_journal: %s failed\n", doing);
	exit(1);
}

static int find_repo(void *arg, const struct journal_repo *repo)
{
	if (strcmp(repo->path, wanted_path) == 0)
		*(uint64_t *)arg = repo->id;
	return 0;
}

static void make_row(struct journal_row *row, uint64_t n, uint64_t all,
    uint64_t repo, int64_t now_us)
{
	bool is_rare = n % (all / 10) == 7, is_seldom = n % (all / 20) == 17;
	struct record_member member = { .answers = true,
		.worktree = "",
		.action = RECORD_WRITE,
		.had_old = true };
	struct record rec = { .committer = "A U Thor <author@example.com> "
					   "1785542400 +0000",
		.message = "push",
		.nr_updates = 1,
		.digest = n,
		.nr_identities = 1,
		.identities = { { "GL_USER", is_seldom ? "seldom" : "often" } },
		.members = &member,
		.nr_members = 1 };
	uint64_t birth;
	char name[64];
	int i;

	memset(row, 0, sizeof(*row));
	row->kind = JOURNAL_SLICE;
	row->uid = is_seldom ? 4242 : 1000;
	row->pid = 1;
	row->final = true;
	row->time_us = now_us - (int64_t)(all - n) * STEP_US;
	birth = (uint64_t)row->time_us / 1000;
	for (i = 0; i < 6; i++)
		row->txid.bytes[i] = (uint8_t)(birth >> (8 * (5 - i)));
	memcpy(row->txid.bytes + 8, &n, sizeof(n));
	row->repo = is_rare || is_seldom || n % 10 == 0 ?
	    repo :
	    OTHERS_FIRST + n / 10 % OTHERS;
	snprintf(name, sizeof(name), "refs/heads/b%u",
	    (unsigned)(n / 10 % 10000));
	member.name = is_rare ? "refs/heads/rare" : name;
	memcpy(member.old_oid.bytes, &n, sizeof(n));
	memcpy(member.new_oid.bytes + 8, &n, sizeof(n));
	row->body = record_encode(&rec, &row->len);
	expect(row->body != NULL, "memory");
}

int main(int argc, char **argv)
{
	struct journal_config cfg = { .sys = &sys_kernel,
		.boot_id = "00000000-0000-4000-8000-000000000000" };
	static struct journal_row rows[AT_ONCE];
	uint64_t all, n, repo = 0;
	struct journal *j;
	struct timespec now;
	char *why = NULL;
	size_t nr, i;

	if (argc != 4)
		return 129;
	cfg.dir = argv[1];
	all = strtoull(argv[2], NULL, 10);
	wanted_path = argv[3];
	expect(all >= 1000, "NUMBER");
	if (journal_open(&cfg, &j, &why) != 0 || journal_claim(j, &why) != 0) {
		fprintf(stderr, "fill_journal: %s\n", why);
		return 1;
	}
	expect(journal_each_repo(j, find_repo, &repo) == 0 && repo != 0,
	    "finding the repository");
	clock_gettime(CLOCK_REALTIME, &now);
	for (n = 0; n < all; n += nr) {
		for (nr = 0; nr < AT_ONCE && n + nr < all; nr++)
			make_row(&rows[nr], n + nr, all, repo,
			    (int64_t)now.tv_sec * 1000000);
		expect(journal_commit(j, rows, nr, false) == 0, "a commit");
		for (i = 0; i < nr; i++)
			free((void *)(uintptr_t)rows[i].body);
		expect(journal_checkpoint(j, WAL_MAX) == 0, "a checkpoint");
	}
	expect(journal_forget(j, journal_last_lsn(j), true) == 0, "forgetting");
	expect(journal_close(j) == 0, "closing");
	printf("%" PRIu64 " records\n", all);
	return 0;
}
