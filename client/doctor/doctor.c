#include "client/doctor/doctor.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/doctor_internal.h"
#include "client/enable/registry.h"
#include "client/enable/scan.h"

static const char usage_text[] =
    "usage: refd doctor [-v] [--fix] [--json] [--socket PATH] [--user NAME]...\n"
    "                   [--all | --system | [--repo] <repository>...]\n";

struct order {
	bool all, system, mends, as_json, verbose;
	const char *socket;
	const char **repos, **users;
	size_t nr_repos, nr_users;
};

static void append(const char ***list, size_t *nr, const char *value)
{
	*list = xrealloc(*list, (*nr + 1) * sizeof(**list));
	(*list)[(*nr)++] = value;
}

static void __attribute__((noreturn)) usage(FILE *to, int rc)
{
	fputs(usage_text, to);
	exit(rc);
}

static void parse(struct order *o, int argc, char **argv)
{
	static const struct option options[] = { { "all", no_argument, NULL,
						     'a' },
		{ "system", no_argument, NULL, 'y' },
		{ "repo", required_argument, NULL, 'r' },
		{ "user", required_argument, NULL, 'u' },
		{ "fix", no_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "socket", required_argument, NULL, 's' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "hv", options, NULL)) >= 0) {
		if (c == '?')
			usage(stderr, EXIT_USAGE);
		if (c == 'h')
			usage(stdout, EXIT_DONE);
		o->all |= c == 'a';
		o->system |= c == 'y';
		o->mends |= c == 'f';
		o->as_json |= c == 'j';
		o->verbose |= c == 'v';
		if (c == 's')
			o->socket = optarg;
		if (c == 'u')
			append(&o->users, &o->nr_users, optarg);
		if (c == 'r')
			append(&o->repos, &o->nr_repos, optarg);
	}
	for (; optind < argc; optind++)
		append(&o->repos, &o->nr_repos, argv[optind]);
	if (o->all + o->system + (o->nr_repos > 0) > 1)
		usage(stderr, EXIT_USAGE);
}

/* ---- findings ---- */

static void __attribute__((format(printf, 5, 0))) add(struct doctor *d,
    enum finding_id id, const char *repo, const char *file, const char *fmt,
    va_list ap)
{
	struct finding f = { .id = id, .repo = repo, .file = file };
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		die("out of memory");
	f.text = text;
	findings_add(&d->f, &f);
	free(text);
}

void doctor_found(struct doctor *d, enum finding_id id, const char *repo,
    const char *file, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, id, repo, file, fmt, ap);
	va_end(ap);
}

void doctor_found_in(struct doctor_repo *p, enum finding_id id, const char *fmt,
    ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(p->d, id, p->name, "", fmt, ap);
	va_end(ap);
}

void doctor_checked(struct doctor *d, bool is_repository, const char *fmt, ...)
{
	char *line;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		die("out of memory");
	va_end(ap);
	findings_checked(&d->f, is_repository, line);
	free(line);
}

/* ---- all checks ---- */

static bool is_known(const struct doctor *d, const char *path)
{
	size_t i;

	for (i = 0; i < d->nr_known; i++)
		if (!strcmp(d->known[i].path, path))
			return true;
	return false;
}

static void look_below(const struct gitdir *gd, void *data)
{
	struct doctor *d = data;

	if (!strcmp(gd->path, gd->common) && !is_known(d, gd->common))
		doctor_check_repository(d, gd->common);
}

static void check_listed(struct doctor *d)
{
	struct registry r = { 0 };
	struct stat st;
	size_t i;

	registry_read(&r);
	for (i = 0; i < r.nr; i++)
		if (!r.entries[i].is_template &&
		    stat(r.entries[i].path, &st) == 0)
			doctor_check_repository(d, r.entries[i].path);
	registry_done(&r);
}

/* The repository around the current directory, if there is one. */
static void look_around(struct doctor *d)
{
	struct gitdir gd = { 0 };
	struct text why = { 0 };

	if (gitdir_find(&gd, getenv("GIT_DIR"), &why))
		doctor_check_repository(d, gd.common);
	gitdir_done(&gd);
	text_done(&why);
}

static void check_all(struct doctor *d, const struct order *o)
{
	size_t i;

	memset(d, 0, sizeof(*d));
	d->socket_option = o->socket;
	d->f.as_json = o->as_json;
	d->f.verbose = o->verbose;
	doctor_check_kernel(d, "/proc");
	doctor_check_gits(d);
	doctor_check_daemon(d);
	doctor_check_config(d);
	for (i = 0; i < o->nr_users; i++)
		doctor_check_user(d, o->users[i]);
	if (!d->has_git)
		return;
	doctor_check_system(d);
	doctor_check_list(d);
	for (i = 0; i < o->nr_repos; i++)
		doctor_check_repository(d, o->repos[i]);
	if (o->all)
		check_listed(d);
	for (i = 0; i < d->nr_roots && (o->all || o->system); i++)
		scan_repositories(d->roots[i], look_below, d);
	if (!o->nr_repos && !o->all && !o->system)
		look_around(d);
}

static void doctor_done(struct doctor *d)
{
	size_t i;

	for (i = 0; i < d->nr_known; i++) {
		free(d->known[i].path);
		free(d->known[i].uuid);
	}
	for (i = 0; i < d->nr_roots; i++)
		free(d->roots[i]);
	free(d->known);
	free(d->roots);
	free(d->mounts);
	free(d->socket);
	free(d->state_dir);
	findings_done(&d->f);
}

int command_doctor(int argc, char **argv)
{
	struct order o = { 0 };
	struct doctor d, before = { 0 };
	bool is_left;

	parse(&o, argc, argv);
	check_all(&d, &o);
	progress_clear(&d.f.progress);
	if (o.mends && doctor_mend(&d.f)) {
		before = d;
		check_all(&d, &o);
		findings_add_repaired(&d.f, &before.f);
	}
	is_left = findings_end(&d.f, d.nr_known);
	doctor_done(&before);
	doctor_done(&d);
	free(o.repos);
	free(o.users);
	return is_left ? EXIT_FAILED : EXIT_DONE;
}
