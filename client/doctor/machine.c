/* The daemon, the kernel, git, and refd enable --system. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/scan.h"
#include "client/doctor/doctor_internal.h"
#include "client/enable/registry.h"
#include "client/enable/system.h"
#include "client/refd.h"
#include "client/request/connect.h"
#include "client/request/daemons.h"
#include "client/request/probe.h"
#include "client/request/rows.h"

#define ASK_MS 5000

/* ---- the daemon ---- */

static void check_hello(struct doctor *d, const struct refd_hello *hello)
{
	d->daemon = (pid_t)hello->pid;
	doctor_checked(d, false, "the daemon on %s (%s, pid %d)", d->socket,
	    hello->software, (int)d->daemon);
	if (strcmp(hello->software, "refd/" REFD_VERSION))
		doctor_found(d, FOUND_DAEMON_VERSION, "", d->socket,
		    "the daemon is %s, this program refd/%s", hello->software,
		    REFD_VERSION);
	if (hello->state != REFD_SERVING)
		doctor_found(d, FOUND_DAEMON_STATE, "", d->socket,
		    "the daemon is %s", refd_server_state_name(hello->state));
}

/* A value that is neither empty nor 0 is a finding. */
static const struct {
	const char *key;
	enum finding_id id;
	const char *before, *after; /* the value */
} status_findings[] = {
	{ "fatal", FOUND_DAEMON_FATAL, "the daemon cannot continue: ", "" },
	{ "confined_without", FOUND_DAEMON_UNCONFINED,
	    "the daemon is confined without ", "" },
	{ "flush_hangs_s", FOUND_FLUSH_HANGS, "a flush of a disk has taken ",
	    " s so far" },
	{ "awaiting_repos", FOUND_RECOVERY_AWAITS, "",
	    " repositories await recovery and are not served: they are "
	    "missing, or their disk failed" },
	{ "doubted_filesystems", FOUND_FS_FAILED, "",
	    " file systems failed to sync: data in memory may be missing on "
	    "their disks" },
	{ "journal_damaged", FOUND_JOURNAL_DAMAGED,
	    "damaged records or pages of the journal: at least ", "" },
};

static void take_pair(struct doctor *d, const struct refd_pair *pair)
{
	size_t i;

	if (!strcmp(pair->key, "state_dir") && !d->state_dir)
		d->state_dir = xstrdup(pair->value);
	if (!strcmp(pair->key, "durability"))
		refd_durability_from_name(pair->value, &d->durability);
	for (i = 0; i < sizeof(status_findings) / sizeof(*status_findings); i++)
		if (!strcmp(pair->key, status_findings[i].key) &&
		    *pair->value && strcmp(pair->value, "0"))
			doctor_found(d, status_findings[i].id, "", d->socket,
			    "%s%s%s", status_findings[i].before, pair->value,
			    status_findings[i].after);
}

/* A node that does not serve reads. */
static void check_group(struct doctor *d, const struct refd_answer *ans)
{
	const char *lag_ms = rows_value(ans, "group_lag_ms");
	bool waits = !strcmp(rows_value(ans, "role"), "waits");

	d->nr_nodes += *lag_ms != '\0';
	d->nr_single += !strcmp(rows_value(ans, "role"), "single");
	if (!*lag_ms || strcmp(rows_value(ans, "state"), "serving") != 0)
		return;
	doctor_checked(d, false, "the node in its group (%s)",
	    rows_value(ans, "role"));
	if (strcmp(rows_value(ans, "serves_reads"), "no") != 0)
		return;
	doctor_found(d, waits ? FOUND_NODE_WAITS : FOUND_NODE_BEHIND, "",
	    d->socket, "%s; it has not had every row for %llu s",
	    waits ? "the node is not in touch with its group" :
		    "the node lacks rows of its group",
	    strtoull(lag_ms, NULL, 10) / 1000);
}

static void ask_stats(struct doctor *d, struct refd *r)
{
	struct refd_request req = { .verb = REFD_VERB_STATS };
	struct refd_answer ans;

	if (refd_call(r, &req, ASK_MS, &ans) < 0)
		return;
	doctor_check_flushes(d, rows_number(&ans, "flush_us_count"),
	    rows_number(&ans, "flush_us_p50"),
	    rows_number(&ans, "flush_us_p99"));
	refd_answer_done(&ans);
}

static void ask_status(struct doctor *d, struct refd *r)
{
	struct refd_request req = { .verb = REFD_VERB_STATUS };
	struct refd_answer ans;
	size_t i;

	if (refd_call(r, &req, ASK_MS, &ans) < 0)
		return;
	for (i = 0; i < ans.nr_pairs; i++)
		take_pair(d, &ans.pairs[i]);
	check_group(d, &ans);
	refd_answer_done(&ans);
}

/* Without the right to read the link, there is no finding. */
static void check_namespace(struct doctor *d)
{
	char *path = xasprintf("/proc/%d/ns/user", (int)d->daemon);
	char its[64], ours[64];
	ssize_t a = readlink(path, its, sizeof(its) - 1);
	ssize_t b = readlink("/proc/self/ns/user", ours, sizeof(ours) - 1);

	if (a > 0 && b > 0 && (a != b || memcmp(its, ours, (size_t)a)))
		doctor_found(d, FOUND_DAEMON_USERS, "", d->socket,
		    "the daemon is in a user namespace of its own, where it "
		    "cannot tell users apart");
	free(path);
}

static void check_state(struct doctor *d)
{
	char *around = scan_around(d->state_dir);
	struct stat st;

	doctor_checked(d, false, "the state in %s", d->state_dir);
	doctor_check_disk(d, d->state_dir, "the journal is");
	if (around)
		doctor_found(d, FOUND_STATE_INSIDE, "", d->state_dir,
		    "the journal is inside the repository %s", around);
	if (stat(d->state_dir, &st) == 0 && (st.st_mode & 0022))
		doctor_found(d, FOUND_STATE_OPEN, "", d->state_dir,
		    "other users may write to the journal's directory (mode "
		    "%04o)",
		    st.st_mode & 07777);
	free(around);
}

static void not_there(struct doctor *d, int err, const char *said)
{
	struct text t = { 0 };
	const char *why;

	text_adds(&t, said);
	daemons_add_start(d->socket, err, &t);
	why = t.data;
	if (err == -EACCES)
		doctor_found(d, FOUND_SOCKET_CLOSED, "", d->socket,
		    "this user cannot open the socket: %s", why);
	else if (err == -EPERM)
		doctor_found(d, FOUND_USER_DENIED, "", d->socket,
		    "the daemon refuses this user: %s", why);
	else if (err == -EHOSTDOWN)
		doctor_found(d, FOUND_DAEMON_FAILED, "", d->socket, "%s", why);
	else if (err == -EPROTO)
		doctor_found(d, FOUND_DAEMON_PROTOCOL, "", d->socket, "%s",
		    why);
	else
		doctor_found(d, FOUND_DAEMON_AWAY, "", d->socket, "%s", why);
	text_done(&t);
}

static void check_daemon(struct doctor *d)
{
	const struct daemon_socket socket = { .path = d->socket };
	struct refd *r = connect_new(&socket);
	int err = refd_connect(r, ASK_MS);

	if (err < 0) {
		doctor_checked(d, false, "the socket %s", d->socket);
		not_there(d, err, refd_error(r));
	} else {
		check_hello(d, refd_hello(r));
		ask_status(d, r);
		ask_stats(d, r);
		check_namespace(d);
	}
	refd_free(r);
	if (d->state_dir)
		check_state(d);
}

static void check_user(struct doctor *d, const char *name)
{
	const struct passwd *pw = getpwnam(name);
	struct text why = { 0 };
	enum probe probe;

	if (!pw)
		die("there is no user '%s'", name);
	if (geteuid() != 0 && pw->pw_uid != geteuid())
		die("only root can look as another user");
	doctor_checked(d, false, "the access of %s to the daemon", name);
	probe = probe_as(pw->pw_uid, d->socket, &why);
	if (probe == PROBE_CLOSED)
		doctor_found(d, FOUND_SOCKET_CLOSED, "", d->socket,
		    "user %s cannot open the socket: %s", name, why.data);
	if (probe == PROBE_DENIED)
		doctor_found(d, FOUND_USER_DENIED, "", d->socket,
		    "the daemon refuses user %s: %s", name, why.data);
	text_done(&why);
}

/* ---- the daemon's configuration ---- */

/* The daemon's roots may be closed to other users, so only the owner of the
 * file gets a finding. If refd check-config can't run, the file is not
 * judged. */
static void check_config(struct doctor *d)
{
	char *file = daemons_config(d->socket), *rest, *what;
	const char *argv[] = { "/bin/sh", "-c",
		"exec /proc/$PPID/exe check-config \"$0\" 2>&1", file, NULL };
	struct text said = { 0 };
	int status = EXIT_FATAL;
	struct stat st;

	if (file && stat(file, &st) == 0 && st.st_uid == geteuid())
		status = child_capture(argv, &said);
	if (status == EXIT_DONE || status == EXIT_FAILED)
		doctor_checked(d, false, "the configuration %s", file);
	rest = status == EXIT_FAILED ? said.data : NULL;
	while ((what = strsep(&rest, "\n")) != NULL)
		if (has_prefix(what, "refd: "))
			doctor_found(d, FOUND_DAEMON_CONFIG, "", file, "%s",
			    what + strlen("refd: "));
	text_done(&said);
	free(file);
}

/* ---- all daemons ---- */

void doctor_check_daemons(struct doctor *d, const struct command_list *users)
{
	struct daemon_socket chosen;
	char **sockets;
	size_t nr, i, k;

	connect_choose(&chosen, d->socket_option, NULL, NULL);
	nr = connect_running_sockets(chosen.path, &sockets);
	free(chosen.path);
	for (i = 0; i < nr; i++) {
		free(d->socket);
		d->socket = sockets[i];
		check_daemon(d);
		check_config(d);
		for (k = 0; k < users->nr; k++)
			check_user(d, users->items[k]);
		/* A repository belongs to one of several states. */
		if (nr > 1) {
			free(d->state_dir);
			d->state_dir = NULL;
		}
	}
	free(sockets);
}

/* ---- the kernel ---- */

void doctor_check_kernel(struct doctor *d, const char *proc)
{
	char *path = xasprintf("%s/sys/fs/protected_hardlinks", proc);
	struct text t = { 0 };

	if (text_read_file(&t, path, SMALL_FILE_BYTES) == 0 &&
	    !strcmp(t.data, "0\n"))
		doctor_found(d, FOUND_HARDLINKS, "", path,
		    "users may link files without permission to write: a "
		    "member of a repository's group can link files of another "
		    "repository into it");
	text_done(&t);
	free(path);
}

/* ---- git ---- */

static char *version_of(const char *git)
{
	const char *argv[] = { git, "version", NULL };
	static const char before[] = "git version ";
	struct text t = { 0 };
	char *version = NULL;

	if (access(git, X_OK) == 0 && child_capture(argv, &t) == 0 &&
	    has_prefix(t.data, before))
		version = xasprintf("%.*s",
		    (int)strcspn(t.data + sizeof(before) - 1, "\n"),
		    t.data + sizeof(before) - 1);
	text_done(&t);
	return version;
}

static void check_version(struct doctor *d, const char *git,
    const char *version)
{
	unsigned its_major = 0, its_minor = 0;

	doctor_checked(d, false, "git %s in %s", version, git);
	if (sscanf(version, "%u.%u", &its_major, &its_minor) != 2)
		return;
	if (its_major < 2 || (its_major == 2 && its_minor < 29))
		doctor_found(d, FOUND_GIT_OLD, "", git,
		    "git %s does not run proc-receive hooks", version);
	else if (its_major == 2 && its_minor < 36)
		doctor_found(d, FOUND_GIT_NO_FSYNC, "", git,
		    "git %s has no core.fsync: a power loss can take back refs "
		    "that git pack-refs wrote, and can leave objects of a push "
		    "empty",
		    version);
}

/* The git in every directory of PATH, because hooks run the first, and a server
 * may be configured with another. */
void doctor_check_gits(struct doctor *d)
{
	char *path = xstrdup(getenv("PATH") ? getenv("PATH") : ""), *rest;
	char *dir = strtok_r(path, ":", &rest);
	char *first = NULL, *first_git = NULL;

	for (; dir; dir = strtok_r(NULL, ":", &rest)) {
		char *git = xasprintf("%s/git", dir), *version = NULL;

		if (dir[0] == '/')
			version = version_of(git);
		if (version && !first) {
			first = version;
			first_git = git;
			check_version(d, git, version);
			continue;
		}
		if (version && strcmp(version, first))
			doctor_found(d, FOUND_GIT_VERSIONS, "", git,
			    "git %s, and %s before it in PATH is %s", version,
			    first_git, first);
		free(version);
		free(git);
	}
	d->has_git = first;
	if (!first)
		doctor_found(d, FOUND_GIT_MISSING, "", "",
		    "there is no git in PATH");
	free(first);
	free(first_git);
	free(path);
}

/* ---- what is enabled ---- */

static void add_root(struct doctor *d, char *root)
{
	d->roots = xrealloc(d->roots, (d->nr_roots + 1) * sizeof(*d->roots));
	d->roots[d->nr_roots++] = root;
}

/* Each user who pushes must be able to read the included file. */
static void check_include(struct doctor *d, const char *file)
{
	char *path = xstrdup(file), *slash = path;
	struct stat st;
	bool is_open = stat(path, &st) < 0 || (st.st_mode & 0004);

	while (is_open && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		is_open = stat(path, &st) < 0 || (st.st_mode & 0001);
		*slash = '/';
	}
	if (!is_open)
		doctor_found(d, FOUND_SYSTEM_CLOSED, "", file,
		    "some users cannot read it: for them git fails, or does "
		    "not use refd");
	free(path);
}

void doctor_check_system(struct doctor *d)
{
	struct site site;
	const char *root;
	size_t at = 0;

	system_site(&site);
	site_look(&site);
	while ((root = system_next_root(&site.before, &at)))
		add_root(d, xstrdup(root));
	if (d->nr_roots) {
		check_include(d, site.record);
		doctor_checked(d, false,
		    "refd enable --system, with %zu root%s", d->nr_roots,
		    d->nr_roots == 1 ? "" : "s");
	}
	if (!system_holds(&site))
		doctor_found(d, FOUND_SYSTEM_INCOMPLETE, "", site.name,
		    "parts of refd enable --system are missing");
	site_done(&site);
}

void doctor_check_list(struct doctor *d)
{
	char *file = registry_file("list");
	struct registry r = { 0 };
	struct stat st;
	size_t i;

	if (!registry_read(&r))
		doctor_found(d, FOUND_LIST_UNREADABLE, file ? file : "", "",
		    "the list of enabled repositories can't be read, so they "
		    "were not checked");
	free(file);
	for (i = 0; i < r.nr; i++)
		if (stat(r.paths[i], &st) < 0 && errno != EACCES)
			doctor_found(d, FOUND_LISTED_GONE, r.paths[i], "",
			    "listed as enabled, but gone (%s)",
			    strerror(errno));
	registry_done(&r);
}
