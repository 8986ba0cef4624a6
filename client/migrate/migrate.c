/*
 * refd migrate: the refs of a repository move into the other format.
 *
 *	check	the format, the owner, worktrees, the daemon
 *	hold	updates wait, and no daemon has the repository (migrate_hold.c)
 *	convert	git writes a copy of the refs in the new format
 *	compare	the copy has the same refs
 *	swap	the copy takes the place of the refs (migrate_swap.c)
 *	let go	the daemon opens the repository again, and updates continue
 *
 * History, ids and the settings of refd enable stay: refd/ does not change.
 *
 * Failures: each step before the swap leaves the repository unchanged. After a
 * kill, the repository works in one of the formats, and the next call finishes
 * or begins anew.
 */
#include "client/migrate/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/git/gitconfig.h"
#include "client/git/owner.h"
#include "client/librefd/conn.h"
#include "client/migrate/migrate_internal.h"
#include "client/request/connect.h"
#include "client/request/question.h"
#include "proto/lib/config_file.h"

/* Of other programs that write refs meanwhile. */
#define ATTEMPTS 10
#define NAP_MS   200

const char *const ref_format_names[REF_FORMATS] = {
	[FILES] = "files",
	[REFTABLE] = "reftable",
};

struct options {
	const char *format, *socket;
	int timeout_s;
};

/* ---- the format of a repository ---- */

struct format_reading {
	int version;
	char *storage; /* owned; NULL: unset */
};

static int read_entry(void *arg, const char *key, const char *value,
    unsigned line)
{
	struct format_reading *f = arg;

	(void)line;
	if (!strcmp(key, "core.repositoryformatversion") && value)
		f->version = atoi(value);
	if (!strcmp(key, "extensions.refstorage")) {
		free(f->storage);
		f->storage = xstrdup(value ? value : "");
	}
	return 0;
}

static bool format_of_name(const char *name, enum ref_format *format)
{
	int i;

	for (i = 0; i < REF_FORMATS; i++)
		if (!strcmp(name, ref_format_names[i])) {
			*format = (enum ref_format)i;
			return true;
		}
	return false;
}

/* Git reads extensions from this file alone, and only in version 1. */
static bool read_format(struct migration *m)
{
	struct format_reading f = { 0 };
	const char *why = "out of memory";
	unsigned line;
	int r;

	text_clear(&m->config);
	text_adds(&m->config, "");
	r = files_read(m->dirfd, "config", FILES_CONFIG_MAX, &m->config);
	if (r == 0)
		r = config_file_parse(m->config.data, m->config.len, read_entry,
		    &f, &line, &why);
	else
		why = r == -EINVAL || r == -ELOOP ? "it is no regular file" :
						    strerror(-r);
	if (r < 0)
		say_error("cannot read %s/config: %s", m->gd->common, why);
	m->from = FILES;
	if (r == 0 && f.version > 0 && f.storage &&
	    !format_of_name(f.storage, &m->from)) {
		say_error("%s: refd migrate does not know the format of the "
			  "refs (extensions.refStorage)",
		    m->gd->common);
		r = -1;
	}
	free(f.storage);
	return r == 0;
}

/* ---- checks ---- */

static int any_name(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return 1;
}

/* Every linked worktree has refs of its own. */
static bool has_worktrees(const struct migration *m)
{
	int fd = files_open_dir(m->dirfd, "worktrees");
	bool has = fd >= 0 && files_each(fd, any_name, NULL) > 0;

	if (fd >= 0)
		close(fd);
	if (has)
		say_error("%s has linked worktrees, and git does not migrate "
			  "the refs of such a repository: remove them with "
			  "'git worktree remove' first; nothing was changed",
		    m->gd->common);
	return has;
}

static void check_daemon(struct refd *r)
{
	enum refd_server_state state = refd_hello(r)->state;

	if (state != REFD_SERVING)
		die_with(EXIT_AWAY, "the daemon is %s; nothing was changed",
		    refd_server_state_name(state));
}

/* ---- the migration ---- */

/* The lock of a killed call: a link to the new or to the present
 * configuration. */
static void remove_own_lock(const struct migration *m)
{
	static const char *const own[] = { "new/config", "config.old" };
	struct stat lock, st;
	size_t i;
	bool is_own;

	if (fstatat(m->dirfd, "config.lock", &lock, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	is_own = fstatat(m->dirfd, "config", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_ino == lock.st_ino;
	for (i = 0; !is_own && i < sizeof(own) / sizeof(own[0]); i++)
		is_own = fstatat(m->work_fd, own[i], &st,
			     AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_ino == lock.st_ino;
	if (is_own)
		unlinkat(m->dirfd, "config.lock", 0);
}

/* Nobody but refd migrate has put files of the other format there. */
static bool tidy_up(const struct migration *m)
{
	enum ref_format other = m->from == FILES ? REFTABLE : FILES;

	remove_own_lock(m);
	return migrate_remove(m, other) && syncfs(m->dirfd) == 0 &&
	    files_remove(m->work_fd, "reftable") == 0 &&
	    files_remove(m->work_fd, "new") == 0;
}

static enum swap attempt(const struct migration *m, size_t *nr, char **lock)
{
	uint64_t before;
	bool failed;

	free(*lock);
	if (!migrate_state(m, m->from, &before, lock))
		return *lock ? SWAP_AGAIN : SWAP_FAILED;
	files_remove(m->work_fd, "new");
	if (!migrate_git_convert(m) || !migrate_git_peel(m) ||
	    !migrate_git_configure(m))
		return SWAP_FAILED;
	if (!migrate_git_compare(m, nr, &failed)) {
		if (failed)
			return SWAP_FAILED;
		if (migrate_has_changed(m, m->from, before))
			return SWAP_AGAIN;
		say_error("%s: the refs which git wrote differ from the refs "
			  "of the repository; nothing was changed",
		    m->gd->common);
		return SWAP_FAILED;
	}
	return migrate_git_verify(m) ? migrate_swap(m, before) : SWAP_FAILED;
}

static enum swap migrate(const struct migration *m)
{
	enum swap swap = SWAP_AGAIN;
	char *lock = NULL;
	size_t nr = 0;
	int i;

	for (i = 0; i < ATTEMPTS && swap == SWAP_AGAIN; i++) {
		if (i > 0)
			refd_nap(NAP_MS, UINT64_MAX);
		swap = attempt(m, &nr, &lock);
	}
	if (swap == SWAP_AGAIN && lock)
		say_error("%s/%s exists: another program is writing, or ended "
			  "in between ('refd locks' and 'refd doctor' say "
			  "more); nothing was changed",
		    m->gd->common, lock);
	else if (swap == SWAP_AGAIN)
		say_error("%s: other programs write refs all the time; nothing "
			  "was changed",
		    m->gd->common);
	if (swap == SWAP_DONE)
		print_line(stdout, "%s: %zu refs are in %s now", m->gd->common,
		    nr, ref_format_names[m->to]);
	free(lock);
	return swap;
}

/* The repository is held. False: refd/migrate has to stay. */
static bool migrate_held(struct migration *m, int *status)
{
	enum swap swap;

	*status = EXIT_FATAL;
	/* The configuration may have changed while this program waited. */
	if (!read_format(m))
		return !m->was_left;
	if (m->was_left && !tidy_up(m))
		return false;
	if (m->from == m->to) {
		print_line(stdout, "%s: the refs are in %s already",
		    m->gd->common, ref_format_names[m->to]);
		*status = EXIT_DONE;
		return true;
	}
	if (has_worktrees(m) || !migrate_is_clear(m, m->to))
		return true;
	swap = migrate(m);
	if (swap == SWAP_DONE)
		*status = EXIT_DONE;
	return swap != SWAP_LEFT;
}

static int run_held(struct migration *m, struct refd *r, const char *socket,
    uint64_t deadline)
{
	bool settled = true;
	int status;

	if (!migrate_begin(m)) {
		migrate_end(m, false);
		return EXIT_FATAL;
	}
	settled = !m->was_left;
	status = migrate_hold(m, r, deadline);
	if (status == EXIT_DONE && !connect_may_bypass(socket, m->gd)) {
		say_error("%s has updates that could not be written to its "
			  "refs yet: 'refd status' says why; nothing was "
			  "changed",
		    m->gd->common);
		status = EXIT_AWAY;
	} else if (status == EXIT_DONE) {
		settled = migrate_held(m, &status);
	}
	migrate_end(m, settled);
	return status;
}

/* Variables of the caller must not lead git to other refs or objects. */
static void clear_environment(void)
{
	static const char *const names[] = { "GIT_DIR", "GIT_WORK_TREE",
		"GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_REFERENCE_BACKEND",
		"GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
		"GIT_INDEX_FILE" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	/* The output names the result of git. */
	setenv("LC_ALL", "C", 1);
}

static void find_socket(struct daemon_socket *socket, const char *option,
    const struct gitdir *gd)
{
	struct gitconfig config = { 0 };

	gitconfig_load(&config, gd);
	connect_choose(socket, option, &config, gd);
	gitconfig_done(&config);
}

static struct refd *connect_to(const struct daemon_socket *socket)
{
	struct refd *r = connect_new(socket);
	int err = refd_connect(r, QUESTION_MS);

	if (err < 0)
		question_failed(r, err);
	return r;
}

struct order {
	struct options opt;
	enum ref_format to;
	struct owned at;
};

static int migrate_repository(const struct order *o, const struct gitdir *gd)
{
	struct migration m = { .gd = gd,
		.to = o->to,
		.work_fd = -1,
		.lock_fd = -1 };
	uint64_t deadline = refd_now_ms() + (uint64_t)o->opt.timeout_s * 1000;
	struct daemon_socket socket;
	int status = EXIT_FATAL;
	struct refd *r;

	find_socket(&socket, o->opt.socket, gd);
	r = connect_to(&socket);
	check_daemon(r);
	m.dirfd = files_open_dir(AT_FDCWD, gd->common);
	if (m.dirfd < 0)
		say_error("cannot open %s: %s", gd->common, strerror(-m.dirfd));
	else if (read_format(&m) && !has_worktrees(&m))
		status = run_held(&m, r, socket.path, deadline);
	if (m.dirfd >= 0)
		close(m.dirfd);
	text_done(&m.config);
	refd_free(r);
	free(socket.path);
	return status;
}

/* As the owner. */
static int work(void *arg)
{
	const struct order *o = arg;
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	int status = EXIT_FATAL;

	if (!owner_is_here(&o->at.st))
		say_error("%s belongs to user %u: run this as that user or as "
			  "root",
		    o->at.path, (unsigned)o->at.st.st_uid);
	else if (!owner_gitdir(&gd, &o->at, &why))
		say_error("%s", why.data);
	else
		status = migrate_repository(o, &gd);
	gitdir_done(&gd);
	text_done(&why);
	return status;
}

static int run_migrate(const struct command *c, int argc, char **argv)
{
	struct order o = { .opt.timeout_s = 60 };
	const struct work task = { .run = work, .arg = &o, .seconds = 86400 };
	struct text why = { 0 };
	int status;

	cli_parse(c, &o.opt, argc, &argv);
	if (!format_of_name(o.opt.format, &o.to))
		cli_usage(c, "'%s' is no format of refs: files or reftable",
		    o.opt.format);
	clear_environment();
	status = owner_work(&o.at, argv[0], task, &why);
	if (why.len)
		die("%s", why.data);
	return status;
}

static const struct command_option migrate_options[] = {
	{ OPTION_STRING("ref-format", 0, "FORMAT",
	      "the new format of the refs: files or reftable", struct options,
	      format),
	    .required = true },
	{ OPTION_NUMBER("timeout", 0, "SECONDS",
	    "give up if updates are still at work after SECONDS (60)",
	    struct options, timeout_s, 1, 24 * 3600) },
	{ OPTION_STRING("socket", 0, "PATH",
	    "the socket of the daemon that serves the repository",
	    struct options, socket) },
	{ 0 }
};

const struct command migrate_command = {
	.name = "migrate",
	.summary = "change the format of the refs of a repository",
	.arguments = "<repository>",
	.purpose =
	    "Moves the refs and the reflogs of a repository into the other "
	    "format. Pushes wait meanwhile. History and settings stay.",
	.example = "refd migrate --ref-format=reftable /srv/git/project.git",
	.manual = "refd-migrate(1)",
	.least = 1,
	.options = migrate_options,
	.run = run_migrate,
};
