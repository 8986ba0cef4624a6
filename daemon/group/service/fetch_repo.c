#include "daemon/group/service/fetch_repo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/base/tree.h"
#include "daemon/group/service/fetch_find.h"
#include "daemon/group/service/fetch_git.h"
#include "daemon/group/service/fetch_id.h"
#include "proto/lib/clock.h"

#define INIT_MS 30000
#define ASIDE   ".refd-%s"
#define WAY     FETCH_REPO_WAY "%s-%lld" /* and seconds */

struct opening {
	struct fetch_repo *repo;
	const struct fetch_site *site;
	const struct fetch_wish *wish;
	struct text *why;
	int err;          /* of a failed look; 0: none */
	bool is_doubtful; /* others may write an id with the uuid */
};

static bool fail(struct opening *o, const char *doing, int err)
{
	text_addf(o->why, "%s '%s': %s", doing, o->wish->path, strerror(err));
	return false;
}

int fetch_repo_beneath(int dir, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC |
				    O_NONBLOCK | O_NOCTTY),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
		    RESOLVE_NO_MAGICLINKS };
	int fd;

	do
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

/* Opens the directory PATH beneath ROOT. */
static int beneath_root(const char *root, const char *path)
{
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir < 0)
		return -errno;
	fd = fetch_repo_beneath(dir, path, O_RDONLY | O_DIRECTORY);
	close(dir);
	return fd;
}

static int open_dir(int dir, const char *path)
{
	return fetch_repo_beneath(dir, path, O_RDONLY | O_DIRECTORY);
}

/* ---- a new repository ---- */

/* Opens the directory NAME, and makes it if it is missing. */
static int enter(int parent, const char *name)
{
	return mkdirat(parent, name, 0777) < 0 && errno != EEXIST ?
	    -errno :
	    open_dir(parent, name);
}

/* Replaces the root *DIR by the parent of the repository. */
static void enter_parents(int *dir, char *path)
{
	char *name = path, *slash;
	int parent;

	for (; *dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		parent = *dir;
		*dir = enter(parent, name);
		close(parent);
	}
}

/* Makes or opens the directory of a repository aside. A crash leaves the
 * directory, and the next attempt goes on there. But git reads the files of a
 * complete copy, so a copy gets a new directory. The directory must belong to
 * this account, because otherwise somebody else may have made it. */
static int open_new(int parent, const char *name, bool copies)
{
	struct tree old = { .task = TREE_REMOVE };
	struct stat st;
	int fd;

	if (copies)
		tree_walk(&old, parent, name);
	if (copies && mkdirat(parent, name, 0700) < 0)
		return -errno;
	fd = enter(parent, name);
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid())) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

static void clean_tables(int repo_fd)
{
	int fd = open_dir(repo_fd, "reftable");
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(fd, entry->d_name, 0);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	unlinkat(repo_fd, "reftable", AT_REMOVEDIR);
}

/* A kill in git init leaves locks, and a power loss blank files, and git goes
 * on with neither. No id names these files yet, so they can go. */
static void clean(int fd)
{
	static const char *const names[] = { "HEAD", "HEAD.lock", "config",
		"config.lock" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(fd, names[i], 0);
	clean_tables(fd);
}

static bool guard(struct opening *o)
{
	char *dir = xasprintf("/proc/self/fd/%d", o->repo->fd);
	bool is_done = guard_make(&o->site->guard, dir, o->wish->cancel);

	if (!is_done)
		text_addf(o->why,
		    "cannot keep git from writing to '%s': refd enable has "
		    "failed, and the log of refd-group has the reason",
		    o->wish->path);
	free(dir);
	return is_done;
}

/* The id says that the files are good, so all else comes before, and is
 * synced. */
static bool complete(struct opening *o)
{
	int err = fetch_id_mark(o->repo->fd);

	if (err < 0)
		return fail(o, "cannot make refd/group of", -err);
	return guard(o) &&
	    (syncfs(o->repo->fd) == 0 || fail(o, "cannot sync", errno));
}

static bool init(struct opening *o)
{
	struct fetch_git git = { .site = o->site,
		.wish = o->wish,
		.until_ms = clock_now_ms() + INIT_MS,
		.objects = -1,
		.pack = -1,
		.refs = -1,
		.tables = -1 };

	clean(o->repo->fd);
	if (fetch_git_init(&git, o->repo->fd) == 0)
		return complete(o);
	text_addf(o->why,
	    "cannot make '%s': git init has failed, and the log of "
	    "refd-group has the reason",
	    o->wish->path);
	return false;
}

/* Aside, below the first root. */
static bool make(struct opening *o)
{
	char hex[FETCH_ID_HEX + 1], *path = xstrdup(o->wish->path);
	char *name = xasprintf(ASIDE, fetch_id_hex(o->wish->uuid, hex));
	int dir = open(o->site->roots[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		dir = -errno;
	enter_parents(&dir, path);
	o->repo->fd = dir < 0 ? dir : open_new(dir, name, o->wish->copies);
	if (dir >= 0)
		close(dir);
	free(path);
	free(name);
	if (o->repo->fd < 0)
		return fail(o, "cannot make", -o->repo->fd);
	return init(o) &&
	    fetch_id_claim(o->repo->fd, o->site, o->site->roots[0], o->wish,
		o->why);
}

/* ---- opening ---- */

/* As in the daemon: root serves only repositories of root. */
static bool check_owner(struct opening *o, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(o, "cannot open", errno);
	if (geteuid() != 0 || st.st_uid == 0)
		return true;
	text_addf(o->why, "'%s' does not belong to root", o->wish->path);
	return false;
}

/* Other stores can vanish, and do not belong to the group, so alternates are
 * refused. */
static bool check_alternates(struct opening *o)
{
	int fd =
	    fetch_repo_beneath(o->repo->objects, "info/alternates", O_RDONLY);

	if (fd == -ENOENT)
		return true;
	if (fd >= 0)
		close(fd);
	text_addf(o->why,
	    "'%s' has objects/info/alternates: in a group every repository "
	    "must have all its objects, so run git repack -a -d there, and "
	    "remove the file",
	    o->wish->path);
	return false;
}

static bool open_objects(struct opening *o)
{
	struct fetch_repo *repo = o->repo;

	repo->objects = open_dir(repo->fd, "objects");
	if (repo->objects < 0)
		return fail(o, "cannot open the objects of", -repo->objects);
	if (mkdirat(repo->objects, "pack", 0777) < 0 && errno != EEXIST)
		return fail(o, "cannot make objects/pack of", errno);
	repo->pack = open_dir(repo->objects, "pack");
	if (repo->pack < 0)
		return fail(o, "cannot open objects/pack of", -repo->pack);
	return check_owner(o, repo->objects) && check_owner(o, repo->pack) &&
	    check_alternates(o);
}

/* The path of the repository aside, to be freed. */
static char *aside_path(const struct fetch_wish *wish)
{
	const char *slash = strrchr(wish->path, '/');
	char hex[FETCH_ID_HEX + 1];

	return xasprintf("%.*s" ASIDE,
	    slash ? (int)(slash + 1 - wish->path) : 0, wish->path,
	    fetch_id_hex(wish->uuid, hex));
}

/* A failure of the disk or of memory says nothing about the repository, and a
 * doubtful id may be right. So no second repository may be made. */
static void note_failure(struct opening *o, int err)
{
	if (err == -EKEYREJECTED)
		o->is_doubtful = true;
	else if (err != -ENOENT && err != -ENOTDIR && err != -ELOOP &&
	    err != -ESTALE)
		o->err = -err;
}

/* Uses the repository at PATH if it has the uuid. IS_PLACE: PATH is the place
 * of the repository. After chmod -R g+w, others may write the id until the next
 * row comes, so an id that others may write counts in the place. Aside nothing
 * confirms such an id, so it does not count there. */
static bool is_at(struct opening *o, const char *root, const char *path,
    bool is_place)
{
	enum own_file whose = OWN_FILE_FOREIGN;
	int fd = beneath_root(root, path);
	int err = fd < 0 ? fd : fetch_id_look(fd, o->wish, &whose);

	if (err == 0 && whose != OWN_FILE_CLOSED && !is_place)
		err = -EKEYREJECTED;
	if (err == 0) {
		o->repo->fd = fd;
		return true;
	}
	if (fd >= 0)
		close(fd);
	note_failure(o, err);
	return false;
}

static bool is_aside(struct opening *o, const char *root)
{
	char *path = aside_path(o->wish);
	bool is_it = is_at(o, root, path, false);

	free(path);
	return is_it;
}

/* A row can move the repository from aside to its place between two looks, so
 * the place gets a second look. */
static bool is_in_place(struct opening *o, const char *root)
{
	return is_at(o, root, o->wish->path, true) || is_aside(o, root) ||
	    is_at(o, root, o->wish->path, true);
}

static bool is_elsewhere(struct opening *o, const char *root)
{
	o->repo->fd = fetch_find(root, o->wish);
	if (o->repo->fd < 0)
		note_failure(o, o->repo->fd);
	return o->repo->fd >= 0;
}

/* Uses the repository at the path of the wish, if this repository has no uuid
 * and no refs. */
static bool may_claim_place(struct opening *o, const char *root)
{
	int fd = beneath_root(root, o->wish->path);

	if (fd < 0)
		return false;
	if (fetch_id_may_claim(fd, o->site, o->wish))
		o->repo->fd = fd;
	else
		close(fd);
	return o->repo->fd == fd;
}

/* The root that has the repository. NULL: none has, or o->err, or
 * o->is_doubtful. */
static const char *find(struct opening *o)
{
	const struct fetch_site *site = o->site;
	size_t i;

	if (o->wish->copies)
		return NULL;
	for (i = 0; i < site->nr_roots; i++)
		if (is_in_place(o, site->roots[i]))
			return site->roots[i];
	for (i = 0; i < site->nr_roots && !o->wish->is_new; i++)
		if (is_elsewhere(o, site->roots[i]))
			return site->roots[i];
	for (i = 0; i < site->nr_roots && !o->err && !o->is_doubtful; i++)
		if (may_claim_place(o, site->roots[i]))
			return site->roots[i];
	return NULL;
}

static bool doubt(const struct opening *o)
{
	char hex[FETCH_ID_HEX + 1];

	text_addf(o->why,
	    "'%s' is missing, and others may write a refd/id with its uuid, "
	    "%s, elsewhere below the root: if it is the repository, copy "
	    "refd/id to a new file with mode 644, and rename that to refd/id; "
	    "otherwise move it away",
	    o->wish->path, fetch_id_hex(o->wish->uuid, hex));
	return false;
}

bool fetch_repo_open(struct fetch_repo *repo, const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *why)
{
	struct opening o = { repo, site, wish, why, 0, false };
	const char *root;

	*repo = (struct fetch_repo){ -1, -1, -1 };
	root = find(&o);
	if (!root && o.err)
		return fail(&o, "cannot look for", o.err);
	if (!root && o.is_doubtful)
		return doubt(&o);
	if (root)
		return check_owner(&o, repo->fd) &&
		    fetch_id_claim(repo->fd, site, root, wish, why) &&
		    guard(&o) && open_objects(&o);
	if (fetch_id_is_new(wish))
		return make(&o) && open_objects(&o);
	text_addf(why,
	    "'%s' is missing, and the group does not have its first refs: copy "
	    "it from the leader, with refd/",
	    wish->path);
	return false;
}

bool fetch_repo_open_place(struct fetch_repo *repo, const char *root,
    const struct fetch_wish *wish, struct text *why)
{
	struct opening o = { repo, NULL, wish, why, 0, false };

	*repo = (struct fetch_repo){ beneath_root(root, wish->path), -1, -1 };
	if (repo->fd < 0)
		return fail(&o, "cannot open", -repo->fd);
	return check_owner(&o, repo->fd) && open_objects(&o);
}

void fetch_repo_close(struct fetch_repo *repo)
{
	if (repo->fd >= 0)
		close(repo->fd);
	if (repo->objects >= 0)
		close(repo->objects);
	if (repo->pack >= 0)
		close(repo->pack);
}

/* Makes room at PATH. A link or a file stays, so the copy finds no room. If the
 * same repository comes twice in one second, the name has the next second. */
static bool clear_place(int parent, const char *name, const char *path,
    const struct fetch_wish *wish)
{
	int fd = open_dir(parent, name), err = fd < 0 ? -fd : EEXIST;
	char hex[FETCH_ID_HEX + 1], *way = NULL;
	long long at = (long long)time(NULL);

	for (; err == EEXIST; at++) {
		free(way);
		way = xasprintf(WAY, fetch_id_hex(wish->uuid, hex), at);
		err = renameat2(parent, name, parent, way, RENAME_NOREPLACE) ?
		    errno :
		    0;
	}
	if (err == 0)
		say("the old '%s' is now '%s' in the same directory", path,
		    way);
	if (fd >= 0)
		close(fd);
	free(way);
	return err == 0;
}

static bool leave(const struct fetch_site *site, const struct fetch_wish *wish,
    const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *above =
	    slash ? xasprintf("%.*s", (int)(slash - path), path) : xstrdup(".");
	int parent = beneath_root(site->roots[0], above);
	int fd = parent < 0 ? parent : open_dir(parent, name);
	enum own_file whose;
	int r = fd < 0 ? fd : fetch_id_look(fd, wish, &whose);
	/* No row follows a link, or takes a directory without the id. */
	bool is_gone = r == -ENOENT || r == -ESTALE || r == -ELOOP ||
	    r == -ENOTDIR || (r == 0 && clear_place(parent, name, path, wish));

	if (fd >= 0)
		close(fd);
	if (parent >= 0)
		close(parent);
	free(above);
	return is_gone;
}

bool fetch_repo_leave(const struct fetch_site *site,
    const struct fetch_wish *wish)
{
	char *aside = aside_path(wish);
	bool is_gone =
	    leave(site, wish, wish->path) && leave(site, wish, aside);

	free(aside);
	return is_gone;
}

/* The mode that mkdir() would have given. */
static int show(int parent, const char *name)
{
	mode_t mask = umask(0);
	struct stat st;

	umask(mask);
	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ?
	    -1 :
	    fchmodat(parent, name, (st.st_mode & 07777) | (0077 & ~mask), 0);
}

static int place(int parent, const char *from, const char *name)
{
	return show(parent, from) < 0 ||
		renameat2(parent, from, parent, name, RENAME_NOREPLACE) < 0 ||
		syncfs(parent) < 0 ?
	    errno :
	    0;
}

bool fetch_repo_place(const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *why)
{
	struct opening o = { NULL, site, wish, why, 0, false };
	char *aside = aside_path(wish), *slash = strrchr(aside, '/');
	const char *name = strrchr(wish->path, '/');
	int parent, err;

	name = name ? name + 1 : wish->path;
	if (slash)
		*slash = '\0';
	parent = beneath_root(site->roots[0], slash ? aside : ".");
	if (parent >= 0)
		clear_place(parent, name, wish->path, wish);
	err = parent < 0 ? -parent :
			   place(parent, slash ? slash + 1 : aside, name);
	if (parent >= 0)
		close(parent);
	free(aside);
	return err == 0 || fail(&o, "cannot put in its place", err);
}
