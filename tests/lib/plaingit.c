#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/plaingit.h"

#define FILE_LIMIT ((size_t)64 << 20)
#define HEADER     "# pack-refs with: peeled fully-peeled sorted \n"

static size_t digits(const struct plaingit *git)
{
	return git->is_sha256 ? 64 : 40;
}

/* ---- files ---- */

static void lock_path(char path[PATH_MAX], const char *ref)
{
	snprintf(path, PATH_MAX, "%s.lock", ref);
}

/* Makes a file with TEXT. Removes the file on failure. */
static int write_new(const struct plaingit *git, const char *path,
    const char *text, size_t len)
{
	int fd, r;

	fd = SYS(git->sys, openat, git->dirfd, path,
	    O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		return fd;
	r = SYS(git->sys, write_all, fd, text, len);
	if (r == 0 && git->syncs)
		r = SYS(git->sys, fsync, fd);
	SYS(git->sys, close, fd);
	if (r < 0)
		SYS(git->sys, unlinkat, git->dirfd, path);
	return r;
}

static int make_parents(const struct plaingit *git, const char *path)
{
	int r = sys_make_parents(git->sys, git->dirfd, path, 0777);

	return r < 0 ? r : 0;
}

int plaingit_lock(const struct plaingit *git, const char *ref)
{
	char lock[PATH_MAX];
	int r;

	lock_path(lock, ref);
	r = make_parents(git, lock);
	return r < 0 ? r : write_new(git, lock, "", 0);
}

int plaingit_unlock(const struct plaingit *git, const char *ref)
{
	char lock[PATH_MAX];

	lock_path(lock, ref);
	return SYS(git->sys, unlinkat, git->dirfd, lock);
}

/* Reads a value, with or without newline, and nothing else. */
static int read_loose(const struct plaingit *git, const char *ref,
    char hex[PLAINGIT_HEX + 1])
{
	char *buf;
	size_t len;
	int r;

	r = sys_read_file(git->sys, git->dirfd, ref, FILE_LIMIT, &buf, &len);
	if (r < 0)
		return r;
	buf[strcspn(buf, " \t\r\n")] = '\0';
	r = strlen(buf) == digits(git) ? 0 : -EBADMSG;
	if (r == 0)
		strcpy(hex, buf);
	free(buf);
	return r;
}

/* ---- packed-refs ---- */

struct packed_line {
	char *name;
	char hex[PLAINGIT_HEX + 1], peeled[PLAINGIT_HEX + 1];
};

struct lines {
	struct packed_line *line;
	size_t nr, room;
};

static void lines_done(struct lines *lines)
{
	while (lines->nr > 0)
		free(lines->line[--lines->nr].name);
	free(lines->line);
}

static struct packed_line *lines_find(const struct lines *lines,
    const char *name)
{
	size_t i;

	for (i = 0; i < lines->nr; i++) {
		if (strcmp(lines->line[i].name, name) == 0)
			return &lines->line[i];
	}
	return NULL;
}

static struct packed_line *lines_add(struct lines *lines, const char *name)
{
	struct packed_line *line;

	if (lines->nr == lines->room) {
		lines->room = lines->room * 2 + 8;
		lines->line = reallocarray(lines->line, lines->room,
		    sizeof(*lines->line));
		if (lines->line == NULL)
			abort();
	}
	line = &lines->line[lines->nr++];
	*line = (struct packed_line){ .name = strdup(name) };
	return line;
}

/* The peeled value is unknown. */
static void line_set(struct packed_line *line, const char *hex, size_t len)
{
	snprintf(line->hex, sizeof(line->hex), "%.*s", (int)len, hex);
	line->peeled[0] = '\0';
}

static int parse_line(struct lines *lines, const char *line, size_t hex)
{
	struct packed_line *last;

	if (line[0] == '#')
		return 0;
	if (line[0] == '^' && lines->nr > 0 && strlen(line) == hex + 1) {
		last = &lines->line[lines->nr - 1];
		memcpy(last->peeled, line + 1, hex + 1);
		return 0;
	}
	if (strlen(line) < hex + 2 || line[hex] != ' ')
		return -EBADMSG;
	line_set(lines_add(lines, line + hex + 1), line, hex);
	return 0;
}

static int read_packed(const struct plaingit *git, struct lines *lines)
{
	char *buf, *line, *next;
	size_t len;
	int r;

	*lines = (struct lines){ 0 };
	r = sys_read_file(git->sys, git->dirfd, "packed-refs", FILE_LIMIT, &buf,
	    &len);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (line = buf; r == 0 && *line != '\0'; line = next) {
		next = strchr(line, '\n');
		if (next == NULL)
			r = -EBADMSG;
		else
			*next++ = '\0';
		if (r == 0)
			r = parse_line(lines, line, digits(git));
	}
	/* NULs after a power loss end the text early. */
	if (r == 0 && line != buf + len)
		r = -EBADMSG;
	free(buf);
	if (r < 0)
		lines_done(lines);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct packed_line *)a)->name,
	    ((const struct packed_line *)b)->name);
}

/* Called by the holder of packed-refs.lock. */
static int write_packed(const struct plaingit *git, struct lines *lines)
{
	size_t i, size;
	char *text;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (lines->nr > 0)
		qsort(lines->line, lines->nr, sizeof(*lines->line), by_name);
	fputs(HEADER, out);
	for (i = 0; i < lines->nr; i++) {
		fprintf(out, "%s %s\n", lines->line[i].hex,
		    lines->line[i].name);
		if (lines->line[i].peeled[0] != '\0')
			fprintf(out, "^%s\n", lines->line[i].peeled);
	}
	fclose(out);
	r = write_new(git, "packed-refs.new", text, size);
	free(text);
	if (r < 0)
		return r;
	r = SYS(git->sys, renameat, git->dirfd, "packed-refs.new", git->dirfd,
	    "packed-refs");
	if (r < 0)
		SYS(git->sys, unlinkat, git->dirfd, "packed-refs.new");
	return r;
}

/* ---- update, delete, read ---- */

int plaingit_update(const struct plaingit *git, const char *ref,
    const char *hex)
{
	char lock[PATH_MAX], text[PLAINGIT_HEX + 2];
	int r;

	lock_path(lock, ref);
	snprintf(text, sizeof(text), "%.*s\n", (int)digits(git), hex);
	r = make_parents(git, lock);
	if (r == 0)
		r = write_new(git, lock, text, strlen(text));
	if (r < 0)
		return r;
	r = SYS(git->sys, renameat, git->dirfd, lock, git->dirfd, ref);
	/* An empty directory is removed. */
	if (r == -EISDIR && SYS(git->sys, rmdirat, git->dirfd, ref) == 0)
		r = SYS(git->sys, renameat, git->dirfd, lock, git->dirfd, ref);
	if (r < 0)
		SYS(git->sys, unlinkat, git->dirfd, lock);
	return r;
}

/* Keeps refs/x. */
static void prune_parents(const struct plaingit *git, const char *ref)
{
	char dir[PATH_MAX];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", ref);
	while ((slash = strrchr(dir, '/')) != NULL) {
		*slash = '\0';
		slash = strchr(dir, '/');
		if (slash == NULL || strchr(slash + 1, '/') == NULL)
			return;
		if (SYS(git->sys, rmdirat, git->dirfd, dir) < 0)
			return;
	}
}

static int delete_packed(const struct plaingit *git, const char *ref)
{
	struct packed_line *line;
	struct lines lines;
	int r;

	r = read_packed(git, &lines);
	if (r < 0)
		return r;
	line = lines_find(&lines, ref);
	if (line != NULL) {
		free(line->name);
		*line = lines.line[--lines.nr];
		r = write_packed(git, &lines);
	}
	lines_done(&lines);
	return r;
}

/* Called by the holder of the ref's lock. */
static int delete_locked(const struct plaingit *git, const char *ref)
{
	char hex[PLAINGIT_HEX + 1];
	int r;

	r = plaingit_read(git, ref, hex);
	if (r < 0)
		return r;
	r = write_new(git, "packed-refs.lock", "", 0);
	if (r < 0)
		return r;
	r = delete_packed(git, ref);
	if (r == 0)
		r = SYS(git->sys, unlinkat, git->dirfd, ref);
	SYS(git->sys, unlinkat, git->dirfd, "packed-refs.lock");
	return r == -ENOENT ? 0 : r;
}

int plaingit_delete(const struct plaingit *git, const char *ref)
{
	int r;

	r = plaingit_lock(git, ref);
	if (r < 0)
		return r;
	r = delete_locked(git, ref);
	plaingit_unlock(git, ref);
	prune_parents(git, ref);
	return r;
}

int plaingit_read(const struct plaingit *git, const char *ref,
    char hex[PLAINGIT_HEX + 1])
{
	struct packed_line *line;
	struct lines lines;
	int r;

	r = read_loose(git, ref, hex);
	if (r != -ENOENT && r != -EISDIR && r != -ENOTDIR)
		return r;
	r = read_packed(git, &lines);
	if (r < 0)
		return r;
	line = lines_find(&lines, ref);
	if (line != NULL)
		strcpy(hex, line->hex);
	lines_done(&lines);
	return line != NULL ? 0 : -ENOENT;
}

/* ---- pack-refs ---- */

static bool is_lock(const char *name)
{
	size_t len = strlen(name);

	return len >= 5 && strcmp(name + len - 5, ".lock") == 0;
}

/* Adds all loose refs below DIR that have a value to LOOSE. */
static int collect(const struct plaingit *git, const char *dir_path,
    struct lines *loose)
{
	char path[PATH_MAX], hex[PLAINGIT_HEX + 1];
	struct sys_dirent entry;
	struct sys_stat st;
	struct sys_dir *dir;
	int r;

	r = SYS(git->sys, dir_open, git->dirfd, dir_path, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	while ((r = SYS(git->sys, dir_next, dir, &entry)) > 0) {
		snprintf(path, sizeof(path), "%s/%s", dir_path, entry.name);
		if (is_lock(path) ||
		    SYS(git->sys, lstatat, git->dirfd, path, &st) < 0)
			continue;
		if (S_ISDIR(st.mode))
			r = collect(git, path, loose);
		else if (read_loose(git, path, hex) == 0)
			line_set(lines_add(loose, path), hex, digits(git));
		if (r < 0)
			break;
	}
	SYS(git->sys, dir_close, dir);
	return r;
}

static void prune(const struct plaingit *git, const struct packed_line *line)
{
	char hex[PLAINGIT_HEX + 1];

	if (plaingit_lock(git, line->name) < 0)
		return;
	if (read_loose(git, line->name, hex) == 0 &&
	    strcmp(hex, line->hex) == 0)
		SYS(git->sys, unlinkat, git->dirfd, line->name);
	plaingit_unlock(git, line->name);
	prune_parents(git, line->name);
}

static int pack(const struct plaingit *git, struct lines *loose)
{
	struct packed_line *line;
	struct lines packed;
	size_t i;
	int r;

	r = read_packed(git, &packed);
	if (r < 0)
		return r;
	r = collect(git, "refs", loose);
	for (i = 0; r == 0 && i < loose->nr; i++) {
		line = lines_find(&packed, loose->line[i].name);
		if (line == NULL)
			line = lines_add(&packed, loose->line[i].name);
		if (strcmp(line->hex, loose->line[i].hex) != 0)
			line_set(line, loose->line[i].hex, digits(git));
	}
	if (r == 0)
		r = write_packed(git, &packed);
	lines_done(&packed);
	return r;
}

int plaingit_pack_refs(const struct plaingit *git)
{
	struct lines loose = { 0 };
	size_t i;
	int r;

	r = write_new(git, "packed-refs.lock", "", 0);
	if (r < 0)
		return r;
	r = pack(git, &loose);
	SYS(git->sys, unlinkat, git->dirfd, "packed-refs.lock");
	for (i = 0; r == 0 && i < loose.nr; i++)
		prune(git, &loose.line[i]);
	lines_done(&loose);
	return r;
}
