#include "client/group/fetch_repo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/group/fetch_git.h"
#include "client/group/fetch_id.h"
#include "client/librefd/conn.h"

#define INIT_MS 30000

struct opening {
	struct fetch_repo *repo;
	const struct fetch_site *site;
	const struct fetch_wish *wish;
	struct text *why;
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

/* Replaces the root *DIR by the parent of the repository, and returns the name
 * in it. */
static const char *enter_parents(int *dir, char *path)
{
	char *name = path, *slash;
	int parent;

	for (; *dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		parent = *dir;
		*dir = enter(parent, name);
		close(parent);
	}
	return name;
}

/* Opens the temporary directory. A crash leaves it, and the next attempt goes
 * on with it. */
static int open_new(int parent, const char *name)
{
	int fd = enter(parent, name);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid())) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

static bool make_in(struct opening *o, int parent, const char *name)
{
	struct fetch_git git = { .site = o->site,
		.wish = o->wish,
		.until_ms = refd_now_ms() + INIT_MS,
		.objects = -1,
		.pack = -1,
		.refs = -1 };
	char hex[FETCH_ID_HEX + 1], *tmp;
	int fd;
	bool is_made = false;

	tmp = xasprintf(".refd-%s", fetch_id_hex(o->wish->uuid, hex));
	fd = open_new(parent, tmp);
	if (fd < 0)
		fail(o, "cannot make", -fd);
	else if (fetch_git_init(&git, fd) != 0)
		text_addf(o->why,
		    "cannot make '%s': git init has failed, and the log of "
		    "refd-group has the reason",
		    o->wish->path);
	else if (fetch_id_claim(fd, o->site->roots[0], o->wish, o->why))
		is_made = (syncfs(fd) == 0 &&
			      renameat(parent, tmp, parent, name) == 0) ||
		    fail(o, "cannot make", errno);
	if (fd >= 0)
		close(fd);
	free(tmp);
	return is_made;
}

/* In the first root. */
static bool make(struct opening *o)
{
	char *path = xstrdup(o->wish->path);
	int dir = open(o->site->roots[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name;
	bool is_made;

	if (dir < 0)
		dir = -errno;
	name = enter_parents(&dir, path);
	is_made =
	    dir >= 0 ? make_in(o, dir, name) : fail(o, "cannot make", -dir);
	if (is_made) {
		o->repo->fd = open_dir(dir, name);
		is_made =
		    o->repo->fd >= 0 || fail(o, "cannot open", -o->repo->fd);
	}
	if (dir >= 0)
		close(dir);
	free(path);
	return is_made;
}

/* ---- opening ---- */

/* The root that has the repository, or NULL. Sets repo->fd, or else *ERR. */
static const char *find(struct opening *o, int *err)
{
	size_t i;
	int root;

	*err = ENOENT;
	for (i = 0; i < o->site->nr_roots && *err == ENOENT; i++) {
		root =
		    open(o->site->roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		o->repo->fd = root < 0 ? -errno : open_dir(root, o->wish->path);
		if (root >= 0)
			close(root);
		if (o->repo->fd >= 0)
			return o->site->roots[i];
		*err = -o->repo->fd;
	}
	return NULL;
}

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

/* Other stores can vanish, and do not belong to the group. */
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

	repo->objects = fetch_git_above(open_dir(repo->fd, "objects"));
	if (repo->objects < 0)
		return fail(o, "cannot open the objects of", -repo->objects);
	if (mkdirat(repo->objects, "pack", 0777) < 0 && errno != EEXIST)
		return fail(o, "cannot make objects/pack of", errno);
	repo->pack = fetch_git_above(open_dir(repo->objects, "pack"));
	if (repo->pack < 0)
		return fail(o, "cannot open objects/pack of", -repo->pack);
	return check_owner(o, repo->objects) && check_owner(o, repo->pack) &&
	    check_alternates(o);
}

bool fetch_repo_open(struct fetch_repo *repo, const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *why)
{
	struct opening o = { repo, site, wish, why };
	const char *root;
	int err;

	*repo = (struct fetch_repo){ -1, -1, -1 };
	root = find(&o, &err);
	if (root) {
		if (!check_owner(&o, repo->fd) ||
		    !fetch_id_claim(repo->fd, root, wish, why))
			return false;
	} else if (err != ENOENT) {
		return fail(&o, "cannot open", err);
	} else if (!fetch_id_is_new(wish)) {
		text_addf(why,
		    "'%s' is missing, and the group does not have its first "
		    "refs: copy it from the leader, with refd/",
		    wish->path);
		return false;
	} else if (!make(&o)) {
		return false;
	}
	return open_objects(&o);
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
