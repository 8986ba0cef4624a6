/*
 * refd migrate: the refs of a repository move into the other format. Git takes
 * the format from the file "config" alone, and ignores the files of the other
 * format. So new refs can be in place before, and old refs until after, one
 * rename of the configuration:
 *
 *	hold	no daemon has the repository (client/request/hold.h)
 *	tidy	the files that a killed call has left go
 *	copy	the refs, into a private directory
 *	convert	git writes the new refs there, and lists both; see SCRIPT
 *	sync
 *	place	the new files
 *	sync
 *	turn	the new configuration, by git's lock and a rename
 *	sync
 *	tidy	the old files go, unless another program wrote them meanwhile:
 *		then the old configuration comes back
 *
 * Git's own "git refs migrate" removes the old refs first, and changes the
 * configuration at the end: in between, a reader finds no refs and no error,
 * and after a kill all refs are gone until somebody moves them back.
 *
 * Failures: an attempt is a process of its own, and each failure ends this
 * process, as a kill would. Then tidy() works, as the next call does after a
 * kill or a power loss: files of the format which the configuration does not
 * name go. So there is a single way back, and every failure proves that way.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/tree.h"
#include "client/commands.h"
#include "client/git/gitconfig.h"
#include "client/git/owner.h"
#include "client/request/daemon_of.h"
#include "client/request/hold.h"
#include "proto/lib/clock.h"
#include "proto/refname.h"

enum ref_storage { FILES, REFTABLE };
static const char *const names[] = { "files", "reftable" };

/* Of other programs that write refs meanwhile. */
#define ATTEMPTS 30
/* The exit status of an attempt: the refs have the new format already, or
 * another attempt may succeed. */
#define STATUS_AGAIN 2
/* More than the clock of a file system needs to go on. */
#define NAP_MS 20
/* Pushes wait so long at most, because the owner can stop git. */
#define SECONDS  3600
#define SAID_MAX ((size_t)64 << 20)
/* The descriptors of an attempt. */
enum { DIR_AT = 3, WORK_AT };

struct migration {
	const char *format; /* by the user, of TO */
	struct owned owned; /* the repository, or the top of a work tree */
	struct gitdir gd;
	enum ref_storage from, to; /* FROM is of the repository, by load() */
	/* By load(), of the repository's file. */
	struct text config;
	enum refd_object_format objects;
	int dir; /* the common directory */
	struct hold hold;
	int work; /* of HOLD */
	/*
	 * The present directory, below WORK, with a copy of the refs. Its name
	 * is random, and nobody else can see it. Git opens some files by
	 * absolute paths, and the group of a shared repository could replace
	 * refd/migrate, and so lead a path that it knows elsewhere.
	 */
	int private;
};

static void load(struct migration *m)
{
	struct gitconfig own = { 0 };
	const char *storage;

	tree_read(m->dir, "config", &m->config);
	gitconfig_parse(&own, &m->config);
	storage = gitconfig_get(&own, "extensions.refstorage");
	m->from = gitconfig_is_reftable(&own) ? REFTABLE : FILES;
	m->objects = gitconfig_object_format(&own, &m->gd);
	if (m->from == FILES && storage && strcmp(storage, "files"))
		die("%s: refs in '%s' are unknown", m->gd.common, storage);
	gitconfig_done(&own);
}

/* ---- the files of a format ---- */

/* Every git directory has both. With reftables they are stubs, which keep
 * programs away that do not know the format. */
static bool is_stub(const char *name)
{
	return !strcmp(name, "refs") || !strcmp(name, "HEAD");
}

struct each {
	enum ref_storage format;
	tree_fn *fn;
	void *arg;
};

static void each_name(void *arg, int from, const char *name)
{
	const struct each *e = arg;

	if (e->format == REFTABLE ?
		!strcmp(name, "reftable") :
		is_stub(name) || !strcmp(name, "packed-refs") ||
		    !strcmp(name, "logs") || refd_refname_is_root(name))
		e->fn(e->arg, from, name);
}

/* Calls FN for the names of FORMAT in the git directory FD. */
static void each_of(int fd, enum ref_storage format, tree_fn *fn, void *arg)
{
	struct each e = { format, fn, arg };

	tree_each(fd, each_name, &e);
}

/* Before the new files are in place, such a file has an unknown origin. */
static void refuse(void *arg, int from, const char *name)
{
	const struct migration *m = arg;

	if (!is_stub(name) || tree_has(from, "refs/heads/."))
		die("%s/%s exists, although the refs are in %s: move it away "
		    "if it is of no use",
		    m->gd.common, is_stub(name) ? "refs/heads" : name,
		    names[m->from]);
}

static void move_name(void *arg, int from, const char *name)
{
	tree_check((int)syscall(SYS_renameat2, from, name, *(int *)arg, name,
		       is_stub(name) ? RENAME_EXCHANGE : RENAME_NOREPLACE),
	    "move", from, name);
}

/* The sum changes with every write to the refs. A lock means that somebody
 * writes. */
static struct tree state(const struct migration *m, enum ref_storage format)
{
	struct tree t = { .task = TREE_SUM };

	tree_walk(&t, m->dir, "HEAD.lock");
	tree_walk(&t, m->dir, "packed-refs.lock");
	each_of(m->dir, format, tree_walk, &t);
	return t;
}

static bool is_still(const struct migration *m, enum ref_storage format,
    uint64_t sum)
{
	struct tree t = state(m, format);

	return !t.lock && t.sum == sum;
}

/* ---- the conversion ---- */

static void enter_private(struct migration *m)
{
	char *dir = xasprintf("/proc/self/fd/%d/XXXXXX", m->work);
	struct stat st;

	tree_check(mkdtemp(dir) ? 0 : -1, "make", m->work, "XXXXXX");
	m->private = tree_open(m->work, strrchr(dir, '/') + 1);
	tree_check(fchdir(m->private), "enter", m->private, ".");
	/* These rights follow core.sharedRepository. */
	tree_check(fstatat(m->dir, "refs", &st, AT_SYMLINK_NOFOLLOW), "read",
	    m->dir, "refs");
	umask(~st.st_mode & 0777);
	free(dir);
}

/*
 * $1 is the new format, $2 the present one, $3 the format of objects, $4 the
 * repository, $5 an entry of a log. The present directory has a copy of the
 * refs, and "next", a copy of the configuration. The script makes "new", a git
 * directory with the new refs, and changes "next". It prints why the result is
 * of no use: each difference, and all messages of git. No hook of the
 * repository or of the user gets the updates of the copy, because the
 * configuration names the formats alone.
 *
 * Git 2.55 has faults that matter here. Git ends at a broken ref, without all
 * later refs and without an error, but the list gives a warning. Git drops a
 * log without entries, so such a log gets an entry of the first second of 1970,
 * which then expires. The limit has a time zone, because git takes "@2" alone
 * for the second day of a month. In packed-refs, git promises the peeled values
 * of tags, writes none, and keeps the promise in later versions of the file, so
 * older versions of git then take a tag for an object that cannot be peeled.
 */
static const char script[] =
    "set -e\n"
    "exec 2>&1\n"
    "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 LC_ALL=C\n"
    "export GIT_OBJECT_DIRECTORY=\"$4/objects\"\n"
    "furnish() {\n"
    "	printf '[core]\\nrepositoryFormatVersion=1\\n[extensions]\\n'\n"
    "	printf 'objectFormat=%s\\nrefStorage=%s\\n' $1 $2\n"
    "}\n"
    "list() {\n"
    "	git --git-dir=$1 for-each-ref --include-root-refs \\\n"
    "	    --format='%(refname) %(objectname) %(symref)' &&\n"
    "	    echo \"HEAD is $(git --git-dir=$1 symbolic-ref -q HEAD)\" &&\n"
    "	    git --git-dir=$1 reflog list &&\n"
    "	    git --git-dir=$1 reflog expire --all --dry-run --verbose \\\n"
    "	        --expire=all\n"
    "}\n"
    "furnish $3 $2 >config\n"
    "git refs migrate -h >said 2>&1 || [ $? = 129 ] || {\n"
    "	echo 'no \"git refs\" here: put 2.48 or later first in PATH'\n"
    "	exit 1\n"
    "}\n"
    "list . >before\n"
    "echo \"$5\" >entry\n"
    "[ ! -d logs ] || find logs -type f -empty -exec cp entry {} \\;\n"
    "git --git-dir=. refs migrate --ref-format=$1 --dry-run >said\n"
    "mv ref_migration.* new\n"
    "furnish $3 $1 >new/config\n"
    "git config -f next core.repositoryFormatVersion 1\n"
    "if [ $1 = reftable ]; then\n"
    "	git --git-dir=new reflog expire --all --expire='@2 +0000' \\\n"
    "	    --expire-unreachable=never\n"
    "	git config -f next extensions.refStorage reftable\n"
    "else\n"
    "	git --git-dir=. reflog list | while read -r log; do\n"
    "		mkdir -p \"$(dirname \"new/logs/$log\")\"\n"
    "		: >>\"new/logs/$log\"\n"
    "	done\n"
    "	if [ -e new/packed-refs ]; then\n"
    "		sed '/^[#^]/d' new/packed-refs >refs.packed\n"
    "		sed 's/ .*/^{}/' refs.packed | git --git-dir=. cat-file \\\n"
    "		    --batch-check='%(objectname)' >refs.peeled\n"
    "		head -n 1 new/packed-refs >said\n"
    "		paste -d ' ' refs.packed refs.peeled | awk \\\n"
    "		    '{ print $1, $2 } !$4 && $1 != $3 { print \"^\" $3 }' >>said\n"
    "		cat said >new/packed-refs\n"
    "	fi\n"
    "	git config -f next --unset-all extensions.refStorage\n"
    "fi\n"
    "list new >after\n"
    "for list in before after; do sort -o $list $list; done\n"
    "comm -23 before after | sed 's/^/only before the migration: /'\n"
    "comm -13 before after | sed 's/^/only after the migration: /'\n";

/* ---- the swap ---- */

/* WANTED takes the place of WAS, under git's lock. */
static void put_config(const struct migration *m, const char *wanted,
    const char *was)
{
	struct text now = { 0 };
	struct stat st;

	tree_write(m->work, "config", wanted);
	tree_check(fstatat(m->dir, "config", &st, AT_SYMLINK_NOFOLLOW), "read",
	    m->dir, "config");
	/* The rights of a group that the owner lacks go to no other group. */
	if (fchownat(m->work, "config", (uid_t)-1, st.st_gid, 0) < 0)
		st.st_mode &= ~(mode_t)0070;
	tree_check(fchmodat(m->work, "config", st.st_mode & 0777, 0),
	    "change the mode of", m->work, "config");
	tree_check(linkat(m->work, "config", m->dir, "config.lock", 0), "make",
	    m->dir, "config.lock");
	tree_read(m->dir, "config", &now);
	if (strcmp(now.data, was))
		die("another program changed %s/config", m->gd.common);
	tree_check(renameat(m->dir, "config.lock", m->dir, "config"), "replace",
	    m->dir, "config");
	tree_sync(m->dir);
}

static void swap(const struct migration *m, uint64_t before)
{
	int new = tree_open(m->private, "new");
	struct text next = { 0 };
	char *states;

	tree_read(m->private, "next", &next);
	tree_write(m->work, "next", next.data);
	tree_write(m->work, "placed", m->config.data);
	tree_sync(m->dir);
	each_of(new, m->to, move_name, (void *)&m->dir);
	states = xasprintf("%d %" PRIu64 " %" PRIu64, (int)m->to, before,
	    state(m, m->to).sum);
	tree_write(m->work, "states", states);
	tree_sync(m->dir);
	if (tree_has(m->dir, "worktrees") || !is_still(m, m->from, before))
		exit(STATUS_AGAIN);
	put_config(m, next.data, m->config.data);
}

/* ---- after an attempt or a kill ---- */

/* A program that began before the turn may have written the old refs after the
 * last look. Then these refs count, and the old configuration comes back. */
static void check_turn(struct migration *m)
{
	const enum ref_storage old = m->from == FILES ? REFTABLE : FILES;
	struct text was = { 0 }, next = { 0 }, states = { 0 };
	uint64_t before = 0, placed = 0;
	int to = -1;

	tree_read(m->work, "placed", &was);
	tree_read(m->work, "next", &next);
	tree_read(m->work, "states", &states);
	sscanf(states.data, "%d %" SCNu64 " %" SCNu64, &to, &before, &placed);
	/* Programs which have read the old configuration use the old refs. */
	clock_nap(5 * NAP_MS, UINT64_MAX);
	/* After a kill, a daemon takes reftable/ away (repo_claim.c). */
	if ((int)m->from == to && !tree_has(m->work, "reftable") &&
	    !is_still(m, old, before)) {
		if (strcmp(next.data, m->config.data) ||
		    !is_still(m, m->from, placed))
			die("%s is in use with refs in %s, but another program "
			    "wrote refs in %s, too: compare both, remove "
			    "refd/migrate/states there, and run this command "
			    "again, which removes the latter",
			    m->gd.common, names[m->from], names[old]);
		put_config(m, was.data, m->config.data);
		load(m);
	}
	/* From now on the next call takes the old files away. */
	unlinkat(m->work, "states", 0);
	tree_sync(m->dir);
}

/* Each step destroys a part of the way back, so each step is on the disk before
 * the next step begins. */
static void tidy(struct migration *m)
{
	struct tree all = { .task = TREE_REMOVE };
	struct stat lock, ours;
	int old;

	load(m);
	if (tree_has(m->work, "placed")) {
		tree_sync(m->dir);
		/* The lock is a link to the next configuration. */
		if (fstatat(m->work, "config", &ours, 0) == 0 &&
		    fstatat(m->dir, "config.lock", &lock, 0) == 0 &&
		    lock.st_ino == ours.st_ino)
			unlinkat(m->dir, "config.lock", 0);
		unlinkat(m->work, "config", 0);
		if (tree_has(m->work, "states"))
			check_turn(m);
		enter_private(m);
		old = tree_make(m->private, "old");
		/* As git's refs_create_refdir_stubs(). */
		close(tree_make(old, "refs"));
		tree_write(old, "refs/heads",
		    "this repository uses the reftable format\n");
		tree_write(old, "HEAD", "ref: refs/heads/.invalid\n");
		each_of(m->dir, m->from == FILES ? REFTABLE : FILES, move_name,
		    &old);
		tree_sync(m->dir);
	}
	tree_each(m->work, tree_walk, &all);
}

/* ---- the order ---- */

/* A git that outlives a kill of this program keeps the lock of the work. */
static void convert(const struct migration *m)
{
	const int hex = (int)refd_object_format_hex(m->objects);
	const char *const argv[] = { "sh", "-c", script, "sh", names[m->to],
		names[m->from], refd_object_format_name(m->objects),
		m->gd.common,
		xasprintf("%0*d %0*d x <x> 1 +0000\tx", hex, 0, hex, 1), NULL };
	struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.err = LAUNCH_NULL,
		.fds = { { m->work, WORK_AT } },
		.no_git = true,
		.seconds = SECONDS };
	struct text said = { 0 };
	int status = child_read(&l,
	    &(struct child_output){ .out = &said,
		.out_max = SAID_MAX,
		.cancel = -1 });

	print_text(stderr, PRINT_AS_LINES, said.data, said.len);
	if (status < 0)
		die("git: %s", strerror(-status));
	if (status || said.len)
		exit(EXIT_FATAL);
}

static int attempt(void *arg)
{
	struct migration *m = arg;
	struct tree copy = { .task = TREE_COPY }, before;

	m->dir = DIR_AT;
	m->work = WORK_AT;
	before = state(m, m->from);
	each_of(m->dir, m->to, refuse, m);
	if (tree_has(m->dir, "worktrees"))
		die("%s has linked worktrees, and git does not migrate their "
		    "refs: remove them with 'git worktree remove' or 'prune'",
		    m->gd.common);
	clock_nap(NAP_MS, UINT64_MAX);
	if (before.lock)
		exit(STATUS_AGAIN);
	enter_private(m);
	copy.to = m->private;
	each_of(m->dir, FILES, tree_walk, &copy);
	tree_walk(&copy, m->dir, "reftable");
	tree_write(m->private, "next", m->config.data);
	if (!is_still(m, m->from, before.sum))
		exit(STATUS_AGAIN);
	convert(m);
	swap(m, before.sum);
	return STATUS_AGAIN;
}

/* As the owner. */
static int migrate(void *arg)
{
	struct migration *m = arg;
	struct text why = { 0 };
	struct launch l = { .run = attempt,
		.arg = m,
		.in = LAUNCH_NULL,
		.out = STDOUT_FILENO,
		.err = STDERR_FILENO,
		.seconds = SECONDS };
	unsigned i;
	int status = STATUS_AGAIN;
	struct daemon_socket socket;
	struct launched c;
	const char *lock;

	if (!owner_gitdir(&m->gd, &m->owned, &why))
		die("%s", why.data);
	if (m->gd.owner != geteuid())
		die("%s belongs to user %u: run this as that user or as root",
		    m->gd.common, (unsigned)m->gd.owner);
	m->dir = tree_open(AT_FDCWD, m->gd.common);
	if (!daemon_of_gitdir(&socket, &m->gd, &why))
		die("%s", why.data);
	hold_begin(&m->hold, m->dir, &m->gd, &socket);
	free(socket.path);
	m->work = m->hold.work;
	l.fds[0] = (struct launch_fd){ m->dir, DIR_AT };
	l.fds[1] = (struct launch_fd){ m->work, WORK_AT };
	tidy(m);
	for (i = 0; i < ATTEMPTS && m->from != m->to && status == STATUS_AGAIN;
	    i++) {
		clock_nap(i < 10 ? i * NAP_MS : 10 * NAP_MS, UINT64_MAX);
		status = launch_start(&c, &l);
		if (status == 0)
			status = launch_wait(&c);
		tidy(m);
	}
	lock = state(m, m->from).lock;
	hold_end(&m->hold);
	if (status == STATUS_AGAIN && m->from != m->to)
		say_error("another program writes, or left a lock ('refd "
			  "locks' says more): %s",
		    lock ? lock : "no lock at present");
	if (status < 0)
		say_error("the migration: %s", strerror(-status));
	if (m->from != m->to)
		die("%s: the refs are in %s as before", m->gd.common,
		    names[m->from]);
	print_line(stdout, "%s: the refs are in %s %s", m->gd.common,
	    names[m->to], i > 0 ? "now" : "already");
	text_done(&m->config);
	gitdir_done(&m->gd);
	return EXIT_DONE;
}

/* ---- the command ---- */

static int run_migrate(const struct command *c, int argc, char **argv)
{
	struct migration m = { 0 };
	const struct work work = { .run = migrate,
		.arg = &m,
		.seconds = SECONDS,
		.bytes = 2 * SAID_MAX };
	struct text why = { 0 };
	int status;

	cli_parse(c, &m, argc, &argv);
	m.to = strcmp(m.format, names[FILES]) ? REFTABLE : FILES;
	if (strcmp(m.format, names[m.to]))
		cli_usage(c, "'%s' is no format of refs: files or reftable",
		    m.format);
	status = owner_work(&m.owned, argv[0], work, &why);
	if (why.len)
		die("%s", why.data);
	return status;
}

static const struct command_option migrate_options[] = {
	{ OPTION_STRING("ref-format", 0, "FORMAT",
	      "the new format of the refs: files or reftable", struct migration,
	      format),
	    .required = true },
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
