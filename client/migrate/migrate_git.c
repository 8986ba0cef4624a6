/*
 * Git converts the refs and the reflogs, and compares the result. Git's own
 * way, without --dry-run, removes the old refs before the new refs are in
 * place: a kill in between would lose all refs (git's
 * repo_migrate_ref_storage_format()). A dry run leaves the new refs in a
 * directory, in the shape of a git directory. The packed-refs of git 2.55 lacks
 * the peeled values of tags, which are added.
 *
 * Failures: git refuses (worktrees, a broken ref, no "git refs migrate"), the
 * disk is full, the new refs differ. The repository is unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/git/gitversion.h"
#include "client/migrate/migrate_internal.h"

#define PREFIX "ref_migration."
/* As the hook of a node in a group (group_gate.c). */
#define PACKED_MAX ((size_t)1 << 30)

/* ---- the dry run ---- */

struct names {
	struct text list; /* each name ends with a NUL */
};

static int add_name(void *arg, const char *name)
{
	struct names *n = arg;

	if (has_prefix(name, PREFIX))
		text_add(&n->list, name, strlen(name) + 1);
	return 0;
}

static bool has_name(const struct names *n, const char *name)
{
	size_t at;

	for (at = 0; at < n->list.len; at += strlen(n->list.data + at) + 1)
		if (!strcmp(n->list.data + at, name))
			return true;
	return false;
}

static struct names list_results(const struct migration *m)
{
	struct names n = { 0 };

	files_each(m->dirfd, add_name, &n);
	return n;
}

/* A failed dry run leaves the directory too. */
static void remove_new_results(const struct migration *m,
    const struct names *before)
{
	struct names now = list_results(m);
	size_t at;

	for (at = 0; at < now.list.len; at += strlen(now.list.data + at) + 1)
		if (!has_name(before, now.list.data + at))
			files_remove(m->dirfd, now.list.data + at);
	text_done(&now.list);
}

/* The last line of git's output names the directory at its end, in quotes. The
 * name without the path, or NULL. */
static char *result_name(const struct text *said)
{
	char *begin = said->data ? strstr(said->data, "/" PREFIX) : NULL;
	char *end = begin ? strchr(begin, '\'') : NULL;
	char *name;

	if (!end)
		return NULL;
	name = xasprintf("%.*s", (int)(end - begin - 1), begin + 1);
	if (!strchr(name, '/'))
		return name;
	free(name);
	return NULL;
}

static bool take_result(const struct migration *m, const struct text *said)
{
	char *name = result_name(said);
	bool ok = name && renameat(m->dirfd, name, m->work_fd, "new") == 0;

	if (!name)
		say_error("%s: 'git refs migrate --dry-run' named no result",
		    m->gd->common);
	else if (!ok)
		say_error("cannot move %s/%s: %s", m->gd->common, name,
		    strerror(errno));
	free(name);
	return ok;
}

static void say_refusal(const struct migration *m)
{
	if (gitversion_before(2, 46))
		say_error("%s: this git has no 'git refs migrate', which came "
			  "with git 2.46, and for reflogs with 2.48; nothing "
			  "was changed",
		    m->gd->common);
	else
		say_error("%s: git did not migrate the refs, for the reason "
			  "above; nothing was changed",
		    m->gd->common);
}

bool migrate_git_convert(const struct migration *m)
{
	char *dir = xasprintf("--git-dir=%s", m->gd->common);
	char *format = xasprintf("--ref-format=%s", ref_format_names[m->to]);
	/* The hooks of the repository would take the copy for updates. */
	const char *const argv[] = { "git", "-c", "core.hooksPath=/dev/null",
		dir, "refs", "migrate", format, "--dry-run", NULL };
	struct names before = list_results(m);
	struct text said = { 0 };
	bool ok = child_capture(argv, &said) == 0;

	if (!ok)
		say_refusal(m);
	ok = ok && take_result(m, &said);
	if (!ok)
		remove_new_results(m, &before);
	text_done(&before.list);
	text_done(&said);
	free(format);
	free(dir);
	return ok;
}

/* ---- the peeled values ---- */

/* The next line of TEXT from *AT, without the newline, in place; or NULL. */
static char *next_line(struct text *t, size_t *at)
{
	char *line = t->data + *at, *end;

	end = *at < t->len ? memchr(line, '\n', t->len - *at) : NULL;
	if (!end)
		return NULL;
	*end = '\0';
	*at += (size_t)(end - line) + 1;
	return line;
}

/* The order of the name in ENTRY, "<name> <id>" or empty, and NAME. */
static int compare_names(const char *entry, const char *name)
{
	size_t len = strcspn(entry, " ");
	int r = strncmp(entry, name, len);

	return r == 0 && name[len] ? -1 : r;
}

/* Both texts are in the order of the names. */
static void add_peeled(struct text *packed, struct text *peeled,
    struct text *out)
{
	size_t at = 0, peeled_at = 0;
	char *entry = next_line(peeled, &peeled_at), *line, *name;

	while ((line = next_line(packed, &at))) {
		/* Another git may have written some of them. */
		if (*line == '^')
			continue;
		text_addf(out, "%s\n", line);
		name = *line == '#' ? NULL : strchr(line, ' ');
		while (name && entry && compare_names(entry, name + 1) < 0)
			entry = next_line(peeled, &peeled_at);
		if (name && entry && compare_names(entry, name + 1) == 0)
			text_addf(out, "^%s\n", strchr(entry, ' ') + 1);
	}
}

static bool list_peeled(const struct migration *m, struct text *peeled)
{
	char *dir = xasprintf("--git-dir=%s", m->gd->common);
	const char *const argv[] = { "git", dir, "for-each-ref",
		"--format=%(if)%(*objectname)%(then)%(refname) %(*objectname)"
		"%(end)",
		NULL };
	bool ok = child_capture(argv, peeled) == 0;

	if (!ok)
		say_error("%s: git cannot list the tags; nothing was changed",
		    m->gd->common);
	free(dir);
	return ok;
}

bool migrate_git_peel(const struct migration *m)
{
	struct text packed = { 0 }, peeled = { 0 }, out = { 0 };
	struct stat st;
	int new_fd = files_open_dir(m->work_fd, "new");
	int r = new_fd < 0 ?
	    new_fd :
	    files_read(new_fd, "packed-refs", PACKED_MAX, &packed);
	bool ok = r == 0;

	if (r == 0 &&
	    fstatat(new_fd, "packed-refs", &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0 && list_peeled(m, &peeled)) {
		add_peeled(&packed, &peeled, &out);
		r = files_put(m->work_fd, new_fd, "packed-refs",
		    out.data ? out.data : "");
		if (r == 0 &&
		    fchmodat(new_fd, "packed-refs", st.st_mode & 0777, 0) < 0)
			r = -errno;
	} else if (r == -ENOENT) {
		/* No refs, or reftables. */
		ok = true;
		r = 0;
	} else {
		ok = false;
	}
	if (r < 0)
		say_error("cannot write the new packed-refs of %s: %s; nothing "
			  "was changed",
		    m->gd->common, strerror(-r));
	if (new_fd >= 0)
		close(new_fd);
	text_done(&packed);
	text_done(&peeled);
	text_done(&out);
	return ok && r == 0;
}

/* ---- the configuration ---- */

static bool write_copy(const struct migration *m, int new_fd)
{
	struct stat st, now;
	int fd, r = 0;

	if (fstatat(m->dirfd, "config", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	fd = openat(new_fd, "config", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    st.st_mode & 0666);
	if (fd < 0)
		return false;
	if (write(fd, m->config.data, m->config.len) != (ssize_t)m->config.len)
		r = -1;
	if (r == 0)
		r = fchmod(fd, st.st_mode & 0777);
	/* The owner may lack the group; then the group has no more rights than
	 * before only if the file gives it none. */
	if (r == 0 && fstat(fd, &now) == 0 && now.st_gid != st.st_gid &&
	    (st.st_mode & 0070))
		r = fchown(fd, (uid_t)-1, st.st_gid);
	return close(fd) == 0 && r == 0;
}

static bool set(const char *file, const char *key, const char *value)
{
	const char *const argv[] = { "git", "config", "-f", file, key, value,
		NULL };
	const char *const unset[] = { "git", "config", "-f", file, "--unset",
		key, NULL };

	return child_run(value ? argv : unset) == 0;
}

bool migrate_git_configure(const struct migration *m)
{
	char *file = xasprintf("%s/refd/migrate/new/config", m->gd->common);
	int new_fd = files_open_dir(m->work_fd, "new");
	const char *value = m->to == FILES ? NULL : ref_format_names[m->to];
	bool ok;

	ok = new_fd >= 0 && write_copy(m, new_fd);
	if (!ok)
		say_error("cannot write %s: %s", file, strerror(errno));
	if (ok && m->to != FILES)
		ok = set(file, "core.repositoryFormatVersion", "1");
	ok = ok && set(file, "extensions.refStorage", value);
	if (new_fd >= 0)
		close(new_fd);
	free(file);
	return ok;
}

/* ---- the comparison ---- */

/* Everything that git says of the refs of the git directory DIR. */
static bool describe(const struct migration *m, const char *dir, struct text *t)
{
	char *option = xasprintf("--git-dir=%s", dir);
	const char *const refs[] = { "git", option, "for-each-ref",
		"--include-root-refs",
		"--format=%(refname) %(objectname) %(symref)", NULL };
	const char *const head[] = { "git", option, "symbolic-ref", "-q",
		"HEAD", NULL };
	const char *const logs[] = { "git", option, "reflog", "list", NULL };
	/* A detached HEAD is no failure. */
	bool ok = child_capture(refs, t) == 0 && child_capture(head, t) <= 1 &&
	    child_capture(logs, t) == 0;

	if (!ok)
		say_error("%s: git cannot list the refs of %s", m->gd->common,
		    dir);
	free(option);
	return ok;
}

/* Counts the lines of for-each-ref, which precede the first line without a
 * space. */
static size_t count_refs(const struct text *t)
{
	const char *at = t->data, *end;
	size_t nr = 0;

	for (; at && (end = strchr(at, '\n')); at = end + 1) {
		if (!memchr(at, ' ', (size_t)(end - at)))
			break;
		nr++;
	}
	return nr;
}

bool migrate_git_compare(const struct migration *m, size_t *nr, bool *failed)
{
	char *new = xasprintf("%s/refd/migrate/new", m->gd->common);
	char *objects = xasprintf("%s/objects", m->gd->common);
	struct text now = { 0 }, then = { 0 };
	bool is_same;

	*failed = !describe(m, m->gd->common, &now);
	setenv("GIT_OBJECT_DIRECTORY", objects, 1);
	*failed = *failed || !describe(m, new, &then);
	unsetenv("GIT_OBJECT_DIRECTORY");
	is_same = !*failed && now.len == then.len &&
	    !memcmp(now.data, then.data, now.len);
	*nr = count_refs(&now);
	text_done(&now);
	text_done(&then);
	free(objects);
	free(new);
	return is_same;
}

bool migrate_git_verify(const struct migration *m)
{
	char *dir = xasprintf("--git-dir=%s/refd/migrate/new", m->gd->common);
	char *objects = xasprintf("%s/objects", m->gd->common);
	const char *const argv[] = { "git", dir, "refs", "verify", NULL };
	bool ok;

	setenv("GIT_OBJECT_DIRECTORY", objects, 1);
	ok = child_run(argv) == 0;
	unsetenv("GIT_OBJECT_DIRECTORY");
	if (!ok)
		say_error("%s: 'git refs verify' finds the faults above in the "
			  "new refs; nothing was changed",
		    m->gd->common);
	free(objects);
	free(dir);
	return ok;
}
