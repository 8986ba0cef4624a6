#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/colour.h"
#include "proto/lib/finding_internal.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/print.h"
#include "proto/lib/progress.h"

static const char *const severities[] = {
#define X(symbol, word) word,
	FINDING_SEVERITY_TABLE(X)
#undef X
};

static const enum colour colours[] = {
	[FINDING_NOTE] = COLOUR_HEADING,
	[FINDING_WARNING] = COLOUR_WARNING,
	[FINDING_ERROR] = COLOUR_ERROR,
};

/* Users copy remedies into a shell, so a path with special characters of a
 * shell is not put into a remedy. */
static const char *remedy_repo(const char *repo)
{
	return repo[strspn(repo,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		   "0123456789_./+@:-")] == '\0' ?
	    repo :
	    "";
}

/* REPO "": TEXT is about many repositories. Owned; NULL: no memory. */
static char *fill_in(const char *text, const char *repo)
{
	return finding_replace_path(text, FINDING_REPOSITORY,
	    *repo ? repo : FINDING_REPOSITORY);
}

static void print_filled_in(const char *before, const char *text,
    const char *repo)
{
	char *all = fill_in(text, repo);

	print_line(stdout, "%s%s", before, all ? all : text);
	free(all);
}

static void json_filled_in(struct json *j, const char *key, const char *text,
    const char *repo)
{
	char *all = fill_in(text, repo);

	json_text(j, key, all ? all : text);
	free(all);
}

/* ---- one finding ---- */

static void print_json_begin(struct findings *f)
{
	if (f->json.to)
		return;
	f->json.to = stdout;
	json_begin(&f->json, NULL, '{');
	json_begin(&f->json, "findings", '[');
}

static void print_json(struct findings *f, const struct finding *one)
{
	struct json *j = &f->json;

	print_json_begin(f);
	json_begin(j, NULL, '{');
	json_text(j, "id", finding_kind(one->id)->id);
	json_text(j, "severity", severities[finding_kind(one->id)->severity]);
	json_text(j, "repo", one->repo);
	json_text(j, "ref", one->ref);
	json_text(j, "file", one->file);
	json_filled_in(j, "text", one->text, one->repo);
	json_filled_in(j, "remedy", finding_remedy(one),
	    remedy_repo(one->repo));
	json_flag(j, "can_repair",
	    finding_kind(one->id)->repair != REPAIR_NONE);
	json_filled_in(j, "repair", one->repair, one->repo);
	json_flag(j, "repaired", one->is_repaired);
	json_end(j, '}');
}

static void print_object(const struct finding *f)
{
	const char *below = *f->ref ? f->ref : f->file;

	print_part(stdout, "%s%s%s", f->repo, *f->repo && *below ? " " : "",
	    below);
}

static const char *plural(size_t nr, const char *one, const char *many)
{
	return nr == 1 ? one : many;
}

/* "/srv/a.git refs/heads/a: ", or how many there are. */
static void print_objects(struct finding_held *const *group, size_t nr,
    size_t repos)
{
	const struct finding *first = &group[0]->finding;

	if (nr == 1) {
		print_object(first);
		print_part(stdout, "%s",
		    *first->repo || *first->ref || *first->file ? ": " : "");
	} else if (!*first->repo) {
		print_part(stdout, "%zu places: ", nr);
	} else if (nr == repos) {
		print_part(stdout, "%zu repositories: ", repos);
	} else {
		print_part(stdout, "%zu places in %zu %s: ", nr, repos,
		    plural(repos, "repository", "repositories"));
	}
}

static bool is_next_repo(struct finding_held *const *group, size_t at)
{
	return at == 0 ||
	    strcmp(group[at]->finding.repo, group[at - 1]->finding.repo) != 0;
}

static void print_names(struct finding_held *const *group, size_t nr)
{
	size_t i, repos = 0, in_repo = 0, shown = 0;

	for (i = 0; i < nr; i++) {
		in_repo = is_next_repo(group, i) ? 1 : in_repo + 1;
		repos += is_next_repo(group, i);
		if (repos > FINDING_NAMES_MAX || in_repo > FINDING_NAMES_MAX)
			continue;
		shown++;
		print_part(stdout, "    ");
		print_object(&group[i]->finding);
		print_lines(stdout, "\n");
	}
	if (shown < nr)
		print_line(stdout, "    and %zu more; -v shows each",
		    nr - shown);
}

static void print_group(struct finding_held *const *group, size_t nr)
{
	const struct finding *first = &group[0]->finding;
	const struct finding_kind *kind = finding_kind(first->id);
	const char *repo = nr == 1 ? first->repo : "";
	size_t i, repos = 0;

	for (i = 0; i < nr; i++)
		repos += is_next_repo(group, i);
	if (first->is_repaired)
		colour_print(stdout, COLOUR_OK, "repaired");
	else
		colour_print(stdout, colours[kind->severity],
		    severities[kind->severity]);
	print_part(stdout, ": %s: ", kind->id);
	print_objects(group, nr, repos);
	print_filled_in("", first->text, repo);
	if (nr > 1)
		print_names(group, nr);
	if (*first->repair)
		print_filled_in("    ", first->repair, repo);
	if (!first->is_repaired) {
		print_part(stdout, "    ");
		colour_print(stdout, COLOUR_HEADING, "remedy");
		print_filled_in(": ", finding_remedy(first), remedy_repo(repo));
	}
}

void finding_print_group(struct findings *f, struct finding_held *const *group,
    size_t nr)
{
	progress_clear();
	if (f->as_json)
		print_json(f, &group[0]->finding);
	else
		print_group(group, nr);
}

static void print_end_json(struct findings *f, size_t nr_repos)
{
	struct json *j = &f->json;
	size_t i;

	print_json_begin(f);
	json_end(j, ']');
	json_begin(j, "looked_at", '[');
	for (i = 0; i < f->nr_checked; i++)
		json_text(j, NULL, f->checked[i]);
	json_end(j, ']');
	json_count(j, "repositories", nr_repos);
	json_count(j, "errors", f->count[FINDING_ERROR]);
	json_count(j, "warnings", f->count[FINDING_WARNING]);
	json_count(j, "notes", f->count[FINDING_NOTE]);
	json_count(j, "repaired", f->repaired);
	json_flag(j, "interrupted", interrupt_came());
	json_finish(j, '}');
}

static void print_end(const struct findings *f, size_t nr_repos)
{
	const size_t errors = f->count[FINDING_ERROR];
	const size_t warnings = f->count[FINDING_WARNING];
	const size_t notes = f->count[FINDING_NOTE];
	size_t i;

	for (i = 0; i < f->nr_checked; i++)
		print_line(stdout, "looked at %s", f->checked[i]);
	if (f->hidden_repos)
		print_line(stdout, "looked at %zu more; -v names each",
		    f->hidden_repos);
	if (interrupt_came()) {
		colour_print(stdout, COLOUR_ERROR, "interrupted");
		print_line(stdout, ": these are the findings so far");
	}
	print_line(stdout, "%zu %s: %zu %s, %zu %s, %zu %s; %zu repaired",
	    nr_repos, plural(nr_repos, "repository", "repositories"), errors,
	    plural(errors, "error", "errors"), warnings,
	    plural(warnings, "warning", "warnings"), notes,
	    plural(notes, "note", "notes"), f->repaired);
}

void finding_print_end(struct findings *f, size_t nr_repos)
{
	progress_clear();
	if (f->as_json)
		print_end_json(f, nr_repos);
	else
		print_end(f, nr_repos);
}
