#include "client/bench/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/cli.h"

#define NR_AT_ONCE   32
#define REMOVALS_MAX 100

/* ---- directories ---- */

static char *make_below(const char *parent)
{
	char *real = realpath(parent, NULL);
	char *dir;

	if (!real)
		die("%s: %s", parent, strerror(errno));
	dir = xasprintf("%s/refd-bench.XXXXXX", real);
	free(real);
	if (!mkdtemp(dir))
		die("cannot make a directory in %s: %s", parent,
		    strerror(errno));
	return dir;
}

void scratch_make(struct scratch *s, const char *dir, const char *state)
{
	struct sockaddr_un at;

	s->dir = make_below(dir);
	if (state)
		s->state = make_below(state);
	else if (mkdir(s->state = xasprintf("%s/state", s->dir), 0700) < 0)
		die("%s: %s", s->state, strerror(errno));
	s->repo = xasprintf("%s/repo.git", s->dir);
	s->socket = xasprintf("%s/sock", s->dir);
	if (strlen(s->socket) >= sizeof(at.sun_path)) {
		scratch_remove(s);
		die("%s: too long a path for a socket below it", dir);
	}
}

static int remove_one(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* A running daemon may write into the repository, so that a directory is not
 * empty any more. */
static void remove_tree(const char *path)
{
	int tries = REMOVALS_MAX;

	while (access(path, F_OK) == 0 &&
	    nftw(path, remove_one, NR_AT_ONCE,
		FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
		if ((errno != ENOTEMPTY && errno != ENOENT) || --tries == 0) {
			say_warning("%s could not be removed whole: %s", path,
			    strerror(errno));
			return;
		}
}

void scratch_quote(const struct scratch *s)
{
	char *path = xasprintf("%s/log", s->dir);
	struct text log = { 0 };

	if (text_read_file(&log, path) == 0 && log.len)
		fprintf(stderr, "its daemon said:\n%s", log.data);
	text_done(&log);
	free(path);
}

void scratch_remove(struct scratch *s)
{
	if (s->daemon > 0) {
		kill(s->daemon, SIGTERM);
		while (waitpid(s->daemon, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (s->state)
		remove_tree(s->state);
	if (s->dir)
		remove_tree(s->dir);
	free(s->dir);
	free(s->state);
	free(s->socket);
	free(s->repo);
}

char *scratch_file_system(const char *path)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[4096], kind[64] = "an unknown file system";
	unsigned major_nr, minor_nr;
	struct stat st;
	char *dash;

	if (!mounts || stat(path, &st) < 0)
		memset(&st, 0, sizeof(st));
	while (mounts && fgets(line, sizeof(line), mounts)) {
		dash = strstr(line, " - ");
		if (dash &&
		    sscanf(line, "%*d %*d %u:%u", &major_nr, &minor_nr) == 2 &&
		    makedev(major_nr, minor_nr) == st.st_dev)
			sscanf(dash, " - %63s", kind);
	}
	if (mounts)
		fclose(mounts);
	return xstrdup(kind);
}

/* ---- a repository ---- */

/* Returns the first line of git's output. */
static void ask_git(const char *const argv[], struct text *out)
{
	text_clear(out);
	if (child_capture(argv, out) != 0)
		die("git %s failed", argv[2]);
	if (out->len && out->data[out->len - 1] == '\n')
		out->data[--out->len] = '\0';
}

void scratch_make_repo(struct scratch *s)
{
	char *dir = xasprintf("--git-dir=%s", s->repo);
	const char *init[] = { "git", dir, "init", "-q", "--bare", NULL };
	const char *ask[] = { "git", dir, "rev-parse", "--show-object-format",
		NULL };
	const char *tree[] = { "git", dir, "hash-object", "-t", "tree", "-w",
		"/dev/null", NULL };
	struct text id = { 0 }, commit = { 0 };
	size_t i;

	unsetenv("GIT_DIR");
	unsetenv("GIT_WORK_TREE");
	unsetenv("GIT_OBJECT_DIRECTORY");
	unsetenv("GIT_ALTERNATE_OBJECT_DIRECTORIES");
	setenv("GIT_AUTHOR_NAME", "refd bench", 1);
	setenv("GIT_AUTHOR_EMAIL", "refd@localhost", 1);
	setenv("GIT_COMMITTER_NAME", "refd bench", 1);
	setenv("GIT_COMMITTER_EMAIL", "refd@localhost", 1);
	ask_git(init, &commit);
	ask_git(ask, &id);
	if (refd_object_format_from_name(id.data, &s->object_format) < 0)
		die("git rev-parse said '%s'", id.data);
	ask_git(tree, &id);
	for (i = 0; i < 2; i++) {
		const char *make[] = { "git", dir, "commit-tree", "-m",
			i == 0 ? "one" : "two", id.data, NULL };

		ask_git(make, &commit);
		if (refd_oid_parse(commit.data, s->object_format, &s->oids[i]) <
		    0)
			die("git commit-tree said '%s'", commit.data);
	}
	text_done(&id);
	text_done(&commit);
	free(dir);
}

/* ---- a daemon ---- */

static int new_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

/* The daemon gets a separate process group: an interrupt of the bench must not
 * end the daemon before scratch_remove(). The configuration is empty, because
 * the machine's file is for a different daemon. */
void scratch_start(struct scratch *s)
{
	char *log = xasprintf("%s/log", s->dir);
	char *config = xasprintf("%s/config", s->dir);
	char *argv[] = { "refd", "daemon", "--config", config, "--socket",
		s->socket, "--state", s->state, "--root", s->dir, NULL };
	int fd = new_file(log);

	close(new_file(config));
	s->daemon = fork();
	if (s->daemon < 0)
		die("cannot start a daemon: %s", strerror(errno));
	if (s->daemon == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setpgid(0, 0);
		if (dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
			_exit(EXIT_FATAL);
		execv("/proc/self/exe", argv);
		_exit(EXIT_FATAL);
	}
	close(fd);
	free(log);
	free(config);
}
