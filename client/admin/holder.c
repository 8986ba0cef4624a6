#include "client/admin/holder.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/admin/show.h"

#define COMMAND_MAX 100

/* Calls LOOK for each process until LOOK returns true. */
static uint64_t each_process(bool (*look)(const char *proc, const void *arg),
    const void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	uint64_t pid, found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		char *proc;

		if (!parse_number(entry->d_name, UINT32_MAX, &pid))
			continue;
		proc = xasprintf("/proc/%s", entry->d_name);
		if (look(proc, arg))
			found = pid;
		free(proc);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool has_open(const char *proc, const void *arg)
{
	const struct stat *wanted = arg;
	char *path = xasprintf("%s/fd", proc);
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = !fstatat(dirfd(dir), entry->d_name, &st, 0) &&
		    st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
	if (dir)
		closedir(dir);
	free(path);
	return found;
}

uint64_t holder_find(const struct stat *st)
{
	return each_process(has_open, st);
}

static bool is_git_there(const char *proc, const void *arg)
{
	const char *wanted = arg;
	char *path = xasprintf("%s/comm", proc);
	struct text comm = { 0 };
	char dir[4096];
	ssize_t n = -1;

	if (!text_read_file(&comm, path, SMALL_FILE_BYTES) &&
	    has_prefix(comm.data, "git")) {
		free(path);
		path = xasprintf("%s/cwd", proc);
		n = readlink(path, dir, sizeof(dir) - 1);
	}
	free(path);
	text_done(&comm);
	if (n < 0)
		return false;
	dir[n] = '\0';
	return has_prefix(dir, wanted) &&
	    (!dir[strlen(wanted)] || dir[strlen(wanted)] == '/');
}

uint64_t holder_guess(const char *dir)
{
	return each_process(is_git_there, dir);
}

void holder_name(struct text *t, uint64_t pid)
{
	char *path = xasprintf("/proc/%" PRIu64 "/cmdline", pid);
	struct text command = { 0 };
	size_t i;

	text_addf(t, "%" PRIu64, pid);
	/* The beginning of a long command line is enough. */
	text_read_file(&command, path, SMALL_FILE_BYTES);
	if (command.len) {
		for (i = 0; i + 1 < command.len; i++)
			if (!command.data[i])
				command.data[i] = ' ';
		if (command.len > COMMAND_MAX)
			command.data[COMMAND_MAX] = '\0';
		text_adds(t, " (");
		text_add_visible(t, command.data);
		text_addc(t, ')');
	}
	text_done(&command);
	free(path);
}
