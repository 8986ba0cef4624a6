#include "daemon/group/row_place.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/group/row_search.h"

#define ASIDE_MAX (sizeof(".refd-") + 32)

struct put {
	const struct row_place *place;
	struct repos *repos;
	const struct sys *sys;
	const uint8_t *uuid;
	char rest[GROUP_PATH_MAX + 1]; /* the path below a root */
	char known[REFD_PATH_MAX];     /* another path, or "" */
	bool is_lost;                  /* an empty one is here instead */
	char *why;
	size_t why_size;
};

/* A name in an open directory. */
struct spot {
	int dir; /* -1: none */
	char path[REFD_PATH_MAX];
};

static int __attribute__((format(printf, 3, 4))) fail(const struct put *p,
    int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why, p->why_size, fmt, ap);
	va_end(ap);
	return err;
}

static void aside_name(const uint8_t uuid[16], char name[ASIDE_MAX])
{
	memcpy(name, ".refd-", sizeof(".refd-"));
	repo_id_hex(uuid, name + strlen(name));
}

/* ---- spots ---- */

static const char *spot_name(const struct spot *spot)
{
	return strrchr(spot->path, '/') + 1;
}

static void spot_close(const struct put *p, struct spot *spot)
{
	if (spot->dir >= 0)
		SYS(p->sys, close, spot->dir);
	spot->dir = -1;
}

static int open_parent(const struct put *p, const char *root, const char *rest,
    int len)
{
	int root_fd = repo_open_below_root(p->repos, root), fd;
	char parent[REFD_PATH_MAX];

	if (root_fd < 0 || len == 0)
		return root_fd;
	snprintf(parent, sizeof(parent), "%.*s", len, rest);
	fd = SYS(p->sys, openat, root_fd, parent, O_RDONLY | O_DIRECTORY, 0);
	SYS(p->sys, close, root_fd);
	return fd;
}

/* Opens the directory of REST, a path below ROOT. NAME: in place of the last
 * name of REST, or NULL. */
static int spot_open(const struct put *p, const char *root, const char *rest,
    const char *name, struct spot *spot)
{
	const char *slash = strrchr(rest, '/');
	int len = slash != NULL ? (int)(slash - rest) : 0;

	if (name == NULL)
		name = slash != NULL ? slash + 1 : rest;
	spot->dir = -1;
	if (snprintf(spot->path, sizeof(spot->path), "%s/%.*s%s%s", root, len,
		rest, len > 0 ? "/" : "", name) >= (int)sizeof(spot->path))
		return -ENAMETOOLONG;
	spot->dir = open_parent(p, root, rest, len);
	return spot->dir < 0 ? spot->dir : 0;
}

/* -ENOENT: nothing is there. -ENODATA: no repository of this daemon is. */
static int spot_id(const struct put *p, const struct spot *spot,
    struct repo_id *id)
{
	int fd = SYS(p->sys, openat, spot->dir, spot_name(spot),
		O_RDONLY | O_DIRECTORY, 0),
	    r;

	if (fd == -ENOTDIR || fd == -ELOOP)
		return -ENODATA;
	if (fd < 0)
		return fd;
	r = row_search_id(p->sys, fd, id);
	SYS(p->sys, close, fd);
	return r;
}

/* Opens the repository at SPOT. If it was open, the next call does so. */
static void open_again(const struct put *p, const struct spot *spot)
{
	enum refd_status status;
	struct repo *repo;
	char *why;

	repo = repos_get(p->repos, spot->path, NULL, &status, &why);
	free(why);
	if (repo == NULL)
		return;
	repo_doom(p->repos, repo);
	repo_put(p->repos, repo);
}

/* An id that others may write counts only if the journal confirms the id at
 * this path. But after a move, the journal still has the former path. So the
 * repository at SPOT is opened before the move, because the opening replaces
 * the id: by the same id if the journal has the repository here, or by a new
 * one (repo_claim.c). Returns as spot_id(). */
static int settle_id(const struct put *p, const struct spot *spot,
    struct repo_id *id)
{
	int tries, r = 0;

	for (tries = 0; tries < 2 && r == 0 && id->whose == OWN_FILE_OPEN;
	    tries++) {
		open_again(p, spot);
		r = spot_id(p, spot, id);
	}
	return r;
}

/* ---- finding ---- */

/* Does a path lead to nothing, or to nothing of this daemon? */
static bool is_elsewhere(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -ELOOP ||
	    err == -EXDEV || err == -ENODATA;
}

/* R is the result of reading ID. 0: the repository has the uuid of the row. 1:
 * a different repository, none, or a new one in place of a lost one. */
static int compare(struct put *p, int r, const struct repo_id *id)
{
	if (r == 0 && memcmp(id->uuid, p->uuid, sizeof(id->uuid)) == 0) {
		r = repo_is_lost(p->repos, id);
		p->is_lost = p->is_lost || r > 0;
		return r;
	}
	return r == 0 || is_elsewhere(r) ? 1 : r;
}

/* 0: the repository is in its place below ROOT. 1: the repository is
 * elsewhere. */
static int look_at_place(struct put *p, const char *root,
    char path[REFD_PATH_MAX])
{
	struct repo_id id;
	int fd, r;

	if (snprintf(path, REFD_PATH_MAX, "%s/%s", root, p->rest) >=
	    REFD_PATH_MAX)
		return 1;
	fd = repo_open_below_root(p->repos, path);
	r = fd < 0 ? fd : row_search_id(p->sys, fd, &id);
	if (fd >= 0)
		SYS(p->sys, close, fd);
	return compare(p, r, &id);
}

/* As compare(), of the path in the journal. -EBUSY: the repository cannot be
 * opened now. */
static int compare_settled(struct put *p, const struct spot *spot,
    struct repo_id *id)
{
	int r = compare(p, settle_id(p, spot, id), id);

	return r == 0 && id->whose == OWN_FILE_OPEN ? -EBUSY : r;
}

/* 0: the repository is at SPOT. 1: the repository is elsewhere, and SPOT is
 * closed. */
static int look_at(struct put *p, const char *root, const char *rest,
    const char *name, struct spot *spot)
{
	int r = spot_open(p, root, rest, name, spot);
	struct repo_id id;

	r = compare(p, r == 0 ? spot_id(p, spot, &id) : r, &id);
	/* Nothing confirms an id aside, which has a NAME. */
	if (r == 0 && id.whose == OWN_FILE_OPEN)
		r = name != NULL ? 1 : compare_settled(p, spot, &id);
	if (r != 0)
		spot_close(p, spot);
	return r;
}

/* The root of the known path, and the rest of the path, or NULL. */
static const char *known_root(const struct put *p, const char **rest)
{
	const char *root, *found = NULL;
	size_t i, len, longest = 0;

	for (i = 0; i < p->repos->nr_roots; i++) {
		root = p->repos->roots[i];
		len = strlen(root);
		if (len > longest && strncmp(p->known, root, len) == 0 &&
		    p->known[len] == '/' && p->known[len + 1] != '\0') {
			longest = len;
			found = root;
		}
	}
	*rest = p->known + longest + 1;
	return found;
}

/* 0: the repository is at FROM, below *ROOT. 1: the repository is elsewhere. */
static int look_at_known(struct put *p, struct spot *from, const char **root)
{
	char aside[ASIDE_MAX];
	const char *rest;
	int r;

	*root = known_root(p, &rest);
	if (*root == NULL)
		return 1;
	aside_name(p->uuid, aside);
	r = look_at(p, *root, rest, NULL, from);
	return r == 1 ? look_at(p, *root, rest, aside, from) : r;
}

static int note_known(void *arg, const struct journal_repo *known)
{
	struct put *p = arg;

	snprintf(p->known, sizeof(p->known), "%s", known->path);
	return 0;
}

/* 0: the repository is at FROM, below *ROOT. 1: the repository was not
 * found. */
static int find(struct put *p, struct spot *from, const char **root)
{
	char aside[ASIDE_MAX];
	int r = 1;
	size_t i;

	aside_name(p->uuid, aside);
	for (i = 0; r == 1 && i < p->repos->nr_roots; i++) {
		*root = p->repos->roots[i];
		r = look_at(p, *root, p->rest, aside, from);
	}
	if (r != 1)
		return r;
	r = journal_find_repo(p->repos->journal, p->uuid, note_known, p);
	if (r != 0)
		return r > 0 ? -EIO : r;
	r = look_at_known(p, from, root);
	if (r == 1 && p->place->searches &&
	    row_search_find(p->repos, p->uuid, p->known))
		r = look_at_known(p, from, root);
	return r;
}

/* ---- moving ---- */

/* Parts of PATH do not exist, or lead elsewhere, or something is there. */
static int blocked(const struct put *p, int err, const char *path)
{
	return fail(p, err,
	    "'%s' is in the way, and is no repository of the group: move it to "
	    "another path (%s)",
	    path, strerror(-err));
}

static int move(const struct put *p, const struct spot *from,
    const struct spot *to)
{
	int r = SYS(p->sys, renameat, from->dir, spot_name(from), to->dir,
	    spot_name(to));

	if (r < 0)
		return fail(p, r, "can't move '%s' to '%s': %s", from->path,
		    to->path, strerror(-r));
	return 0;
}

static void tell(const struct put *p, const char *from, const char *to)
{
	if (p->place->event != NULL)
		p->place->event(STORE_ROW_MOVED, to, from);
}

/* Moves SPOT to NAME in the same directory. */
static int rename_to(const struct put *p, struct spot *spot, const char *name)
{
	const size_t len = (size_t)(spot_name(spot) - spot->path);
	struct spot to = *spot;
	struct sys_stat st;
	int r = -ENAMETOOLONG;

	if (snprintf(to.path + len, sizeof(to.path) - len, "%s", name) <
	    (int)(sizeof(to.path) - len))
		r = SYS(p->sys, lstatat, to.dir, name, &st);
	if (r != -ENOENT)
		return fail(p, r == 0 ? -EEXIST : r,
		    "'%s' is in the way, and can't be moved to '%s' beside it "
		    "(%s): move it to another path",
		    spot->path, name, strerror(r == 0 ? EEXIST : -r));
	r = move(p, spot, &to);
	if (r == 0) {
		tell(p, spot->path, to.path);
		*spot = to;
	}
	return r;
}

/* Moves what is at SPOT out of the way, if it is a file or a directory. A link
 * stays, because git follows it to a repository, and without the link git would
 * serve another one. Sockets and devices stay, because they belong to
 * programs. */
static int clear_other(const struct put *p, struct spot *spot)
{
	char name[ASIDE_MAX];
	struct sys_stat st;
	int r = SYS(p->sys, lstatat, spot->dir, spot_name(spot), &st);

	if (r < 0)
		return blocked(p, r, spot->path);
	if (S_ISLNK(st.mode))
		return blocked(p, -ELOOP, spot->path);
	if (!S_ISREG(st.mode) && !S_ISDIR(st.mode))
		return blocked(p, -ENOTDIR, spot->path);
	snprintf(name, sizeof(name), ".refd-way-%llu",
	    (unsigned long long)p->place->lsn);
	return rename_to(p, spot, name);
}

/* Clears the place of the row below ROOT. Another repository is moved aside,
 * and anything else out of the way. */
static int clear_place(const struct put *p, const char *root)
{
	struct spot spot;
	struct repo_id id;
	char name[ASIDE_MAX];
	int r = spot_open(p, root, p->rest, NULL, &spot);

	if (r == 0)
		r = spot_id(p, &spot, &id);
	if (r == 0)
		r = settle_id(p, &spot, &id);
	/* Others may write this id, so its uuid can be forged. So the
	 * repository is moved out of the way as any directory: aside, it would
	 * take the name of the repository that really has this uuid. */
	if (r == 0 && id.whose == OWN_FILE_OPEN) {
		r = clear_other(p, &spot);
	} else if (r == 0) {
		aside_name(id.uuid, name);
		r = rename_to(p, &spot, name);
	} else if (r == -ENODATA) {
		r = clear_other(p, &spot);
	} else if (r == -ENOENT) {
		r = 0;
	} else {
		r = blocked(p, r, spot.path);
	}
	spot_close(p, &spot);
	return r;
}

/* A directory can't be renamed to a path below itself. So if the repository
 * FROM is above its new place, it moves aside first. */
static int leave_above(const struct put *p, const char *root, struct spot *from)
{
	const size_t len = strlen(from->path);
	char to[REFD_PATH_MAX + GROUP_PATH_MAX + 2], aside[ASIDE_MAX];

	snprintf(to, sizeof(to), "%s/%s", root, p->rest);
	if (strncmp(to, from->path, len) != 0 || to[len] != '/')
		return 0;
	aside_name(p->uuid, aside);
	return rename_to(p, from, aside);
}

static int make_parents(const struct put *p, const char *root)
{
	int fd = repo_open_below_root(p->repos, root), r;

	if (fd < 0)
		return fd;
	r = sys_make_parents(p->sys, fd, p->rest, 0755);
	SYS(p->sys, close, fd);
	return r < 0 ? r : 0;
}

/* Moves the repository FROM into its place, and syncs the file system. Without
 * the sync, a power loss could take the moves back, although the journal would
 * have the new path. */
static int bring(const struct put *p, const struct spot *from, const char *root,
    bool is_told)
{
	struct spot to = { .dir = -1 };
	int r = make_parents(p, root);

	if (r == 0)
		r = spot_open(p, root, p->rest, NULL, &to);
	if (r < 0)
		return fail(p, r, "can't make the directory of '%s/%s': %s",
		    root, p->rest, strerror(-r));
	r = move(p, from, &to);
	if (r == 0) {
		if (is_told)
			tell(p, from->path, to.path);
		r = SYS(p->sys, syncfs, to.dir);
		if (r < 0)
			fail(p, r, "can't sync the file system of '%s': %s",
			    to.path, strerror(-r));
	}
	spot_close(p, &to);
	return r;
}

/* A repository that comes from aside was at no path, and neither was a new one,
 * which refd-group makes aside. So no move is reported then. */
static int come(const struct put *p, struct spot *from, const char *root)
{
	char aside[ASIDE_MAX];
	bool was_aside;
	size_t i;
	int r = 0;

	aside_name(p->uuid, aside);
	was_aside = strcmp(spot_name(from), aside) == 0;
	for (i = 0; r == 0 && i < p->repos->nr_roots; i++)
		r = clear_place(p, p->repos->roots[i]);
	if (r == 0)
		r = leave_above(p, root, from);
	return r == 0 ? bring(p, from, root, !was_aside) : r;
}

/* Sets PATH if the repository has left its place. */
static int put_in_place(struct put *p, char path[REFD_PATH_MAX])
{
	struct spot from = { .dir = -1 };
	const char *root;
	int r = find(p, &from, &root);

	if (r == 1 && p->is_lost)
		return fail(p, -ENOENT,
		    "this node had the repository '%s' and has lost it: copy "
		    "it from another node, with refd/",
		    p->rest);
	if (r == 1)
		return fail(p, -ENOENT,
		    "this node does not have the repository '%s' of the "
		    "leader: refd-group must bring it",
		    p->rest);
	if (r < 0)
		return fail(p, r, "can't look for '%s': %s", p->rest,
		    strerror(-r));
	if (p->place->has_left)
		snprintf(path, REFD_PATH_MAX, "%s", from.path);
	else
		r = come(p, &from, root);
	spot_close(p, &from);
	return r;
}

int row_place_put(const struct row_place *place, const struct group_row *row,
    char path[REFD_PATH_MAX], char *why, size_t why_size)
{
	struct put p = { .place = place,
		.repos = place->repos,
		.sys = place->repos->sys,
		.uuid = row->repo,
		.why = why,
		.why_size = why_size };
	size_t i, nr = place->repos->nr_roots;
	int r = 1;

	snprintf(p.rest, sizeof(p.rest), "%.*s", (int)row->path.len,
	    (const char *)row->path.data);
	for (i = nr; r == 1 && i-- > 0;)
		r = look_at_place(&p, place->repos->roots[i], path);
	if (r < 0)
		return fail(&p, r, "can't look at '%s': %s", path,
		    strerror(-r));
	if (r == 0)
		return 0;
	if (place->only_looks)
		return -EAGAIN;
	r = put_in_place(&p, path);
	for (i = nr; r == 0 && !place->has_left && i-- > 0;)
		if (look_at_place(&p, place->repos->roots[i], path) == 0)
			break;
	return r;
}
