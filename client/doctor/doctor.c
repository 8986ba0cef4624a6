/*
 * "refd doctor": finds errors in the installation, on the machine and in
 * repositories, and makes repairs without a risk.
 *
 * Blocks; one thread. The checks fill a list of findings. Only doctor.c prints.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/scan.h"
#include "client/commands.h"
#include "client/doctor/doctor_internal.h"
#include "client/enable/registry.h"
#include "proto/lib/colour.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/progress.h"
#include "proto/lib/worker.h"

struct order {
	bool all, mends, as_json, verbose;
	const char *socket;
	struct command_list users;
	char **repos;
	int nr_repos;
};

static const struct command_option options[] = {
	{ OPTION_FLAG("all", 0, "check all enabled repositories", struct order,
	    all) },
	{ OPTION_LIST("user", 0, "NAME",
	    "also check whether the user NAME may use the daemon", struct order,
	    users) },
	{ OPTION_FLAG("fix", 0, "repair the findings that refd can repair",
	    struct order, mends) },
	{ OPTION_FLAG("json", 0, "print JSON, for programs", struct order,
	    as_json) },
	{ OPTION_FLAG("verbose", 'v',
	    "print each finding and each checked repository", struct order,
	    verbose) },
	COLOUR_OPTION,
	{ OPTION_STRING("socket", 0, "PATH",
	    "the daemon's socket, if not the configured one", struct order,
	    socket) },
	{ 0 },
};

/* ---- findings ---- */

int doctor_tell(enum doctor_told what, const char *text)
{
	char *packet = xasprintf("%c%s", (char)what, text);
	int answer = worker_tell(packet, strlen(packet) + 1);

	free(packet);
	return answer;
}

static void __attribute__((format(printf, 5, 0))) add_finding(struct doctor *d,
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
	add_finding(d, id, repo, file, fmt, ap);
	va_end(ap);
}

void doctor_found_in(struct doctor_repo *p, enum finding_id id, const char *fmt,
    ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_finding(p->d, id, p->name, "", fmt, ap);
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

static void check_below(const char *dir, void *data)
{
	doctor_check_repository(data, dir, FROM_ROOT);
}

static void check_root(struct doctor *d, const char *root)
{
	if (!scan_repositories(root, check_below, d))
		doctor_found(d, FOUND_SYSTEM_UNSEARCHED, "", root,
		    "not all below this directory of refd enable --system was "
		    "searched for repositories");
}

static void check_listed(struct doctor *d)
{
	struct registry r = { 0 };
	struct stat st;
	size_t i;

	registry_read(&r);
	if (!d->nr_roots)
		d->f.total = r.nr;
	for (i = 0; i < r.nr; i++)
		if (stat(r.paths[i], &st) == 0)
			doctor_check_repository(d, r.paths[i], FROM_LIST);
	registry_done(&r);
}

/* The repository around the current directory, if there is one. */
static void check_around(struct doctor *d)
{
	const char *env = getenv("GIT_DIR");
	char *here = getcwd(NULL, 0), *dir = NULL;

	if (env || here)
		dir = env ? xstrdup(env) : scan_around(here);
	if (dir)
		doctor_check_repository(d, dir, FROM_USER);
	free(dir);
	free(here);
}

static void check_all(struct doctor *d, const struct order *o)
{
	const size_t nr = (size_t)o->nr_repos;
	size_t i;

	memset(d, 0, sizeof(*d));
	d->socket_option = o->socket;
	d->mends = o->mends;
	d->f.as_json = o->as_json;
	d->f.verbose = o->verbose;
	d->f.title = "Checking repositories";
	doctor_check_kernel(d, "/proc");
	doctor_check_gits(d);
	doctor_check_daemons(d, &o->users);
	if (!d->has_git)
		return;
	doctor_check_system(d);
	doctor_check_list(d);
	d->f.total = nr;
	for (i = 0; i < nr; i++)
		doctor_check_repository(d, o->repos[i], FROM_USER);
	if (o->all)
		check_listed(d);
	for (i = 0; i < d->nr_roots && o->all; i++)
		check_root(d, d->roots[i]);
	if (nr == 0 && !o->all)
		check_around(d);
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

static int run(const struct command *c, int argc, char **argv)
{
	struct order o = { 0 };
	struct doctor d, before = { 0 };
	bool is_left;

	o.nr_repos = cli_parse(c, &o, argc, &argv);
	o.repos = argv;
	if (o.nr_repos > 0 && o.all)
		cli_usage(c, "--all takes no repository");
	interrupt_catch();
	check_all(&d, &o);
	progress_clear();
	if (o.mends && !interrupt_came() && doctor_mend(&d)) {
		before = d;
		check_all(&d, &o);
		if (!interrupt_came())
			findings_add_repaired(&d.f, &before.f);
	}
	is_left = findings_end(&d.f, d.nr_checked);
	doctor_done(&before);
	doctor_done(&d);
	command_list_done(&o.users);
	if (interrupt_came())
		return INTERRUPT_STATUS;
	return is_left ? EXIT_FAILED : EXIT_DONE;
}

const struct command doctor_command = {
	.name = "doctor",
	.summary = "find errors in the installation",
	.arguments = "[<repository>...]",
	.purpose =
	    "Looks for errors in the installation and in repositories, and "
	    "proposes a remedy for each.",
	.example = "refd doctor --all",
	.outcome = "Checks all enabled repositories.",
	.manual = "refd-doctor(1)",
	.most = COMMAND_ARGUMENTS_ANY,
	.options = options,
	.run = run,
};
