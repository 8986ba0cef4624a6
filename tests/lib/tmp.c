#include "tests/lib/tmp.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/sys.h"

#define COMMAND_MAX (16 * 1024)

char tmp_root[PATH_MAX];
int tmp_fd = -1;

/* The umask is 0, as in the daemon. */
void tmp_setup(void)
{
	static const char *const leaks[] = {
		"GIT_DIR",
		"GIT_WORK_TREE",
		"GIT_INDEX_FILE",
		"GIT_OBJECT_DIRECTORY",
		"GIT_NAMESPACE",
		"GIT_CONFIG_COUNT",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"GIT_CONFIG_PARAMETERS",
		"XDG_CONFIG_HOME",
		"GIT_COMMON_DIR",
		"GIT_REFERENCE_BACKEND",
		"GIT_REF_STORAGE_FORMAT",
	};
	const char *base = getenv("TMPDIR");
	char state[PATH_MAX + 8];
	size_t i;

	snprintf(tmp_root, PATH_MAX, "%s/refd-unit-XXXXXX",
	    base != NULL ? base : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(tmp_root));
	tmp_fd = open(tmp_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(tmp_fd, 0);
	for (i = 0; i < sizeof(leaks) / sizeof(leaks[0]); i++)
		unsetenv(leaks[i]);
	setenv("HOME", tmp_root, 1);
	snprintf(state, sizeof(state), "%s/state", tmp_root);
	setenv("REFD_STATE", state, 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_AUTHOR_NAME", "A U Thor", 1);
	setenv("GIT_AUTHOR_EMAIL", "author@example.com", 1);
	setenv("GIT_COMMITTER_NAME", "C O Mitter", 1);
	setenv("GIT_COMMITTER_EMAIL", "committer@example.com", 1);
	setenv("LC_ALL", "C", 1);
	umask(0);
}

void tmp_teardown(void)
{
	char command[PATH_MAX + 16];

	close(tmp_fd);
	snprintf(command, sizeof(command), "rm -rf '%s'", tmp_root);
	ck_assert_int_eq(system(command), 0);
}

void tmp_put_bytes(const char *path, const void *data, size_t len)
{
	int fd;

	ck_assert_int_ge(sys_make_parents(&sys_kernel, tmp_fd, path, 0777), 0);
	fd = openat(tmp_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
	    0666);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(SYS(&sys_kernel, write_all, fd, data, len), 0);
	ck_assert_int_eq(close(fd), 0);
}

void tmp_put(const char *path, const char *text)
{
	tmp_put_bytes(path, text, strlen(text));
}

char *tmp_get(const char *path)
{
	char *buf;
	size_t len;
	int r;

	r = sys_read_file(&sys_kernel, tmp_fd, path, 1 << 30, &buf, &len);
	if (r == -ENOENT || r == -ENOTDIR)
		return NULL;
	ck_assert_int_eq(r, 0);
	return buf;
}

bool tmp_exists(const char *path)
{
	struct stat st;

	return fstatat(tmp_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void tmp_mkdir(const char *path)
{
	char below[PATH_MAX];

	snprintf(below, sizeof(below), "%s/x", path);
	ck_assert_int_ge(sys_make_parents(&sys_kernel, tmp_fd, below, 0777), 0);
}

unsigned tmp_mode(const char *path)
{
	struct stat st;

	ck_assert_int_eq(fstatat(tmp_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static char *run(int *status, const char *fmt, va_list ap)
{
	char command[COMMAND_MAX], chunk[4096];
	char *out = NULL;
	size_t len = 0, n;
	FILE *pipe;
	int used;

	used = snprintf(command, sizeof(command), "cd '%s' && { ", tmp_root);
	used +=
	    vsnprintf(command + used, sizeof(command) - (size_t)used, fmt, ap);
	ck_assert_int_lt(used, COMMAND_MAX - 16);
	strcat(command, "\n} 2>&1");
	pipe = popen(command, "re");
	ck_assert_ptr_nonnull(pipe);
	do {
		n = fread(chunk, 1, sizeof(chunk), pipe);
		out = realloc(out, len + n + 1);
		ck_assert_ptr_nonnull(out);
		memcpy(out + len, chunk, n);
		len += n;
	} while (n > 0);
	out[len] = '\0';
	*status = pclose(pipe);
	ck_assert(WIFEXITED(*status));
	*status = WEXITSTATUS(*status);
	return out;
}

char *tmp_output(const char *fmt, ...)
{
	va_list ap;
	char *out;
	int status;

	va_start(ap, fmt);
	out = run(&status, fmt, ap);
	va_end(ap);
	return out;
}

int tmp_status(const char *fmt, ...)
{
	va_list ap;
	int status;

	va_start(ap, fmt);
	free(run(&status, fmt, ap));
	va_end(ap);
	return status;
}

void tmp_run(const char *fmt, ...)
{
	va_list ap;
	char *out;
	int status;

	va_start(ap, fmt);
	out = run(&status, fmt, ap);
	va_end(ap);
	ck_assert_msg(status == 0, "'%s' failed with %d: %s", fmt, status, out);
	free(out);
}
