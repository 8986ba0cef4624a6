#include "daemon/admin/report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/lib/print.h"

/* ---- for people ---- */

static void print_finding(const struct tally_finding *f)
{
	printf("  %-18s %s%s%s", store_finding_name(f->finding), f->ref,
	    f->ref[0] != '\0' ? ": " : "", f->text);
	if (f->evidence != NULL)
		printf("; it is kept as %s", f->evidence);
	putchar('\n');
}

void report_text(const struct finding_tally *tally, uint64_t deferred)
{
	char words[TALLY_WORDS_MAX];
	uint64_t repaired = tally_repaired(tally->counts);
	const struct tally_repo *repo;
	size_t i;

	for (repo = tally->repos; repo != NULL; repo = repo->hh.next) {
		tally_words(repo->counts, words);
		printf("%s: %s\n", repo->path, words);
		for (i = 0; i < repo->nr; i++)
			print_finding(&repo->items[i]);
		if (repo->more > 0)
			printf("  and %" PRIu64 " more\n", repo->more);
	}
	printf("%" PRIu64 " ref%s repaired, %" PRIu64 " left as another wrote "
	       "them, %" PRIu64 " dropped, %" PRIu64 " deferred\n",
	    repaired, repaired == 1 ? "" : "s", tally_left(tally->counts),
	    tally_dropped(tally->counts), deferred);
}

/* ---- as JSON ---- */

static void put_counts(const uint64_t *counts)
{
	int i;

	printf("{");
	for (i = 0; i < STORE_FINDINGS; i++)
		printf("%s\"%s\": %" PRIu64, i > 0 ? ", " : "",
		    store_finding_name((enum store_finding)i), counts[i]);
	printf("}");
}

static void put_finding(const struct tally_repo *repo,
    const struct tally_finding *f)
{
	printf("{\"finding\": \"%s\", \"ref\": ",
	    store_finding_name(f->finding));
	print_json_string(stdout, f->ref);
	printf(", \"text\": ");
	print_json_string(stdout, f->text);
	if (f->evidence != NULL) {
		char path[2 * REFD_PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", repo->path, f->evidence);
		printf(", \"evidence\": ");
		print_json_string(stdout, path);
	}
	printf("}");
}

static void put_repo(const struct tally_repo *repo)
{
	size_t i;

	printf("{\"repository\": ");
	print_json_string(stdout, repo->path);
	printf(", \"totals\": ");
	put_counts(repo->counts);
	printf(",\n   \"findings\": [");
	for (i = 0; i < repo->nr; i++) {
		printf("%s\n    ", i > 0 ? "," : "");
		put_finding(repo, &repo->items[i]);
	}
	printf("],\n   \"more\": %" PRIu64 "}", repo->more);
}

void report_json(const struct finding_tally *tally, uint64_t deferred, int err)
{
	const struct tally_repo *repo;

	printf("{\"ok\": %s", err == 0 ? "true" : "false");
	if (err != 0) {
		printf(", \"error\": ");
		print_json_string(stdout, strerror(err));
	}
	printf(", \"repaired\": %" PRIu64 ", \"left\": %" PRIu64
	       ", \"dropped\": %" PRIu64 ", \"deferred\": %" PRIu64
	       ",\n \"totals\": ",
	    tally_repaired(tally->counts), tally_left(tally->counts),
	    tally_dropped(tally->counts), deferred);
	put_counts(tally->counts);
	printf(",\n \"repositories\": [");
	for (repo = tally->repos; repo != NULL; repo = repo->hh.next) {
		printf("%s\n  ", repo != tally->repos ? "," : "");
		put_repo(repo);
	}
	printf("]}\n");
}
