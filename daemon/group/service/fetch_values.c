/* The values of refs, as haves for git. git must not run in the repository, so
 * values in files are read here. git reads values in reftables through a
 * git-dir that shows these tables alone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/group/service/fetch_git.h"
#include "daemon/group/service/fetch_repo.h"
#include "proto/lib/clock.h"

#define DEPTH_MAX   32
#define LOOSE_MAX   20000 /* directory entries */
#define LOOSE_BYTES 256
#define PACKED_MAX  (16 << 20)
#define TABLES_MS   30000

struct value_search {
	enum refd_object_format format;
	struct text *lines;
	unsigned left; /* entries */
};

/* LINE ends with a NUL, and begins with the id. */
static void add(struct value_search *v, const char *line)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct refd_oid oid;

	if (refd_oid_parse(line, v->format, &oid) == 0)
		text_addf(v->lines, "%s\n", refd_oid_hex(&oid, v->format, hex));
}

static void add_loose(struct value_search *v, int fd)
{
	char value[LOOSE_BYTES + 1];
	ssize_t n = read(fd, value, LOOSE_BYTES);

	if (n > 0) {
		value[n] = '\0';
		add(v, value);
	}
}

/* Closes FD. */
static void walk(struct value_search *v, int fd, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	struct stat st;
	int below;

	if (!dir)
		close(fd);
	while (dir && v->left > 0 && (entry = readdir(dir))) {
		v->left--;
		if (*entry->d_name == '.')
			continue;
		below = fetch_repo_beneath(fd, entry->d_name, O_RDONLY);
		if (below < 0 || fstat(below, &st) < 0)
			st.st_mode = 0;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			walk(v, below, depth + 1);
			continue;
		}
		if (S_ISREG(st.st_mode))
			add_loose(v, below);
		if (below >= 0)
			close(below);
	}
	if (dir)
		closedir(dir);
}

/* Other lines have no id in front. */
static void add_lines(struct value_search *v, struct text *file)
{
	char *line, *next = file->data;

	while ((line = strsep(&next, "\n")))
		add(v, line);
}

static void add_packed(struct value_search *v, int repo_fd)
{
	int fd = fetch_repo_beneath(repo_fd, "packed-refs", O_RDONLY);
	struct text packed = { 0 };
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		text_read(&packed, fd, PACKED_MAX);
		add_lines(v, &packed);
	}
	close(fd);
	text_done(&packed);
}

/* Runs git for the tables GIT->tables. */
static bool add_tables(struct value_search *v, const struct fetch_git *git)
{
	static const char *const argv[] = { "git", "for-each-ref",
		"--format=%(objectname)", NULL };
	struct text found = { 0 };
	int status = fetch_git_run(git, argv, NULL, &found);
	bool is_done = status == 0 || status == -EFBIG;

	if (is_done)
		add_lines(v, &found);
	text_done(&found);
	return is_done;
}

bool fetch_repo_values(int repo_fd, const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *lines)
{
	struct value_search v = { wish->format, lines, LOOSE_MAX };
	int fd = fetch_repo_beneath(repo_fd, "refs", O_RDONLY | O_DIRECTORY);
	struct fetch_git git = { .wish = wish,
		.site = site,
		.until_ms = clock_now_ms() + TABLES_MS,
		.objects = -1,
		.pack = -1,
		.refs = -1 };
	bool is_done = true;

	if (fd >= 0)
		walk(&v, fd, 0);
	add_packed(&v, repo_fd);
	git.tables =
	    fetch_repo_beneath(repo_fd, "reftable", O_RDONLY | O_DIRECTORY);
	if (git.tables >= 0) {
		is_done = add_tables(&v, &git);
		close(git.tables);
	}
	return is_done;
}
