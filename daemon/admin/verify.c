/*
 * "refd verify".
 *
 * Exit: 0 no error and no warning is left; 1 at least one is left; 128 a
 * repository could not be checked; 130 interrupted, after the findings so far.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/admin/admin.h"
#include "daemon/admin/verify_internal.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/repos/repo_internal.h"
#include "proto/lib/array.h"
#include "proto/lib/colour.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/owned.h"
#include "proto/lib/print.h"
#include "proto/lib/progress.h"
#include "proto/lib/worker.h"

#define PATIENCE_NS INT64_C(500000000)
/* A large repository takes hours. An owner can hold the work up, for example by
 * a file system of their own, and the repositories of all others would wait, so
 * the work has a limit. */
#define VERIFY_SECONDS (4 * 3600)
/* Some 250 MB, with the allocator's share. */
#define FOLD_BYTES ((size_t)160 << 20)

/* Findings in memory: some 30 MB. */
#define FINDINGS_MAX 100000

struct verify_values {
	struct verify_options opt;
	struct findings findings;
	bool all;
	const char *head; /* a line; NULL: none */
	int restored_fd;  /* -1: none */
};

static const struct command_option options[] = {
	{ OPTION_STRING("state", 0, "DIR",
	    "the state directory of the daemon, with the journal",
	    struct verify_values, opt.state) },
	{ OPTION_FLAG("all", 0, "all repositories in the journal",
	    struct verify_values, all) },
	{ OPTION_STRING("head", 0, "LINE",
	    "only check that all records up to LINE, of 'refd log --head', "
	    "are as they were",
	    struct verify_values, head) },
	{ OPTION_FLAG("repair", 0, "repair the findings that refd can repair",
	    struct verify_values, opt.repair) },
	{ OPTION_FLAG("json", 0, "print JSON, for programs",
	    struct verify_values, findings.as_json) },
	{ OPTION_FLAG("verbose", 'v',
	    "print each finding and each checked repository",
	    struct verify_values, findings.verbose) },
	COLOUR_OPTION,
	/* From refd, which confirms each restored value. */
	{ OPTION_NUMBER("restored-fd", 0, "FD", NULL, struct verify_values,
	    restored_fd, 0, 65535) },
	{ 0 },
};

static const struct command command = {
	.name = "verify",
	.usage = "usage: refd verify [-v] [--state DIR] [--repair] [--json]\n"
		 "                   [--color WHEN] (<repository>... | --all)\n"
		 "   or: refd verify [--state DIR] --head LINE\n",
	.arguments = "<repository>...",
	.purpose =
	    "Compares the refs of repositories with the journal and with "
	    "git's rules, and repairs them with --repair.",
	.example = "refd verify /srv/git/project.git",
	.manual = "refd-verify(8)",
	.most = COMMAND_ARGUMENTS_ANY,
	.options = options,
};

/* ---- repositories of one owner, as this owner ---- */

/* The first byte of a message of a worker. Messages of findings begin with
 * other bytes. */
#define TOLD_RESTORED 'r'
#define TOLD_BEGIN    'b' /* of the next repository */
#define TOLD_CHECKED  'c'
#define TOLD_LISTED   'l'
#define TOLD_LEFT     'g' /* not to be found */

struct checked_repos {
	struct verify_values *values;
	char **paths;
	size_t nr;
	/* Only in the process that hears. */
	size_t begun, checked;
	const char *path; /* the last one that was begun */
};

static void restored(void *arg, const char *repo, const char *ref,
    const char *value, const char *from)
{
	char row[4 * 4096];
	int len = snprintf(row, sizeof(row), "%c%s%c%s%c%s%c%s", TOLD_RESTORED,
	    repo, 0, ref, 0, value, 0, from);

	(void)arg;
	if (len > 0 && len < (int)sizeof(row))
		worker_tell(row, (size_t)len + 1);
}

static bool check_repo(const struct verify_options *opt, const char *path)
{
	char *why;
	int r;

	opt->findings->done++;
	r = verify_repo(opt, path, &why);
	if (r < 0 && !interrupt_came()) {
		progress_clear();
		admin_say("%s", why != NULL ? why : "out of memory");
	}
	free(why);
	if (r < 0 || interrupt_came())
		return false;
	findings_checked(opt->findings, true, path);
	return true;
}

/* Ends at the first repository of another owner, because this process has the
 * rights of one owner only. */
static int check_repos(void *arg)
{
	static const char begin = TOLD_BEGIN, checked = TOLD_CHECKED;
	const struct checked_repos *c = arg;
	struct verify_options opt = c->values->opt;
	struct findings f = c->values->findings;
	const size_t nr = c->nr;
	size_t i;

	interrupt_catch();
	f.tell = worker_tell;
	opt.findings = &f;
	opt.rows = verify_rows_new(&opt, nr == 1);
	for (i = 0; i < nr && !interrupt_came() && worker_tell(&begin, 1) > 0;
	    i++) {
		if (check_repo(&opt, c->paths[i]))
			worker_tell(&checked, 1);
		worker_next();
	}
	verify_rows_free(opt.rows);
	return 0;
}

static int hear_begin(struct checked_repos *c)
{
	if (c->begun == c->nr ||
	    (c->begun > 0 && !admin_is_same_owner(c->path, c->paths[c->begun])))
		return 0;
	c->path = c->paths[c->begun++];
	c->values->findings.done++;
	findings_progress(&c->values->findings, c->path, "");
	return 1;
}

/* A restored ref goes to a descriptor of the program that started refd-admin.
 */
static int hear(void *arg, const char *data, size_t len)
{
	struct checked_repos *c = arg;
	const int fd = c->values->restored_fd;

	if (len == 1 && data[0] == TOLD_BEGIN)
		return hear_begin(c);
	if (len == 1 && data[0] == TOLD_CHECKED)
		c->checked += c->checked < c->begun;
	else if (len == 0 || data[0] != TOLD_RESTORED)
		findings_hear(&c->values->findings, NULL, data, len);
	else if (fd >= 0 && data[len - 1] == '\0')
		SYS(&sys_kernel, write_all, fd, data + 1, len - 1);
	return 0;
}

/* Returns how many repositories were checked. The repository that was begun may
 * have ended its worker, so the other repositories get a new worker. */
static size_t check_all(struct verify_values *values, char **paths, size_t nr)
{
	size_t i, checked = 0;
	struct checked_repos c;

	for (i = 0; i < nr && !interrupt_came();
	    i += c.begun > 0 ? c.begun : 1) {
		c = (struct checked_repos){ values, paths + i, nr - i,
			.path = paths[i] };
		admin_as_owner(&c.path, 128,
		    (struct work){ .run = check_repos,
			.hear = hear,
			.arg = &c,
			.pieces = nr - i,
			.seconds = VERIFY_SECONDS });
		checked += c.checked;
	}
	return checked;
}

static int run(struct verify_values *values, char **paths, size_t nr)
{
	struct findings *f = &values->findings;
	size_t checked;
	bool is_left;

	f->title = "Verifying repositories";
	f->total = nr;
	interrupt_catch();
	checked = check_all(values, paths, nr);
	is_left = findings_end(f, checked);
	findings_done(f);
	if (interrupt_came())
		return INTERRUPT_STATUS;
	if (checked < nr)
		return 128;
	return is_left ? 1 : 0;
}

/* ---- --all, as the owner of the journal ---- */

/* The owner can write any paths into the journal, so their number has a
 * limit. */
#define PATHS_MAX 1000000

/* A repository in the journal. */
struct known {
	char *path; /* where the daemon last opened it, with UUID, on DEV */
	uint8_t uuid[16];
	uint64_t dev;
	/* 0: the row of the repository is too old. TOLD_LISTED: to be checked,
	 * on DEV. TOLD_LEFT: the repository is not there. */
	char state;
};

struct list {
	struct verify_values *values;
	char **paths;
	size_t nr, size;
	struct known *known; /* NR, only in the worker */
	uint8_t journal[16];
	uid_t owner; /* of the journal; only root needs it */
	size_t nr_left;
};

/* While the rows are read, the daemon makes no checkpoint. So the rows are only
 * copied, and the disk is looked at later. */
static int add_known(void *arg, const struct journal_repo *repo)
{
	struct list *list = arg;
	struct known *grown, k = { .dev = repo->dev };

	grown = array_room(list->known, list->nr, &list->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	list->known = grown;
	memcpy(k.uuid, repo->uuid, sizeof(k.uuid));
	k.path = strdup(repo->path);
	if (k.path == NULL)
		return -ENOMEM;
	grown[list->nr++] = k;
	return 0;
}

/* Reads refd/id of the repository, and its device, and returns 0 or a negative
 * errno. */
static int read_id(const struct repos *repos, struct known *k,
    struct repo_id *id)
{
	struct repo_place place;
	int r = repo_find_known(repos, k->path, &place);

	if (r < 0)
		return r;
	r = repo_id_read_in(&sys_kernel, place.fd, id);
	if (r == 0)
		k->dev = place.st.dev;
	SYS(&sys_kernel, close, place.fd);
	return r;
}

/* A repository without an id was never served from this path. A new repository
 * at the path of a former one has a row of its own, so the former row is too
 * old. */
static char state_of(const struct list *list, const struct repos *repos,
    struct known *k)
{
	struct repo_id id;
	int r = read_id(repos, k, &id);

	if (r < 0)
		return r == -ENOENT || r == -ENAMETOOLONG ? TOLD_LEFT :
							    TOLD_LISTED;
	return memcmp(id.uuid, k->uuid, sizeof(id.uuid)) != 0 &&
		memcmp(id.journal, list->journal, 16) == 0 &&
		strcmp(id.path, k->path) == 0 ?
	    0 :
	    TOLD_LISTED;
}

/* Is another repository of the journal below DIR, in the same file system? */
static bool is_around(const struct list *list, const char *dir, uint64_t dev)
{
	const size_t len = strlen(dir);
	const struct known *k;

	for (k = list->known; k < list->known + list->nr; k++)
		if (k->state == TOLD_LISTED && k->dev == dev &&
		    strncmp(k->path, dir, len) == 0 && k->path[len] == '/')
			return true;
	return false;
}

/* Was the repository deleted, or did somebody put another one into its place?
 * If its file system is not mounted, the mount point, or a directory above, is
 * in another file system, and no repository is around. */
static bool is_gone(const struct list *list, const struct repos *repos,
    const struct known *k)
{
	struct repo_place place;
	char dir[REFD_PATH_MAX];
	char *slash;
	int r;

	if ((size_t)snprintf(dir, sizeof(dir), "%s", k->path) >= sizeof(dir))
		return false;
	while ((r = repo_find_known(repos, dir, &place)) < 0) {
		slash = strrchr(dir, '/');
		if (r != -ENOENT || slash == NULL || dir[1] == '\0')
			return false;
		slash[slash == dir] = '\0';
	}
	SYS(&sys_kernel, close, place.fd);
	return place.st.dev == k->dev || is_around(list, dir, place.st.dev);
}

static int tell_repo(const struct list *list, const struct repos *repos,
    const struct known *k)
{
	struct findings f = { .tell = worker_tell };
	char row[1 + REFD_PATH_MAX];

	if (k->state == 0)
		return 0;
	if (k->state == TOLD_LEFT && is_gone(list, repos, k)) {
		findings_add(&f,
		    &(struct finding){ .id = FOUND_REPO_GONE,
			.repo = k->path,
			.ref = "",
			.file = "",
			.text = "the journal knows it, and it was deleted, "
				"moved or disowned, or refd never served what "
				"is there now",
			.repair = "" });
		return 0;
	}
	snprintf(row, sizeof(row), "%c%s", k->state, k->path);
	return worker_tell(row, strlen(row) + 1);
}

static int tell_repos(struct list *list)
{
	static const char *const roots[] = { "/" };
	struct repos repos;
	size_t i;
	int r = 0;

	repos_init(&repos, &sys_kernel, NULL, roots, 1, 1);
	for (i = 0; i < list->nr; i++)
		list->known[i].state = state_of(list, &repos, &list->known[i]);
	for (i = 0; i < list->nr && r == 0; i++)
		r = tell_repo(list, &repos, &list->known[i]);
	repos_done(&repos);
	return r;
}

static int list_repos(void *arg)
{
	const struct list *list = arg;
	const struct verify_options *opt = &list->values->opt;
	struct list found = { .nr = 0 };
	struct journal *journal = NULL;
	char *why = NULL;
	int r;

	r = verify_view(opt, &journal, &why);
	if (r == 0)
		r = journal_each_repo(journal, add_known, &found);
	if (r == 0)
		memcpy(found.journal, journal_uuid(journal), 16);
	journal_view_close(journal);
	if (r == 0)
		r = tell_repos(&found);
	if (r < 0)
		admin_say("can't read the journal in '%s': %s", opt->state,
		    why != NULL ? why : strerror(-r));
	while (found.nr > 0)
		free(found.known[--found.nr].path);
	free(found.known);
	free(why);
	return r == 0 ? 0 : 128;
}

static uid_t owner_of(const char *path)
{
	uid_t uid = (uid_t)-1;
	char *why = NULL;
	struct owned at;

	if (owned_find(&at, path, &why))
		uid = at.st.st_uid;
	owned_done(&at);
	free(why);
	return uid;
}

static bool is_of_owner(const struct list *list, const char *path)
{
	return geteuid() != 0 || owner_of(path) == list->owner;
}

static int leave_out(struct list *list, const char *path)
{
	if (list->nr_left++ == 0)
		admin_say("'%s' is not checked: its file system is not "
			  "mounted, or its owner is not that of the journal",
		    path);
	return 0;
}

static int hear_path(void *arg, const char *data, size_t len)
{
	struct list *list = arg;
	char **grown;

	if (findings_hear(&list->values->findings, NULL, data, len))
		return 0;
	if (len < 3 || data[1] != '/' || data[len - 1] != '\0' ||
	    list->nr + list->nr_left == PATHS_MAX)
		return -EINVAL;
	if (data[0] != TOLD_LISTED || !is_of_owner(list, data + 1))
		return leave_out(list, data + 1);
	grown = array_room(list->paths, list->nr, &list->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	list->paths = grown;
	grown[list->nr] = strdup(data + 1);
	if (grown[list->nr] == NULL)
		return -ENOMEM;
	list->nr++;
	return 0;
}

static int check_listed(struct list *list)
{
	struct findings *f = &list->values->findings;
	int status;

	list->owner = owner_of(list->values->opt.state);
	status = admin_as_owner(&list->values->opt.state, 128,
	    (struct work){ .run = list_repos, .hear = hear_path, .arg = list });
	if (status != 0) {
		if (f->count[FINDING_NOTE] > 0)
			findings_end(f, 0);
		findings_done(f);
		return status;
	}
	status = run(list->values, list->paths, list->nr);
	if (list->nr_left == 0 || interrupt_came())
		return status;
	admin_say("%zu of the repositories in the journal were not checked",
	    list->nr_left);
	return 128;
}

/* ---- --head, as the owner of the journal ---- */

static int check_head(void *arg)
{
	const struct verify_values *values = arg;
	char *said;
	int status;

	interrupt_catch();
	status = verify_head(&values->opt, values->head, &said);
	if (status == 0)
		print_line(stdout, "%s", said != NULL ? said : "");
	else if (status != INTERRUPT_STATUS)
		admin_say("%s", said != NULL ? said : "out of memory");
	free(said);
	fflush(stdout);
	return status;
}

int admin_verify(int argc, char **argv)
{
	struct verify_values values = { .opt = { .sys = &sys_kernel,
					    .state = admin_state(),
					    .patience_ns = PATIENCE_NS,
					    .fold_bytes = FOLD_BYTES,
					    .restored = restored },
		.restored_fd = -1 };
	struct list list = { .values = &values };
	int status;

	admin_parse(&command, &values, &argc, &argv);
	values.findings.max =
	    values.findings.as_json || values.findings.verbose ? 1 :
								 FINDINGS_MAX;
	umask(0);
	if (values.head != NULL &&
	    (argc > 0 || values.all || values.opt.repair ||
		values.findings.as_json))
		admin_usage(&command, "--head goes only with --state");
	if (values.head != NULL)
		return admin_as_owner(&values.opt.state, 128,
		    (struct work){ .run = check_head, .arg = &values });
	if (!values.all && argc == 0)
		admin_usage(&command, "missing argument: <repository>...");
	if (values.all && argc > 0)
		admin_usage(&command, "--all takes no repository");
	if (!values.all)
		return run(&values, argv, (size_t)argc);
	status = check_listed(&list);
	while (list.nr > 0)
		free(list.paths[--list.nr]);
	free(list.paths);
	return status;
}
