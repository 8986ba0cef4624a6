#include "daemon/admin/report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/lib/json.h"
#include "proto/lib/print.h"

/* ---- for people ---- */

static void print_finding(const struct tally_finding *f)
{
	bool is_kept = f->evidence != NULL;

	print_line(stdout, "  %-18s %s%s%s%s%s", store_finding_name(f->finding),
	    f->ref, f->ref[0] != '\0' ? ": " : "", f->text,
	    is_kept ? "; it is kept as " : "", is_kept ? f->evidence : "");
}

void report_text(const struct finding_tally *tally, uint64_t deferred)
{
	char words[TALLY_WORDS_MAX];
	uint64_t repaired = tally_repaired(tally->counts);
	const struct tally_repo *repo;
	size_t i;

	for (repo = tally->repos; repo != NULL; repo = repo->hh.next) {
		tally_words(repo->counts, words);
		print_line(stdout, "%s: %s", repo->path, words);
		for (i = 0; i < repo->nr; i++)
			print_finding(&repo->items[i]);
		if (repo->more > 0)
			print_line(stdout, "  and %" PRIu64 " more",
			    repo->more);
	}
	print_line(stdout,
	    "%" PRIu64 " ref%s repaired, %" PRIu64 " left as another wrote "
	    "them, %" PRIu64 " dropped, %" PRIu64 " deferred",
	    repaired, repaired == 1 ? "" : "s", tally_left(tally->counts),
	    tally_dropped(tally->counts), deferred);
}

/* ---- as JSON ---- */

static void put_counts(struct json *j, const uint64_t *counts)
{
	int i;

	json_begin(j, "totals", '{');
	for (i = 0; i < STORE_FINDINGS; i++)
		json_count(j, store_finding_name((enum store_finding)i),
		    counts[i]);
	json_end(j, '}');
}

static void put_finding(struct json *j, const struct tally_repo *repo,
    const struct tally_finding *f)
{
	char path[2 * REFD_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", repo->path,
	    f->evidence != NULL ? f->evidence : "");
	json_begin(j, NULL, '{');
	json_text(j, "finding", store_finding_name(f->finding));
	json_text(j, "ref", f->ref);
	json_text(j, "text", f->text);
	json_text(j, "evidence", f->evidence != NULL ? path : NULL);
	json_end(j, '}');
}

static void put_repo(struct json *j, const struct tally_repo *repo)
{
	size_t i;

	json_begin(j, NULL, '{');
	json_text(j, "repo", repo->path);
	put_counts(j, repo->counts);
	json_begin(j, "findings", '[');
	for (i = 0; i < repo->nr; i++)
		put_finding(j, repo, &repo->items[i]);
	json_end(j, ']');
	json_count(j, "more", repo->more);
	json_end(j, '}');
}

void report_json(const struct finding_tally *tally, uint64_t deferred, int err)
{
	struct json json = { .to = stdout }, *j = &json;
	const struct tally_repo *repo;

	json_begin(j, NULL, '{');
	json_flag(j, "ok", err == 0);
	json_text(j, "error", err != 0 ? strerror(err) : NULL);
	json_count(j, "repaired", tally_repaired(tally->counts));
	json_count(j, "left", tally_left(tally->counts));
	json_count(j, "dropped", tally_dropped(tally->counts));
	json_count(j, "deferred", deferred);
	put_counts(j, tally->counts);
	json_begin(j, "repositories", '[');
	for (repo = tally->repos; repo != NULL; repo = repo->hh.next)
		put_repo(j, repo);
	json_end(j, ']');
	json_finish(j, '}');
}
