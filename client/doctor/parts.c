/*
 * The parts of a repository: worktrees and alternates in other places, the id
 * in the journal, links, the rights of the owner, and the latest changes.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/base/walk.h"
#include "client/doctor/doctor_internal.h"
#include "client/refd.h"

/* The daemon has lower limits. */
#define FILE_BYTES (1 << 20)

/* ---- worktrees ---- */

static void check_worktree(struct doctor_repo *p, const char *id)
{
	char *dir = xasprintf("%s/worktrees/%s", p->name, id);
	char *file = xasprintf("%s/gitdir", dir);
	struct text t = { 0 };
	struct stat st;

	if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode)) {
		doctor_found_in(p, FOUND_WORKTREE_LINK,
		    "worktrees/%s is a link: refd serves no worktree behind it",
		    id);
	} else if (text_read_regular(&t, file, FILE_BYTES) == 0 && t.len) {
		t.data[strcspn(t.data, "\n")] = '\0';
		if (t.data[0] == '/' && access(t.data, F_OK) < 0 &&
		    errno == ENOENT)
			doctor_found_in(p, FOUND_WORKTREE_GONE,
			    "the worktree %s is gone, and its branch counts as "
			    "checked out",
			    id);
	}
	text_done(&t);
	free(file);
	free(dir);
}

void doctor_check_worktrees(struct doctor_repo *p)
{
	char *dir = xasprintf("%s/worktrees", p->name);
	DIR *all = opendir(dir);
	struct dirent *at;

	while (all && (at = readdir(all)))
		if (at->d_name[0] != '.')
			check_worktree(p, at->d_name);
	if (all)
		closedir(all);
	free(dir);
}

/* ---- alternates ---- */

static void check_alternate(struct doctor_repo *p, const struct stat *own,
    const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		doctor_found_in(p, FOUND_ALTERNATE_MISSING,
		    "its alternate %s: %s", path, strerror(errno));
	else if (st.st_dev != own->st_dev)
		doctor_found_in(p, FOUND_ALTERNATE_ELSEWHERE,
		    "its alternate %s is on another file system", path);
}

void doctor_check_alternates(struct doctor_repo *p)
{
	char *objects = xasprintf("%s/objects", p->name);
	char *file = xasprintf("%s/info/alternates", objects);
	struct text t = { 0 };
	struct stat own;
	char *line = NULL, *rest = NULL;

	if (stat(objects, &own) == 0 &&
	    text_read_regular(&t, file, FILE_BYTES) == 0)
		line = strtok_r(t.data, "\n", &rest);
	for (; line; line = strtok_r(NULL, "\n", &rest)) {
		char *path;

		if (line[0] == '#')
			continue;
		path = line[0] == '/' ? xstrdup(line) :
					xasprintf("%s/%s", objects, line);
		check_alternate(p, &own, path);
		free(path);
	}
	text_done(&t);
	free(file);
	free(objects);
}

/* ---- the id ---- */

static bool is_uuid(const char *s)
{
	return strspn(s, "0123456789abcdef") == 32 && s[32] == '\n';
}

static void look_for_twin(struct doctor_repo *p, const char *uuid)
{
	char *own = xasprintf("%.32s", uuid);
	size_t i;

	doctor_tell(TOLD_UUID, own);
	for (i = 0; i < p->d->nr_known; i++) {
		const struct known_repo *other = &p->d->known[i];

		if (other->uuid && !strcmp(other->uuid, own) &&
		    strcmp(other->path, p->name))
			doctor_found_in(p, FOUND_ID_CLASH,
			    "%s has the same id in refd/id", other->path);
	}
	free(own);
}

void doctor_check_id(struct doctor_repo *p)
{
	char *file = xasprintf("%s/refd/id", p->name);
	struct text t = { 0 };
	int err = text_read_regular(&t, file, FILE_BYTES);

	if (err == 0 && has_prefix(t.data, "uuid ") && is_uuid(t.data + 5) &&
	    has_prefix(t.data + 38, "journal ") && is_uuid(t.data + 46))
		look_for_twin(p, t.data + 5);
	else if (err != -ENOENT && err != -ENOTDIR)
		doctor_found_in(p, FOUND_ID_BROKEN,
		    "refd/id has an unknown content: the repository is not "
		    "served");
	text_done(&t);
	free(file);
}

/* ---- symbolic links ---- */

/* Symbolic links in the place of files and directories, because git follows
 * some of them, and refd does not. */

static bool is_link(const struct doctor_repo *p, const char *name)
{
	char *path = xasprintf("%s/%s", p->name, name);
	struct stat st;
	bool is = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);

	free(path);
	return is;
}

static bool leads_out(const struct doctor_repo *p, const char *path)
{
	char real[PATH_MAX];
	size_t len = strlen(p->name);

	return realpath(path, real) &&
	    (strncmp(real, p->name, len) || real[len] != '/');
}

static enum walk_next look(void *arg, const struct walk_at *at)
{
	struct doctor_repo *p = arg;
	struct stat st;

	if (at->dir >= 0 || fstatat(at->around, at->name, &st, 0) < 0 ||
	    !S_ISDIR(st.st_mode) || !leads_out(p, at->path))
		return WALK_ON;
	doctor_found(p->d, FOUND_REFS_LINK, p->name,
	    at->path + strlen(p->name) + 1,
	    "the link leads out of the repository: refd refuses refs there");
	return WALK_END;
}

/* Reports only the first link below NAME. */
static void look_below(struct doctor_repo *p, const char *name)
{
	char *path = xasprintf("%s/%s", p->name, name);

	walk_below(path, look, p);
	free(path);
}

void doctor_check_links(struct doctor_repo *p)
{
	if (!p->is_enabled)
		return;
	if (is_link(p, "HEAD"))
		doctor_found_in(p, FOUND_HEAD_LINK,
		    "HEAD is a link of the file system: pushes are left to "
		    "git, and have its durability");
	if (is_link(p, "packed-refs"))
		doctor_found_in(p, FOUND_PACKED_LINK,
		    "packed-refs is a link: deletions of refs are left to git");
	if (is_link(p, "reftable"))
		doctor_found(p->d, FOUND_REFS_LINK, p->name, "reftable",
		    "a link in the place of the directory of the tables: refd "
		    "does not follow it");
	look_below(p, "refs");
	look_below(p, "logs");
}

/* ---- rights of the owner ---- */

/*
 * Has the owner all rights that git and refd need? A git that root ran leaves
 * files of root, which the owner cannot write. The check needs the rights of
 * the owner.
 */

struct count {
	int levels;    /* of directories, from 1 on */
	int file_mode; /* the rights that files need; or -1: are not checked */
	size_t nr;
	char *example; /* owned */
};

/* Directories are written. */
static enum walk_next check(void *arg, const struct walk_at *at)
{
	struct count *c = arg;
	const int mode = at->dir >= 0 ? W_OK | X_OK : c->file_mode;

	if (at->err ? at->err == -EACCES :
		      mode >= 0 && faccessat(at->around, at->name, mode, 0) < 0)
		if (!c->nr++)
			c->example = xstrdup(at->path);
	return at->level < c->levels ? WALK_ON : WALK_PAST;
}

/* The object store has too many files to check each, so LEVELS bounds the
 * walk. */
static void check_below(const struct doctor_repo *p, struct count *c,
    const char *below, int levels, int file_mode)
{
	char *path = xasprintf("%s/%s", p->name, below);

	c->levels = levels;
	c->file_mode = file_mode;
	walk_below(path, check, c);
	free(path);
}

void doctor_check_owners(struct doctor_repo *p)
{
	struct count c = { 0 };

	if (!p->as_owner || geteuid() == 0)
		return;
	check_below(p, &c, "refs", WALK_LEVELS_MAX, -1);
	check_below(p, &c, "reftable", 1, R_OK);
	check_below(p, &c, "logs", WALK_LEVELS_MAX, R_OK | W_OK);
	check_below(p, &c, "objects", 1, -1);
	check_below(p, &c, "objects/pack", 1, R_OK);
	if (c.nr)
		doctor_found_in(p, FOUND_OWNER_MIXED,
		    "its owner cannot use %zu files and directories, for "
		    "example %s",
		    c.nr, c.example);
	free(c.example);
}

/* ---- changes by others ---- */

/*
 * Changes of a repository by writers who did not tell refd, as looks have found
 * them. Only the latest changes count, because one answer of history is asked
 * for.
 *
 * Failure modes: without a daemon, or without the right to read history,
 * nothing is found. The other checks tell the reason.
 */

#define ASK_MS 5000

static void count(struct doctor_repo *p, const struct refd_answer *ans)
{
	const struct refd_record *last = NULL;
	size_t i, nr = 0;
	char date[32];
	struct tm tm;
	time_t when;

	for (i = 0; i < ans->nr_changes; i++) {
		if (ans->changes[i].record->origin != REFD_ORIGIN_SEEN)
			continue;
		/* The newest change comes first. */
		if (!last)
			last = ans->changes[i].record;
		nr++;
	}
	if (!last)
		return;
	when = (time_t)(last->time_ms / 1000);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M", localtime_r(&when, &tm));
	doctor_found_in(p, FOUND_FOREIGN_WRITES,
	    "%zu of its last %zu changes are by writers who did not tell refd; "
	    "the latest was found on %s, in a file of user %u",
	    nr, ans->nr_changes, date, (unsigned)last->uid);
}

void doctor_check_foreign(struct doctor_repo *p,
    const struct daemon_socket *socket)
{
	struct refd_request req = { .git_dir = p->gd->common,
		.common_dev = p->gd->dev,
		.common_ino = p->gd->ino,
		.select = { .reverse = true, .origin = true } };
	struct refd *r = connect_new(socket);
	struct refd_answer ans;
	bool asks = refd_connect(r, ASK_MS) == 0;

	/* An answer is empty while the newest changes are not indexed, so the
	 * question is repeated. */
	while (asks && refd_log(r, &req, ASK_MS, &ans) == 0) {
		if (ans.kind == REFD_ANSWER_RECORDS)
			count(p, &ans);
		asks = ans.more && ans.nr_changes == 0;
		refd_answer_done(&ans);
	}
	refd_free(r);
}
