#include "proto/lib/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/array.h"
#include "proto/lib/colour.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/print.h"
#include "proto/lib/progress.h"

/* Stands for the path of the repository in a text. */
#define FINDING_REPOSITORY "<repository>"
/* Repositories of equal findings with a name, and refs or files of each. */
#define FINDING_NAMES_MAX 3

struct finding_kind {
	const char *id;
	enum finding_severity severity;
	enum finding_repair repair;
	const char *remedy;
};

static const struct finding_kind kinds[] = {
#define X(symbol, id, severity, repair, remedy)                                \
	{ id, FINDING_##severity, REPAIR_##repair, remedy },
	FINDING_TABLE(X)
#undef X
};

static const char *const after_repairs[] = {
#define X(symbol, remedy) remedy,
	FINDING_REPAIR_TABLE(X)
#undef X
};

static const struct finding_kind *finding_kind(enum finding_id id)
{
	return &kinds[id];
}

/* What to do about F, which is not repaired. */
static const char *finding_remedy(const struct finding *f)
{
	const struct finding_kind *kind = finding_kind(f->id);
	const char *after = after_repairs[kind->repair];

	return f->repair[0] != '\0' && after != NULL ? after : kind->remedy;
}

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

/* TEXT with TO for each path FROM, owned, or NULL without memory. */
static char *finding_replace_path(const char *text, const char *from,
    const char *to)
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

/* ---- printing ---- */

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

/* With REPO "", TEXT is about many repositories. Owned, or NULL without
 * memory. */
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
static void print_objects(struct finding_held *const *equal, size_t nr,
    size_t repos)
{
	const struct finding *first = &equal[0]->finding;

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

static bool is_next_repo(struct finding_held *const *equal, size_t at)
{
	return at == 0 ||
	    strcmp(equal[at]->finding.repo, equal[at - 1]->finding.repo) != 0;
}

static void print_names(struct finding_held *const *equal, size_t nr)
{
	size_t i, repos = 0, in_repo = 0, shown = 0;

	for (i = 0; i < nr; i++) {
		in_repo = is_next_repo(equal, i) ? 1 : in_repo + 1;
		repos += is_next_repo(equal, i);
		if (repos > FINDING_NAMES_MAX || in_repo > FINDING_NAMES_MAX)
			continue;
		shown++;
		print_part(stdout, "    ");
		print_object(&equal[i]->finding);
		print_lines(stdout, "\n");
	}
	if (shown < nr)
		print_line(stdout, "    and %zu more; -v shows each",
		    nr - shown);
}

static void print_equal(struct finding_held *const *equal, size_t nr)
{
	const struct finding *first = &equal[0]->finding;
	const struct finding_kind *kind = finding_kind(first->id);
	const char *repo = nr == 1 ? first->repo : "";
	size_t i, repos = 0;

	for (i = 0; i < nr; i++)
		repos += is_next_repo(equal, i);
	if (first->is_repaired)
		colour_print(stdout, COLOUR_OK, "repaired");
	else
		colour_print(stdout, colours[kind->severity],
		    severities[kind->severity]);
	print_part(stdout, ": %s: ", kind->id);
	print_objects(equal, nr, repos);
	print_filled_in("", first->text, repo);
	if (nr > 1)
		print_names(equal, nr);
	if (*first->repair)
		print_filled_in("    ", first->repair, repo);
	if (!first->is_repaired) {
		print_part(stdout, "    ");
		colour_print(stdout, COLOUR_HEADING, "remedy");
		print_filled_in(": ", finding_remedy(first), remedy_repo(repo));
	}
}

/* Prints NR equal findings as one. As JSON, NR is 1. */
static void finding_print_group(struct findings *f,
    struct finding_held *const *equal, size_t nr)
{
	progress_clear();
	if (f->as_json)
		print_json(f, &equal[0]->finding);
	else
		print_equal(equal, nr);
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

/* Prints the end, with the number of checked repositories. */
static void finding_print_end(struct findings *f, size_t nr_repos)
{
	progress_clear();
	if (f->as_json)
		print_end_json(f, nr_repos);
	else
		print_end(f, nr_repos);
}

/* ---- the list ---- */

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
		finding_print_group(f, &f->list[i], nr);
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
	char *text = finding_replace_path(f->text, f->repo, FINDING_REPOSITORY),
	     *to;
	char *repair =
	    finding_replace_path(f->repair, f->repo, FINDING_REPOSITORY);
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

/* ---- from one process to another ---- */

/* The first byte. */
enum { TOLD_FINDING = 1, TOLD_CHECKED };

#define TOLD_MAX    60000
#define TOLD_STRING 12000 /* bytes of a string, of which there are five */

/* *LEN is the end of BUF, and a string that is too long is cut. */
static void put(char buf[TOLD_MAX], size_t *len, const char *s)
{
	size_t n = strnlen(s, TOLD_STRING - 1);

	memcpy(buf + *len, s, n);
	buf[*len + n] = '\0';
	*len += n + 1;
}

static const char *take(const char **at, const char *end)
{
	const char *s = *at, *stop = memchr(s, '\0', (size_t)(end - s));

	if (stop == NULL)
		return "";
	*at = stop + 1;
	return s;
}

static void tell_finding(const struct findings *f, const struct finding *one)
{
	char buf[TOLD_MAX + 3] = { TOLD_FINDING, (char)one->id,
		one->is_repaired };
	size_t len = 3;

	put(buf, &len, one->repo);
	put(buf, &len, one->ref);
	put(buf, &len, one->file);
	put(buf, &len, one->text);
	put(buf, &len, one->repair);
	f->tell(buf, len);
}

static void tell_checked(const struct findings *f, bool is_repository,
    const char *line)
{
	char buf[TOLD_MAX + 3] = { TOLD_CHECKED, is_repository };
	size_t len = 2;

	put(buf, &len, line);
	f->tell(buf, len);
}

bool findings_hear(struct findings *f, const char *repo, const char *data,
    size_t len)
{
	const char *end = data + len, *at = data + 3;
	struct finding one;

	if (len > 3 && data[0] == TOLD_FINDING &&
	    (unsigned char)data[1] < FINDING_IDS) {
		one.id = (enum finding_id)(unsigned char)data[1];
		one.is_repaired = data[2] != 0;
		one.repo = take(&at, end);
		one.ref = take(&at, end);
		one.file = take(&at, end);
		one.text = take(&at, end);
		one.repair = take(&at, end);
		if (repo != NULL && *one.repo != '\0')
			one.repo = repo;
		findings_add(f, &one);
		return true;
	}
	if (len > 3 && data[0] == TOLD_CHECKED && end[-1] == '\0') {
		findings_checked(f, data[1] != 0, data + 2);
		return true;
	}
	return false;
}

void findings_add(struct findings *f, const struct finding *finding)
{
	struct finding_held *new,
	    bare = { .finding = { finding->id, finding->is_repaired,
			 or_empty(finding->repo), or_empty(finding->ref),
			 or_empty(finding->file), or_empty(finding->text),
			 or_empty(finding->repair) } };
	struct finding_held *only = &bare;

	if (interrupt_came() && !finding->is_repaired)
		return;
	if (f->tell != NULL) {
		tell_finding(f, &bare.finding);
		return;
	}
	if (finding->is_repaired)
		f->repaired++;
	else
		f->count[kinds[finding->id].severity]++;
	new = held_new(&bare.finding, f->nr);
	if (!new || !append_held(f, new)) {
		free(new);
		finding_print_group(f, &only, 1);
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

	if (interrupt_came())
		return;
	if (f->tell != NULL) {
		tell_checked(f, is_repository, line);
		return;
	}
	if (shows_all || f->done <= FINDING_NAMES_MAX) {
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

bool findings_end(struct findings *f, size_t nr_repos)
{
	print_all(f);
	finding_print_end(f, nr_repos);
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

void findings_progress(const struct findings *f, const char *repo,
    const char *name)
{
	progress_show(f->title, f->done - 1, f->total, repo, name);
}
