#include "tests/lib/hostile_entries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define HEADER_BYTES 4
#define ENTRIES_MAX  64
#define BYTES_MAX    8192

/* The path, and a text with which a mutation can begin, if there is any. Append
 * only: the corpus has the numbers. */
static const struct {
	const char *path, *sample;
} places[] = {
	{ "HEAD", "ref: refs/heads/a\n" },
	{ "config",
	    "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
	    "[include]\n\tpath = config.worktree\n"
	    "[extensions]\n\tobjectformat = sha1\n" },
	{ "config.worktree", "[core]\n\tsharedrepository = group\n" },
	{ "commondir", "..\n" },
	{ "packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n" HOSTILE_COMMIT
	    " refs/heads/packed\n" HOSTILE_DELTA
	    " refs/tags/p\n^" HOSTILE_PACKED "\n" },
	{ "packed-refs.lock", "" },
	{ "packed-refs.new", "" },
	{ "refs", NULL },
	{ "refs/heads", NULL },
	{ "refs/heads/a", HOSTILE_COMMIT "\n" },
	{ "refs/heads/a.lock", HOSTILE_COMMIT "\n" },
	{ "refs/heads/a/b", HOSTILE_COMMIT "\n" },
	{ "refs/heads/a2", "ref: refs/heads/a\n" },
	{ "refs/heads/new", "ref: refs/heads/d/e\n" },
	{ "refs/heads/new.lock", "" },
	{ "refs/heads/d", NULL },
	{ "refs/heads/d/e", HOSTILE_COMMIT "\n" },
	{ "refs/tags", NULL },
	{ "refs/tags/t", "ref: refs/tags/t\n" },
	{ "refs/bisect", NULL },
	{ "logs", NULL },
	{ "logs/HEAD",
	    HOSTILE_COMMIT " " HOSTILE_PACKED " A <a> 1 +0000\tx\n" },
	{ "logs/refs", NULL },
	{ "logs/refs/heads", NULL },
	{ "logs/refs/heads/a",
	    HOSTILE_COMMIT " " HOSTILE_PACKED " A <a> 1 +0000\tx\n" },
	{ "logs/refs/heads/a2", NULL },
	{ "logs/refs/heads/new", NULL },
	{ "logs/refs/heads/packed", NULL },
	{ "objects", NULL },
	{ "objects/c2", NULL },
	{ "objects/c2/9b3412b24ec135f9768f86f67e8fec1e3fa62e",
	    "commit 4|tree" },
	{ "objects/b7/71479340f9bab3e291b7e3d31e9149a4aff975",
	    "tag 88|object " HOSTILE_COMMIT
	    "\ntype commit\ntag t\ntagger A <a> 1 +0000\n\n" },
	{ "objects/cc/cccccccccccccccccccccccccccccccccccccc",
	    "tag 64|object " HOSTILE_TAG "\ntype tag\ntag u\n\n" },
	{ HOSTILE_PACK ".pack", NULL },
	{ HOSTILE_PACK ".idx", NULL },
	{ HOSTILE_PACK ".keep", NULL },
	{ "objects/pack/multi-pack-index", NULL },
	{ "objects/pack/pack-1.idx", NULL },
	{ "objects/pack", NULL },
	{ "objects/info", NULL },
	{ "objects/info/alternates", "@/srv/canary\n../objects\n" },
	{ "worktrees", NULL },
	{ "worktrees/w", NULL },
	{ "worktrees/w/HEAD", "ref: refs/heads/a\n" },
	{ "worktrees/w/HEAD.lock", "" },
	{ "worktrees/w/commondir", "../..\n" },
	{ "worktrees/w/gitdir", "@/srv/canary/.git\n" },
	{ "worktrees/w/locked", "" },
	{ "worktrees/w/refs", NULL },
	{ "worktrees/w/logs", NULL },
	{ "worktrees/w/logs/HEAD", NULL },
	{ "refd", NULL },
	{ "refd/id",
	    "uuid 00112233445566778899aabbccddeeff\n"
	    "journal 00112233445566778899aabbccddeeff\npath /x\n" },
	{ "refd/id.new", "" },
	{ "refd/lock", "" },
	{ "refd/marker", "" },
	{ "refd/checkpoint", "" },
	{ "refd/seen", "" },
	{ "refd/stage", NULL },
	{ "refd/stage/1", HOSTILE_COMMIT "\n" },
	{ "refd/saved", NULL },
	{ "refd/lost", NULL },
	{ "refd/kept", NULL },
	{ "reftable", NULL },
	{ "reftable/tables.list", "" },
	{ "hooks/reference-transaction", "#!/bin/sh\nexit 1\n" },
	{ "shallow", HOSTILE_COMMIT "\n" },
	{ "info/grafts", "" },
	{ "refs/replace/" HOSTILE_COMMIT, HOSTILE_TAG "\n" },
};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* Targets of links. "@" is the root. */
static const char *const targets[] = { "@/out/secret", "@/out/ref",
	"@/out/tree", "@/out/fifo", "@/srv/canary", "@/srv/canary/file",
	"@/srv/canary/tree", "@/state", "/dev/zero", "/dev/null", "/proc/self",
	".", "..", "../..", "a", "refs/heads/a", "HEAD", "packed-refs.new",
	"refs", "../canary", "../../canary/file", "../../../canary/tree" };
#define TARGETS (sizeof(targets) / sizeof(targets[0]))

enum what {
	A_FILE,
	A_LINK,
	A_FIFO,
	A_DIRECTORY,
	A_SPARSE,   /* first byte: size as a power of two; then content */
	A_DEFLATED, /* a deflated file like an object; the first "|" stands for
		       NUL */
	NOTHING,
	A_PATCH, /* of an existing file: offset (2 bytes), a byte */
	A_CUT,   /* to a size (2 bytes) */
	AN_APPENDIX
};
#define WHATS (AN_APPENDIX + 1)

struct hostile_entry {
	uint8_t place, what, round;
	const uint8_t *bytes;
	size_t len;
};

/* Takes an entry from the front. Returns false if there is none. */
static bool take(const uint8_t **data, size_t *size, struct hostile_entry *e)
{
	const uint8_t *p = *data;

	if (*size < HEADER_BYTES)
		return false;
	e->place = p[0] % PLACES;
	e->what = (p[1] & 63) % WHATS;
	e->round = (p[1] >> 6) % HOSTILE_ROUNDS;
	e->len = (size_t)p[2] | (size_t)p[3] << 8;
	e->bytes = p + HEADER_BYTES;
	if (e->len > *size - HEADER_BYTES)
		e->len = *size - HEADER_BYTES;
	*data += HEADER_BYTES + e->len;
	*size -= HEADER_BYTES + e->len;
	return true;
}

/* ---- making ---- */

/* Opens the directory NAME in DIR_FD, and makes it if necessary. Returns a
 * negative number on failure. Closes DIR_FD. */
static int step_into(int dir_fd, const char *name)
{
	int fd;

	mkdirat(dir_fd, name, 0755);
	fd = openat(dir_fd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(dir_fd);
	return fd;
}

/* Opens the directory of PATH, and sets NAME to the last component. Returns -1
 * if a component in the middle is not a directory. */
static int open_parent(int repo_fd, const char *path, char name[256])
{
	int fd = openat(repo_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *slash;

	while (fd >= 0 && (slash = strchr(path, '/')) != NULL) {
		snprintf(name, 256, "%.*s", (int)(slash - path), path);
		fd = step_into(fd, name);
		path = slash + 1;
	}
	snprintf(name, 256, "%s", path);
	return fd;
}

static void remove_entry(int dir_fd, const char *name)
{
	const struct dirent *entry;
	DIR *dir;
	int fd;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return;
	fd = openat(dir_fd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			remove_entry(fd, entry->d_name);
	if (dir != NULL)
		closedir(dir);
	unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static void put(int fd, const void *bytes, size_t len)
{
	if (write(fd, bytes, len) != (ssize_t)len)
		abort();
}

static void make_link(int dir_fd, const char *name, const char *root,
    const struct hostile_entry *e)
{
	char to[256 + PATH_MAX], text[256];

	if (e->len <= 1)
		snprintf(text, sizeof(text), "%s",
		    targets[e->len == 0 ? 0 : e->bytes[0] % TARGETS]);
	else
		snprintf(text, sizeof(text), "%.*s", (int)e->len,
		    (const char *)e->bytes);
	snprintf(to, sizeof(to), "%s%s", text[0] == '@' ? root : "",
	    text[0] == '@' ? text + 1 : text);
	/* A link with an empty target is impossible. */
	if (symlinkat(to, dir_fd, name) < 0 && errno != ENOENT)
		abort();
}

static void put_deflated(int fd, const struct hostile_entry *e)
{
	uLongf len = compressBound(e->len);
	uint8_t *packed = malloc(len), *plain = malloc(e->len + 1), *bar;

	if (packed == NULL || plain == NULL)
		abort();
	memcpy(plain, e->bytes, e->len);
	bar = memchr(plain, '|', e->len);
	if (bar != NULL)
		*bar = '\0';
	if (compress(packed, &len, plain, e->len) != Z_OK)
		abort();
	put(fd, packed, len);
	free(packed);
	free(plain);
}

static void make_file(int dir_fd, const char *name, const char *root,
    const struct hostile_entry *e)
{
	int fd = openat(dir_fd, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		abort();
	if (e->what == A_DEFLATED) {
		put_deflated(fd, e);
	} else if (e->what == A_SPARSE && e->len > 0) {
		put(fd, e->bytes + 1, e->len - 1);
		if (ftruncate(fd, (off_t)1 << e->bytes[0] % 42) < 0)
			abort();
	} else if (e->len > 0 && e->bytes[0] == '@') {
		put(fd, root, strlen(root));
		put(fd, e->bytes + 1, e->len - 1);
	} else {
		put(fd, e->bytes, e->len);
	}
	close(fd);
}

static unsigned number(const struct hostile_entry *e, size_t at)
{
	return e->len < at + 2 ?
	    0 :
	    (unsigned)e->bytes[at] | (unsigned)e->bytes[at + 1] << 8;
}

static void change_file(int dir_fd, const char *name,
    const struct hostile_entry *e)
{
	int fd =
	    openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	size_t i;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		for (i = 0;
		    e->what == A_PATCH && i + 3 <= e->len && st.st_size > 0;
		    i += 3)
			if (pwrite(fd, e->bytes + i + 2, 1,
				number(e, i) % st.st_size) != 1)
				abort();
		if (e->what == A_CUT && ftruncate(fd, number(e, 0)) < 0)
			abort();
		if (e->what == AN_APPENDIX && st.st_size < 1 << 20 &&
		    lseek(fd, 0, SEEK_END) >= 0)
			put(fd, e->bytes, e->len);
	}
	if (fd >= 0)
		close(fd);
}

static void make_entry(int repo_fd, const char *root,
    const struct hostile_entry *e)
{
	char name[256];
	int dir_fd = open_parent(repo_fd, places[e->place].path, name);

	if (dir_fd < 0)
		return;
	if (e->what <= NOTHING)
		remove_entry(dir_fd, name);
	switch ((enum what)e->what) {
	case A_FILE:
	case A_SPARSE:
	case A_DEFLATED:
		make_file(dir_fd, name, root, e);
		break;
	case A_LINK:
		make_link(dir_fd, name, root, e);
		break;
	case A_FIFO:
		mkfifoat(dir_fd, name, 0644);
		break;
	case A_DIRECTORY:
		mkdirat(dir_fd, name, 0755);
		break;
	case NOTHING:
		break;
	case A_PATCH:
	case A_CUT:
	case AN_APPENDIX:
		change_file(dir_fd, name, e);
		break;
	}
	close(dir_fd);
}

void hostile_entries_make(int repo_fd, const char *root, unsigned round,
    const uint8_t *data, size_t size)
{
	struct hostile_entry e;

	while (take(&data, &size, &e))
		if (e.round == round)
			make_entry(repo_fd, root, &e);
}

/* ---- changing ---- */

struct hostile_list {
	struct hostile_entry entries[ENTRIES_MAX];
	size_t nr;
	unsigned seed;
};

static unsigned pick(struct hostile_list *l, size_t nr)
{
	l->seed = l->seed * 1103515245u + 12345u;
	return (l->seed >> 8) % (unsigned)nr;
}

/* Makes a new entry. A text or an object begins with the sample of its path. */
static void begin(struct hostile_list *l, struct hostile_entry *e)
{
	const char *sample;

	e->place = (uint8_t)pick(l, PLACES);
	e->what = (uint8_t)pick(l, WHATS);
	e->round = pick(l, 2) ? 0 : (uint8_t)pick(l, HOSTILE_ROUNDS);
	sample = places[e->place].sample;
	if (sample == NULL)
		sample = "";
	if (strchr(sample, '|') != NULL)
		e->what = pick(l, 4) ? A_DEFLATED : e->what;
	else if (sample[0] != '\0' && pick(l, 2))
		e->what = A_FILE;
	e->bytes = (const uint8_t *)sample;
	e->len = strlen(sample);
}

static size_t serialise(const struct hostile_list *l, uint8_t *data, size_t max)
{
	size_t at = 0, i;

	for (i = 0; i < l->nr; i++) {
		const struct hostile_entry *e = &l->entries[i];

		if (at + HEADER_BYTES + e->len > max)
			break;
		data[at++] = e->place;
		data[at++] = (uint8_t)(e->what | e->round << 6);
		data[at++] = (uint8_t)e->len;
		data[at++] = (uint8_t)(e->len >> 8);
		memcpy(data + at, e->bytes, e->len);
		at += e->len;
	}
	return at;
}

size_t hostile_entries_mutate(uint8_t *data, size_t size, size_t max,
    unsigned seed, size_t (*bytes)(uint8_t *data, size_t size, size_t max))
{
	static struct hostile_list l;
	static uint8_t old[1 << 16], changed[BYTES_MAX];
	const uint8_t *p = old;
	struct hostile_entry *e;

	size = size < sizeof(old) ? size : sizeof(old);
	memcpy(old, data, size);
	l.seed = seed;
	for (l.nr = 0; l.nr < ENTRIES_MAX && take(&p, &size, &l.entries[l.nr]);)
		l.nr++;
	if (l.nr == 0 || (pick(&l, 6) == 0 && l.nr < ENTRIES_MAX)) {
		memset(&l.entries[l.nr], 0, sizeof(l.entries[0]));
		begin(&l, &l.entries[l.nr++]);
		return serialise(&l, data, max);
	}
	e = &l.entries[pick(&l, l.nr)];
	switch (pick(&l, 9)) {
	case 0:
		e->place = (uint8_t)pick(&l, PLACES);
		break;
	case 1:
		e->what = (uint8_t)pick(&l, WHATS);
		break;
	case 2:
		e->round = (uint8_t)pick(&l, HOSTILE_ROUNDS);
		break;
	case 3:
		*e = l.entries[--l.nr];
		break;
	case 4:
		begin(&l, e);
		break;
	default:
		e->len = e->len < BYTES_MAX / 2 ? e->len : BYTES_MAX / 2;
		memcpy(changed, e->bytes, e->len);
		e->len = bytes(changed, e->len, sizeof(changed) / 2);
		e->bytes = changed;
	}
	return serialise(&l, data, max);
}
