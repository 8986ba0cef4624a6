/*
 * Enables or disables one repository.
 *
 * Normal path: a worker has the rights of the owner of the repository
 * (owner.h), so the worker finds the repository again and changes it. The list
 * of repositories may belong to another user, so the worker cannot change the
 * list. Between its changes, the worker asks this process to do so.
 *
 * Failures: however the worker ends, the list names each repository in which
 * something was changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/tree.h"
#include "client/enable/durable.h"
#include "client/enable/enable_plan.h"
#include "client/enable/enable_report.h"
#include "client/enable/hook_link.h"
#include "client/enable/import.h"
#include "client/enable/registry.h"
#include "client/enable/system.h"
#include "client/git/gitdir.h"
#include "client/git/owner.h"
#include "client/git/quote.h"
#include "client/hooks/gate_link.h"
#include "client/program.h"
#include "client/request/connect.h"
#include "client/request/daemon_of.h"
#include "client/request/hold.h"
#include "client/request/probe.h"
#include "proto/lib/own_file.h"

/* ---- giving a repository back ---- */

/*
 * Releases a repository from the journal of its daemon, so that a daemon with
 * another journal can take the repository: for example after the package was
 * purged. The uuid stays, so the same journal finds the history again.
 *
 * Blocking; one thread. A failure ends the process, so the work of the owner
 * must run in a process of its own (always_forks).
 */

/*
 * The daemon must not use the old id meanwhile, so the daemon is held back
 * (client/request/hold.h): the repository is closed, and no record of the
 * repository waits. Then the journal in refd/id becomes zeros, which is an id
 * that no journal has claimed (daemon/store/repos/repo_id.h).
 *
 * Daemons believe the new refd/id, so nobody else may write the file, whatever
 * the umask is. If others may have written the old refd/id, the file is only
 * removed, because its content proves nothing. A default ACL of the directory
 * can still let others write the new file. The next daemon then takes the
 * repository for a copy.
 *
 * Failures: if updates or records wait, refd/id stays as it is.
 */

/* Hexadecimal digits of a journal. */
#define DIGITS 32

/* Only the daemon that serves the repository knows which records wait, because
 * they are in the journal of this daemon. */
static bool is_served(const struct gitdir *gd,
    const struct daemon_socket *socket)
{
	struct gitconfig config = { 0 };
	struct text why = { 0 };
	enum probe probe;

	gitconfig_load(&config, gd);
	probe = probe_daemon(socket, gd, gitconfig_object_format(&config, gd),
	    &why);
	gitconfig_done(&config);
	text_done(&why);
	return probe == PROBE_OK;
}

static void write_id(int refd, const char *text)
{
	const mode_t mask = umask(022);

	unlinkat(refd, "id.new", 0);
	tree_write(refd, "id.new", text);
	umask(mask);
	tree_check(renameat(refd, "id.new", refd, "id"), "replace", refd, "id");
}

static void clear_journal(int refd)
{
	static const char key[] = "\njournal ";
	struct text id = { 0 };
	struct stat st;
	char *at;

	tree_read_stat(refd, "id", &id, &st);
	at = strstr(id.data, key);
	if (!at || strspn(at + strlen(key), "0123456789abcdef") != DIGITS)
		die("refd/id is not what refd wrote there");
	memset(at + strlen(key), '0', DIGITS);
	if (own_file_of(st.st_mode, st.st_uid, geteuid()) == OWN_FILE_CLOSED)
		write_id(refd, id.data);
	else
		tree_check(unlinkat(refd, "id", 0), "remove", refd, "id");
	tree_check(fsync(refd), "sync", refd, ".");
	text_done(&id);
}

/* True: released, or there was nothing to release. False: no daemon serves the
 * repository on SOCKET, and only its own daemon knows which updates wait. */
static bool release_repository(const struct gitdir *gd,
    const struct daemon_socket *socket)
{
	char *id = xasprintf("%s/refd/id", gd->common);
	const bool has_id = access(id, F_OK) == 0;
	struct hold hold;
	int dir;

	free(id);
	if (!has_id || connect_is_in_group(gd))
		return true;
	if (!socket->path || !is_served(gd, socket))
		return false;
	dir = tree_open(AT_FDCWD, gd->common);
	hold_begin(&hold, dir, gd, socket);
	clear_journal(hold.refd);
	hold_end(&hold);
	close(dir);
	return true;
}

#define LOOK_SECONDS 10

/* One call of enable_repository() or enable_checked(). */
struct enabling {
	const struct wishes *w; /* NULL to disable */
	const char *named;
	struct owned at;        /* NAMED */
	const struct stat *was; /* the common dir that was checked; or NULL */
	/* To disable: its daemon; without a path if nobody knows. Disabling
	 * removes the name of the socket, so the work tells it before. */
	struct daemon_socket socket;
	bool is_listed;
};

/* ---- outside of the repository ---- */

/* The first byte of a request. A path follows, which is the socket's after
 * DAEMON. */
enum request_for { LISTING = 'l', UNLISTING, IMPORT, DAEMON };

/* The files of the repository could have tricked the worker that read the
 * files, so this process looks at PATH itself. */
static bool may_name(const struct enabling *e, const char *path)
{
	struct text why = { 0 };
	struct owned o;
	bool may = owner_is_here(&e->at.st) || !strcmp(path, e->named);

	if (!may && owner_find(&o, path, &why)) {
		may = !strcmp(path, o.path) && o.st.st_uid == e->at.st.st_uid;
		owned_done(&o);
	}
	text_done(&why);
	return may;
}

static int hear(void *arg, const char *data, size_t len)
{
	struct enabling *e = arg;
	const char *path = data + 1;

	if (len < 2 || memchr(data, '\0', len) != data + len - 1)
		return false;
	if (data[0] == DAEMON)
		return daemon_of_read(&e->socket, path, e->at.st.st_uid);
	if (!may_name(e, path))
		return false;
	if (data[0] == LISTING)
		registry_add(path);
	else if (data[0] == UNLISTING)
		registry_remove(path);
	else if (data[0] == IMPORT)
		import_later(path);
	else
		return false;
	return true;
}

/* Has a repository been put aside under this name? refd-group makes such a
 * repository, and a later row moves it to its place. So nobody asks the daemon
 * about the name, and the list does not get a path that will be gone. */
static bool is_aside(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash && has_prefix(slash, "/.refd-");
}

static bool request(enum request_for what, const char *path)
{
	char *packet = xasprintf("%c%s", (char)what, path);
	bool ok = worker_tell(packet, strlen(packet) + 1) == true;

	free(packet);
	return ok;
}

/* ---- enabling ---- */

/* After a power loss, recovery takes `reference` in core.fsync for a proof that
 * no reftable lacks a block. So the older tables must be durable before
 * `reference` is set. */
static bool sync_tables(const struct enable_plan *p)
{
	const char *key = enable_fsync[0][0];
	int err;

	if (!gitconfig_is_reftable(&p->own) ||
	    !settings_have(&p->site.wanted, key, NULL) ||
	    (p->site.lines.nr && settings_have(&p->site.before, key, NULL)))
		return true;
	err = durable_sync_fs(p->site.config);
	if (err)
		say_error("%s: can't sync the file system, so core.fsync is "
			  "not set: %s",
		    p->site.name, strerror(-err));
	return err == 0;
}

/* The record is written before any other change, so that disable knows of the
 * change after a kill. But if the configuration already includes the record,
 * its settings count at once, so then the hooks come first. */
static bool write_record(const struct enable_plan *p, bool is_first)
{
	return is_first == (p->site.lines.nr != 0) || site_save(&p->site);
}

/* If the configuration names a missing hook, git refuses every push, so the
 * hook comes first. */
static bool make(const struct enable_plan *p)
{
	if (p->makes_hook &&
	    !hook_link_make(p->site.hooks, HOOK_PROC_RECEIVE, p->w->self))
		return false;
	return write_record(p, false) &&
	    (p->site.lines.nr || site_include(&p->site, SITE_LINE)) &&
	    (!p->makes_gate ||
		hook_link_make(p->site.hooks, HOOK_GATE, p->w->self));
}

/* The order: older tables, record, list, hook, line, gate. */
static bool carry_out(const struct enable_plan *p)
{
	return (!p->changes || (sync_tables(p) && write_record(p, true))) &&
	    (is_aside(p->site.name) || request(LISTING, p->site.name)) &&
	    (!p->changes || make(p));
}

/* A daemon that is away may come, and until then git takes pushes. But a daemon
 * that refuses the repository refuses every push, too, so nothing is enabled
 * there. An enabled repository stays as it is: only a warning. */
static bool ask_daemon(const struct enable_plan *p)
{
	struct daemon_socket socket;
	struct text why = { 0 };
	enum probe probe;
	bool is_refused;

	connect_choose(&socket, p->w->socket, &p->all, p->gd);
	/* Pushes find the name in the repository, so the rule for such a name
	 * counts. */
	if (p->w->socket)
		connect_guard(&socket, &p->all, p->gd);
	probe = probe_daemon(&socket, p->gd,
	    gitconfig_object_format(&p->all, p->gd), &why);
	/* A node refuses updates until the others have the refs. */
	if (import_is_due(p->gd))
		probe = PROBE_OK;
	is_refused =
	    probe == PROBE_REFUSED && !p->by_system && !p->site.lines.nr;
	if (is_refused)
		say_error("%s: not enabled, because the daemon at %s does not "
			  "serve it and would refuse every push: %s",
		    p->site.name, socket.path, why.data);
	else if (probe != PROBE_OK && probe != PROBE_STATE)
		say_warning("%s: the daemon does not serve it now: %s; "
			    "\"refd doctor\" says what helps",
		    p->site.name, why.data ? why.data : "no answer");
	text_done(&why);
	free(socket.path);
	return !is_refused;
}

/* A look records only what has changed since an earlier look. So a look is
 * needed right after the gate is made: otherwise the first rename behind the
 * gate would not be recorded. If this look does not end in time, only the first
 * rename is lost. */
static void look_first(const struct gitdir *gd, const char *socket)
{
	char *refd = program_refd();
	const char *argv[] = { refd, "look", "--socket", socket, gd->common,
		NULL };
	struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.err = LAUNCH_NULL,
		.seconds = LOOK_SECONDS };

	child_read(&l, &(struct child_output){ .cancel = -1 });
	free(refd);
}

static bool enable_once(const char *dir, const struct gitdir *gd,
    const struct wishes *w)
{
	struct enable_plan p = { .w = w, .gd = gd };
	struct daemon_socket socket = { 0 };
	bool ok;

	site_init(&p.site, dir);
	ok = enable_plan_make(&p);
	if (ok && !is_aside(dir))
		ok = ask_daemon(&p);
	if (ok && p.by_system)
		enable_report(dir,
		    "enabled already, by the system's configuration");
	else if (ok && !p.changes)
		enable_report(dir, "enabled already");
	if (ok && !p.by_system)
		ok = carry_out(&p);
	/* On a node of several, git writes no refs. */
	if (ok && gd && p.makes_gate && !connect_is_in_group(gd))
		connect_choose(&socket, w->socket, &p.all, gd);
	/* A look is long, and the lock of the site keeps others out, so the
	 * lock goes first. */
	enable_plan_done(&p);
	if (socket.path)
		look_first(gd, socket.path);
	free(socket.path);
	return ok;
}

/* The daemon of a node says so when it opens the repository, which can be at
 * the end of the first time. */
static bool enable(const char *dir, const struct gitdir *gd,
    const struct wishes *w)
{
	const bool knows_group = connect_is_in_group(gd);

	bool ok = enable_once(dir, gd, w) &&
	    (knows_group || !connect_is_in_group(gd) ||
		enable_once(dir, gd, w));

	/* The gate is there by now, so git adds no further ref. */
	return ok && (!import_is_due(gd) || request(IMPORT, dir));
}

/* ---- disabling ---- */

/* enable_refs, for git config. */
#define REFD_PATTERNS "^(adm!:)?refs$"

struct undoing {
	const struct gitdir *gd;
	struct site site;
	bool has_hook, has_gate; /* refd's, in the site's directory */
};

/* Removes refd's values of receive.procReceiveRefs from the configuration
 * itself, because another program may have copied the values from the
 * record. */
static bool unset_values(const struct undoing *u)
{
	struct gitconfig own = { 0 };
	bool ok = site_config(&u->site, &own);
	size_t i;

	for (i = 0; ok && i < 2; i++)
		if (settings_have(&u->site.before, ENABLE_PATTERNS,
			enable_refs[i]) &&
		    gitconfig_has(&own, ENABLE_PATTERNS, enable_refs[i]))
			ok = site_unset(&u->site, ENABLE_PATTERNS,
			    enable_refs[i]);
	gitconfig_done(&own);
	return ok;
}

/* Git refuses every push if the configuration names a missing hook. The values
 * can be in any file that git reads. */
static bool names_no_hook(const struct undoing *u)
{
	struct gitconfig all = { 0 };
	char *at = NULL, *command;
	bool ok = gitconfig_read(&all, u->gd->path) == 0;
	size_t i;

	if (ok)
		at = gitconfig_hooks_path(&all, u->gd);
	for (i = 0; ok && i < 2 && (!at || !strcmp(at, u->site.hooks)); i++)
		ok = !gitconfig_has(&all, ENABLE_PATTERNS, enable_refs[i]);
	if (!ok) {
		command = gitconfig_unset_command(u->gd, ENABLE_PATTERNS,
		    REFD_PATTERNS);
		say_error("%s: the hook stays, because git would refuse every "
			  "push without it: " ENABLE_PATTERNS " still names "
			  "it; run \"%s\", then refd disable again",
		    u->site.name, command);
		free(command);
	}
	free(at);
	gitconfig_done(&all);
	return ok;
}

static bool remove_hook(const struct undoing *u, enum hook_name hook,
    const char *note)
{
	const char *target = settings_get(&u->site.before, note);

	return hook_link_remove(u->site.hooks, hook, target ? target : "");
}

/* The hooks go after the line, which is off the disk by then. With --chain the
 * hook there is the user's, and stays. */
static bool undo(struct undoing *u)
{
	bool ok = site_exclude(&u->site, NULL);

	if (u->has_hook)
		ok = ok && unset_values(u) && names_no_hook(u) &&
		    remove_hook(u, HOOK_PROC_RECEIVE, NOTE_HOOK);
	if (u->has_gate)
		ok = ok && remove_hook(u, HOOK_GATE, NOTE_GATE);
	if (ok && settings_have(&u->site.before, NOTE_HOOKS, NULL) &&
	    rmdir(u->site.hooks) == 0)
		enable_report(u->site.hooks, "removed");
	settings_done(&u->site.wanted);
	return ok && site_save(&u->site);
}

/* Without a record, the links tell which hooks are refd's. */
static bool look(struct undoing *u)
{
	char *gate = xasprintf("%s/" GATE_LINK_NAME, u->site.hooks);
	bool ok = site_lock(&u->site);

	u->has_hook = settings_have(&u->site.before, NOTE_HOOK, NULL) ||
	    hook_link_is_refd(u->site.hooks);
	u->has_gate = settings_have(&u->site.before, NOTE_GATE, NULL) ||
	    gate_link_is(gate);
	free(gate);
	return ok;
}

/* The values of enable_system(), or of a person. */
static void say_above(const char *dir, const struct gitdir *gd)
{
	char *root = system_root_of(gd->path), *command;

	if (root) {
		command = quote_command("refd", "disable", "--system", "--root",
		    root, NULL);
		say_error("%s: enabled by the system's configuration; \"%s\" "
			  "ends that for all below %s",
		    dir, command, root);
	} else {
		command =
		    gitconfig_unset_command(gd, ENABLE_PATTERNS, REFD_PATTERNS);
		say_error("%s: enabled by a configuration outside of it, which "
			  "other repositories may use; run \"%s\", then refd "
			  "disable again",
		    dir, command);
	}
	free(command);
	free(root);
}

/* Does the configuration of the system or of the user still enable the
 * repository? The daemon then serves the repository, so its id stays. */
static bool is_enabled_above(const char *dir, const struct gitdir *gd)
{
	struct gitconfig all = { 0 };
	char *hooks = NULL;
	bool is = false;

	if (gitconfig_read(&all, gd->path) == 0) {
		hooks = gitconfig_hooks_path(&all, gd);
		is = enable_is_above(&all, hooks);
	}
	if (is)
		say_above(dir, gd);
	free(hooks);
	gitconfig_done(&all);
	return is;
}

/* The name of the socket goes with the rest, so release() gets the name
 * before. */
static void tell_daemon(const struct gitdir *gd)
{
	struct daemon_socket s = { 0 };
	struct text why = { 0 };

	if (daemon_of_gitdir(&s, gd, &why))
		request(DAEMON, s.path);
	free(s.path);
	text_done(&why);
}

static bool disable(const char *dir, const struct gitdir *gd)
{
	struct undoing u = { .gd = gd };
	bool ok, found, is_above;

	site_init(&u.site, dir);
	ok = look(&u);
	found = u.site.before.nr || u.site.lines.nr || u.has_hook || u.has_gate;
	if (ok)
		tell_daemon(gd);
	ok = ok && undo(&u);
	if (ok)
		request(UNLISTING, dir);
	is_above = ok && is_enabled_above(dir, gd);
	if (ok && !found && !is_above)
		enable_report(dir, "not enabled");
	site_done(&u.site);
	return ok && !is_above;
}

/* ---- both ---- */

/* The owner of a listed repository may have put a link, or a file "commondir",
 * to another repository in its place. */
static bool is_in_place(const struct enabling *e, const char *found)
{
	if (!e->is_listed || !strcmp(e->named, found))
		return true;
	say_error("%s leads to %s now%s; name %s itself", e->named, found,
	    e->w ? "" : ", and is not listed any more", found);
	if (!e->w)
		request(UNLISTING, e->named);
	return false;
}

/* The owner may have put another repository in its place. */
static bool is_checked(const struct enabling *e, const struct gitdir *gd)
{
	if (!e->was || (gd->dev == e->was->st_dev && gd->ino == e->was->st_ino))
		return true;
	say_error("%s: another repository is there since the check, so it is "
		  "left alone; run the command again",
	    e->named);
	return false;
}

static int work(void *arg)
{
	const struct enabling *e = arg;
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	bool ok = owner_gitdir(&gd, &e->at, &why);

	if (!ok)
		say_error("%s", why.data);
	ok = ok && is_in_place(e, gd.common) && is_checked(e, &gd) &&
	    (e->w ? enable(gd.common, &gd, e->w) : disable(gd.common, &gd));
	gitdir_done(&gd);
	text_done(&why);
	return ok ? 0 : 1;
}

/* The owner of the list may name any path, so an entry leads only to
 * repositories of this owner. */
static bool may_follow(const struct enabling *e)
{
	char *command;

	if (!e->is_listed || registry_leads_to(e->at.st.st_uid))
		return true;
	command =
	    quote_command("refd", e->w ? "enable" : "disable", e->named, NULL);
	say_error("%s belongs to user %u, who is not the owner of the list: "
		  "run \"%s\"",
	    e->named, (unsigned)e->at.st.st_uid, command);
	free(command);
	return false;
}

static int release_here(void *arg)
{
	const struct enabling *e = arg;
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	bool ok = owner_gitdir(&gd, &e->at, &why) &&
	    release_repository(&gd, &e->socket);

	gitdir_done(&gd);
	text_done(&why);
	return !ok;
}

/* After disable. The repository is git's in any case. */
static void release(struct enabling *e)
{
	const struct work work = { .run = release_here,
		.arg = e,
		.always_forks = true };
	char *command = quote_command("refd", "disown", e->named, NULL);
	struct text why = { 0 };

	if (owner_run(&e->at, work, &why) != 0)
		say_warning("%s: its id stays with the journal of its daemon, "
			    "in which updates may wait; once that journal is "
			    "gone for good, \"%s\" lets a new daemon serve it",
		    e->named, command);
	free(command);
	text_done(&why);
}

static bool run(struct enabling *e)
{
	struct text why = { 0 };
	bool ok = owner_find(&e->at, e->named, &why) && may_follow(e) &&
	    owner_run(&e->at,
		(struct work){ .run = work,
		    .hear = hear,
		    .arg = e,
		    .always_forks = e->was != NULL },
		&why) == 0;

	if (why.len)
		say_error("%s", why.data);
	if (ok && !e->w)
		release(e);
	owned_done(&e->at);
	free(e->socket.path);
	text_done(&why);
	return ok;
}

bool enable_repository(const char *dir, bool is_listed, const struct wishes *w)
{
	return run(
	    &(struct enabling){ .w = w, .named = dir, .is_listed = is_listed });
}

bool enable_checked(const char *dir, const struct stat *was,
    const struct wishes *w)
{
	return run(&(struct enabling){ .w = w, .named = dir, .was = was });
}
