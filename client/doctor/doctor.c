#include "client/doctor/doctor.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/doctor/doctor_internal.h"
#include "client/enable/registry.h"
#include "client/enable/scan.h"
#include "client/request/output.h"

static const char usage_text[] =
    "usage: refd doctor [--fix] [--json] [--socket PATH] [--user NAME]...\n"
    "                   [--all | --system | [--repo] <repository>...]\n";

struct order {
	bool all, system, mends, as_json;
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
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		if (c == '?')
			usage(stderr, EXIT_USAGE);
		if (c == 'h')
			usage(stdout, EXIT_DONE);
		o->all |= c == 'a';
		o->system |= c == 'y';
		o->mends |= c == 'f';
		o->as_json |= c == 'j';
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

/* ---- looking ---- */

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
		look_at_repository(d, gd->common);
}

static void look_at_listed(struct doctor *d)
{
	struct registry r = { 0 };
	struct stat st;
	size_t i;

	registry_read(&r);
	for (i = 0; i < r.nr; i++)
		if (!r.entries[i].is_template &&
		    stat(r.entries[i].path, &st) == 0)
			look_at_repository(d, r.entries[i].path);
	registry_done(&r);
}

/* The one around us, if there is one. */
static void look_around(struct doctor *d)
{
	struct gitdir gd = { 0 };
	struct text why = { 0 };

	if (gitdir_find(&gd, getenv("GIT_DIR"), &why))
		look_at_repository(d, gd.common);
	gitdir_done(&gd);
	text_done(&why);
}

static void look(struct doctor *d, const struct order *o)
{
	size_t i;

	memset(d, 0, sizeof(*d));
	d->socket_option = o->socket;
	look_at_kernel(d, "/proc");
	look_at_gits(d);
	look_at_daemon(d);
	look_at_config(d);
	for (i = 0; i < o->nr_users; i++)
		look_at_user(d, o->users[i]);
	if (!d->has_git)
		return;
	look_at_system(d);
	look_at_list(d);
	for (i = 0; i < o->nr_repos; i++)
		look_at_repository(d, o->repos[i]);
	if (o->all)
		look_at_listed(d);
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
	text_done(&d->looked);
	findings_done(&d->f);
}

/* ---- saying ---- */

struct said {
	bool as_json, any;
	size_t nr[SEVERITIES], nr_mended;
};

static void put(struct said *s, const struct finding *f, bool is_mended)
{
	if (is_mended)
		s->nr_mended++;
	else
		s->nr[finding_severity(f->id)]++;
	if (!s->as_json) {
		finding_print(f, is_mended);
		return;
	}
	if (s->any)
		fputs(",\n ", stdout);
	finding_print_json(f, is_mended);
	s->any = true;
}

static void put_looked(const char *lines, bool as_json)
{
	const char *end, *comma = "";

	for (; *lines; lines = end + 1, comma = ",\n ") {
		char *line;

		end = strchr(lines, '\n');
		line = xasprintf("%s%.*s", as_json ? "" : "looked at ",
		    (int)(end - lines), lines);
		if (as_json) {
			fputs(comma, stdout);
			output_json_string(line);
		} else {
			output_visible(line);
			putchar('\n');
		}
		free(line);
	}
}

static void put_count(size_t nr, const char *what, const char *behind)
{
	printf("%zu %s%s%s", nr, what, nr == 1 ? "" : "s", behind);
}

static void put_end(const struct said *s, const struct doctor *d)
{
	const char *lines = d->looked.data ? d->looked.data : "";

	if (s->as_json) {
		fputs("],\n\"looked_at\":[", stdout);
		put_looked(lines, true);
		printf("],\n\"errors\":%zu,\"warnings\":%zu,\"notes\":%zu,"
		       "\"fixed\":%zu,\"repositories\":%zu}\n",
		    s->nr[ERROR], s->nr[WARNING], s->nr[NOTE], s->nr_mended,
		    d->nr_known);
		return;
	}
	put_looked(lines, false);
	printf("%zu %s: ", d->nr_known,
	    d->nr_known == 1 ? "repository" : "repositories");
	if (s->nr[ERROR] + s->nr[WARNING] + s->nr[NOTE]) {
		put_count(s->nr[ERROR], "error", ", ");
		put_count(s->nr[WARNING], "warning", ", ");
		put_count(s->nr[NOTE], "note", "");
	} else {
		printf("nothing found");
	}
	if (s->nr_mended)
		printf(", %zu mended", s->nr_mended);
	putchar('\n');
}

int command_doctor(int argc, char **argv)
{
	struct order o = { 0 };
	struct said s = { 0 };
	struct doctor d, before = { 0 };
	size_t i;

	parse(&o, argc, argv);
	look(&d, &o);
	if (o.mends && mend(&d.f)) {
		before = d;
		look(&d, &o);
	}
	s.as_json = o.as_json;
	if (s.as_json)
		fputs("{\"findings\":[", stdout);
	for (i = 0; i < before.f.nr; i++)
		if (!findings_have(&d.f, before.f.list[i].id,
			before.f.list[i].where))
			put(&s, &before.f.list[i], true);
	for (i = 0; i < d.f.nr; i++)
		put(&s, &d.f.list[i], false);
	put_end(&s, &d);
	doctor_done(&before);
	doctor_done(&d);
	free(o.repos);
	free(o.users);
	return s.nr[ERROR] + s.nr[WARNING] ? EXIT_FAILED : EXIT_DONE;
}
