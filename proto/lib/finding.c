#include "proto/lib/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/array.h"
#include "proto/lib/print.h"

#define REPOSITORY "<repository>"
/* Repositories of a group with a name, and refs or files of each. */
#define NAMES_MAX 3

static const struct {
	const char *id;
	enum finding_severity severity;
	enum finding_repair repair;
	const char *remedy;
} kinds[] = {
#define X(symbol, id, severity, repair, remedy)                                \
	{ id, FINDING_##severity, REPAIR_##repair, remedy },
	FINDING_TABLE(X)
#undef X
};

static const char *const severities[] = {
#define X(symbol, word) word,
	FINDING_SEVERITY_TABLE(X)
#undef X
};

enum finding_repair finding_repair(enum finding_id id)
{
	return kinds[id].repair;
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

/* ---- paths in sentences ---- */

/* The first place in TEXT with PATH, or with a path below PATH; or NULL. */
static const char *find_path(const char *text, const char *path)
{
	const size_t len = strlen(path);
	const char *at = text;

	for (; len && (at = strstr(at, path)); at += len)
		if (strchr("/'\" :,;)\n", at[len]) &&
		    (at == text || strchr("'\" :(=", at[-1])))
			return at;
	return NULL;
}

/* TEXT with TO for each path FROM; owned. NULL: no memory. */
static char *replace_path(const char *text, const char *from, const char *to)
{
	size_t size = strlen(text) + 1;
	const char *at, *path;
	char *copy, *end;

	for (at = text; (path = find_path(at, from)); at = path + strlen(from))
		size += strlen(to);
	copy = end = malloc(size);
	if (!copy)
		return NULL;
	for (at = text; (path = find_path(at, from));
	    at = path + strlen(from)) {
		end = mempcpy(end, at, (size_t)(path - at));
		end = stpcpy(end, to);
	}
	strcpy(end, at);
	return copy;
}

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
	return replace_path(text, REPOSITORY, *repo ? repo : REPOSITORY);
}

static void print_line(const char *before, const char *text, const char *repo)
{
	char *all = fill_in(text, repo);

	fputs(before, stdout);
	print_visible(stdout, all ? all : text);
	putchar('\n');
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
	putchar('\n');
	json_begin(j, NULL, '{');
	json_text(j, "id", kinds[one->id].id);
	json_text(j, "severity", severities[kinds[one->id].severity]);
	json_text(j, "repo", one->repo);
	json_text(j, "ref", one->ref);
	json_text(j, "file", one->file);
	json_filled_in(j, "text", one->text, one->repo);
	json_filled_in(j, "remedy", kinds[one->id].remedy,
	    remedy_repo(one->repo));
	json_flag(j, "can_repair", kinds[one->id].repair != REPAIR_NONE);
	json_filled_in(j, "repair", one->repair, one->repo);
	json_flag(j, "repaired", one->is_repaired);
	json_end(j, '}');
}

static void print_object(const struct finding *f)
{
	const char *below = *f->ref ? f->ref : f->file;

	print_visible(stdout, f->repo);
	if (*f->repo && *below)
		putchar(' ');
	print_visible(stdout, below);
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
		fputs(*first->repo || *first->ref || *first->file ? ": " : "",
		    stdout);
	} else if (!*first->repo) {
		printf("%zu places: ", nr);
	} else if (nr == repos) {
		printf("%zu repositories: ", repos);
	} else {
		printf("%zu places in %zu %s: ", nr, repos,
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
		if (repos > NAMES_MAX || in_repo > NAMES_MAX)
			continue;
		shown++;
		fputs("    ", stdout);
		print_object(&group[i]->finding);
		putchar('\n');
	}
	if (shown < nr)
		printf("    and %zu more; -v shows each\n", nr - shown);
}

static void print_group(struct finding_held *const *group, size_t nr)
{
	const struct finding *first = &group[0]->finding;
	const char *repo = nr == 1 ? first->repo : "";
	size_t i, repos = 0;

	for (i = 0; i < nr; i++)
		repos += is_next_repo(group, i);
	printf("%s: %s: ",
	    first->is_repaired ? "repaired" :
				 severities[kinds[first->id].severity],
	    kinds[first->id].id);
	print_objects(group, nr, repos);
	print_line("", first->text, repo);
	if (nr > 1)
		print_names(group, nr);
	if (*first->repair)
		print_line("    ", first->repair, repo);
	if (!first->is_repaired)
		print_line("    remedy: ", kinds[first->id].remedy,
		    remedy_repo(repo));
}

/* ---- the list ---- */

static void print_run(struct findings *f, struct finding_held *const *group,
    size_t nr)
{
	progress_clear(&f->progress);
	if (f->as_json)
		print_json(f, &group[0]->finding);
	else
		print_group(group, nr);
}

static int compare_text(const void *va, const void *vb)
{
	const struct finding_held *const *pa = va, *const *pb = vb;
	const struct finding *a = &(*pa)->finding, *b = &(*pb)->finding;
	int r;

	if (a->is_repaired != b->is_repaired)
		return b->is_repaired - a->is_repaired;
	if (kinds[a->id].severity != kinds[b->id].severity)
		return (int)kinds[b->id].severity - (int)kinds[a->id].severity;
	if (a->id != b->id)
		return (int)a->id - (int)b->id;
	r = strcmp(a->text, b->text);
	return r != 0 ? r : strcmp(a->repair, b->repair);
}

/* Equal findings stay in the order in which they were added. */
static int compare_for_output(const void *va, const void *vb)
{
	const struct finding_held *const *a = va, *const *b = vb;
	int r = compare_text(va, vb);

	if (r == 0)
		r = ((*a)->number > (*b)->number) -
		    ((*a)->number < (*b)->number);
	return r;
}

static int compare_object(const void *va, const void *vb)
{
	const struct finding_held *const *pa = va, *const *pb = vb;
	const struct finding *a = &(*pa)->finding, *b = &(*pb)->finding;
	int r;

	if (a->id != b->id)
		return (int)a->id - (int)b->id;
	r = strcmp(a->repo, b->repo);
	if (r == 0)
		r = strcmp(a->ref, b->ref);
	return r != 0 ? r : strcmp(a->file, b->file);
}

static void sort_held(const struct findings *f,
    int (*order)(const void *, const void *))
{
	if (f->nr > 0)
		qsort(f->list, f->nr, sizeof(struct finding_held *), order);
}

static void free_held(struct findings *f)
{
	size_t i;

	for (i = 0; i < f->nr; i++)
		free(f->list[i]);
	f->nr = 0;
}

static void print_all(struct findings *f)
{
	const bool is_grouped = !f->as_json && !f->verbose;
	size_t i, nr;

	sort_held(f, compare_for_output);
	for (i = 0; i < f->nr; i += nr) {
		for (nr = 1; is_grouped && i + nr < f->nr; nr++)
			if (compare_text(&f->list[i], &f->list[i + nr]) != 0)
				break;
		print_run(f, &f->list[i], nr);
	}
	free_held(f);
}

static const char *copy_string(char **to, const char *s)
{
	char *at = *to;

	*to = stpcpy(at, s) + 1;
	return at;
}

/* NULL: no memory. */
static struct finding_held *held_new(const struct finding *f, size_t number)
{
	char *text = replace_path(f->text, f->repo, REPOSITORY), *to;
	char *repair = replace_path(f->repair, f->repo, REPOSITORY);
	struct finding_held *new = NULL;

	if (text && repair)
		new = malloc(sizeof(*new) + strlen(f->repo) + strlen(f->ref) +
		    strlen(f->file) + strlen(text) + strlen(repair) + 5);
	if (new) {
		to = new->strings;
		new->number = number;
		new->finding = (struct finding){ f->id, f->is_repaired,
			copy_string(&to, f->repo), copy_string(&to, f->ref),
			copy_string(&to, f->file), copy_string(&to, text),
			copy_string(&to, repair) };
	}
	free(text);
	free(repair);
	return new;
}

static bool append_held(struct findings *f, struct finding_held *new)
{
	struct finding_held **grown =
	    array_room(f->list, f->nr, &f->size, sizeof(*grown));

	if (!grown)
		return false;
	f->list = grown;
	f->list[f->nr++] = new;
	return true;
}

void findings_add(struct findings *f, const struct finding *finding)
{
	struct finding_held *new,
	    bare = { .finding = { finding->id, finding->is_repaired,
			 or_empty(finding->repo), or_empty(finding->ref),
			 or_empty(finding->file), or_empty(finding->text),
			 or_empty(finding->repair) } };
	struct finding_held *only = &bare;

	if (finding->is_repaired)
		f->repaired++;
	else
		f->count[kinds[finding->id].severity]++;
	new = held_new(&bare.finding, f->nr);
	if (!new || !append_held(f, new)) {
		free(new);
		print_run(f, &only, 1);
	} else if (f->max && f->nr >= f->max) {
		print_all(f);
	}
}

bool findings_have(const struct findings *f, enum finding_id id,
    const char *repo, const char *file)
{
	size_t i;

	for (i = 0; i < f->nr; i++)
		if (f->list[i]->finding.id == id &&
		    !strcmp(f->list[i]->finding.repo, repo) &&
		    !strcmp(f->list[i]->finding.file, file))
			return true;
	return false;
}

void findings_add_repaired(struct findings *f, const struct findings *before)
{
	struct finding repaired;
	size_t i, nr = f->nr;

	sort_held(f, compare_object);
	for (i = 0; i < before->nr; i++) {
		if (nr &&
		    bsearch(&before->list[i], f->list, nr,
			sizeof(struct finding_held *), compare_object))
			continue;
		repaired = before->list[i]->finding;
		repaired.is_repaired = true;
		findings_add(f, &repaired);
	}
}

/* ---- the end ---- */

void findings_checked(struct findings *f, bool is_repository, const char *line)
{
	const bool shows_all = f->as_json || f->verbose || !is_repository;
	char **grown = NULL, *copied = NULL;

	if (shows_all || f->done <= NAMES_MAX) {
		grown = realloc(f->checked,
		    (f->nr_checked + 1) * sizeof(*f->checked));
		copied = strdup(line);
	}
	if (grown)
		f->checked = grown;
	if (grown && copied)
		f->checked[f->nr_checked++] = copied;
	else
		free(copied);
	f->hidden_repos += !copied;
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
	json_end(j, '}');
	putchar('\n');
}

static void print_end(const struct findings *f, size_t nr_repos)
{
	const size_t errors = f->count[FINDING_ERROR];
	const size_t warnings = f->count[FINDING_WARNING];
	const size_t notes = f->count[FINDING_NOTE];
	size_t i;

	for (i = 0; i < f->nr_checked; i++) {
		fputs("looked at ", stdout);
		print_visible(stdout, f->checked[i]);
		putchar('\n');
	}
	if (f->hidden_repos)
		printf("looked at %zu more; -v names each\n", f->hidden_repos);
	printf("%zu %s: %zu %s, %zu %s, %zu %s; %zu repaired\n", nr_repos,
	    plural(nr_repos, "repository", "repositories"), errors,
	    plural(errors, "error", "errors"), warnings,
	    plural(warnings, "warning", "warnings"), notes,
	    plural(notes, "note", "notes"), f->repaired);
}

bool findings_end(struct findings *f, size_t nr_repos)
{
	print_all(f);
	progress_clear(&f->progress);
	if (f->as_json)
		print_end_json(f, nr_repos);
	else
		print_end(f, nr_repos);
	return f->count[FINDING_ERROR] + f->count[FINDING_WARNING] > 0;
}

void findings_done(struct findings *f)
{
	size_t i;

	free_held(f);
	for (i = 0; i < f->nr_checked; i++)
		free(f->checked[i]);
	free(f->checked);
	free(f->list);
	memset(f, 0, sizeof(*f));
}

void findings_progress(struct findings *f, const char *repo, const char *name)
{
	if (f->total)
		progress_show(&f->progress, "%zu of %zu: %s %s", f->done,
		    f->total, repo, name);
	else
		progress_show(&f->progress, "%zu: %s %s", f->done, repo, name);
}
