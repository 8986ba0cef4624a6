/*
 * Two git-dirs for each object format. git writes nothing there, and no file
 * there belongs to a repository, so all fetches share these git-dirs:
 *
 *	HEAD, config, refs/	files and a directory
 *	packed-refs		a link to the descriptor FETCH_FD_REFS
 *	objects/00 ... ff	links beneath the descriptor FETCH_FD_OBJECTS
 *	objects/pack		a link to the descriptor FETCH_FD_PACK
 *
 * The second one, <format>-tables, shows the refs of a repository whose refs
 * are in reftables, and no object:
 *
 *	reftable		a link to the descriptor FETCH_FD_TABLES
 *
 * objects/info is missing on purpose: alternates of the repository would lead
 * git to other repositories, whose configuration git would then read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/tree.h"
#include "daemon/group/service/fetch_git.h"

/* The daemon may wait for room, too, so a full disk is no fatal error. */
static void __attribute__((noreturn)) fail(const char *path)
{
	if (errno == ENOSPC || errno == EDQUOT)
		cli_die(EXIT_AWAY, "cannot make '%s': %s: make room there",
		    path, strerror(errno));
	die("cannot make '%s': %s", path, strerror(errno));
}

static void make_dir(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);

	if (mkdir(path, 0700) < 0)
		fail(path);
	free(path);
}

static void make_file(const char *dir, const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd) < 0)
		fail(path);
	free(path);
}

/* BELOW: "", or a slash and a name. */
static void make_link(const char *dir, const char *name, int fd,
    const char *below)
{
	char *path = xasprintf("%s/%s", dir, name);
	char *target = xasprintf("/proc/self/fd/%d%s", fd, below);

	if (symlink(target, path) < 0)
		fail(path);
	free(path);
	free(target);
}

/* Packs are kept as packs (unpackLimit), so git writes no loose object. */
static void make_git_dir(const char *dir, bool is_sha256)
{
	char name[16], below[16];
	int i;

	if (mkdir(dir, 0700) < 0)
		fail(dir);
	make_dir(dir, "refs");
	make_dir(dir, "objects");
	make_file(dir, "HEAD", "ref: refs/heads/none\n");
	make_file(dir, "config",
	    is_sha256 ? "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
			"[extensions]\n\tobjectFormat = sha256\n"
			"[fetch]\n\tunpackLimit = 1\n" :
			"[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
			"[fetch]\n\tunpackLimit = 1\n");
	make_link(dir, "packed-refs", FETCH_FD_REFS, "");
	make_link(dir, "objects/pack", FETCH_FD_PACK, "");
	for (i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "objects/%02x", (unsigned)i);
		snprintf(below, sizeof(below), "/%02x", (unsigned)i);
		make_link(dir, name, FETCH_FD_OBJECTS, below);
	}
}

/* HEAD as git writes it beside reftables. */
static void make_tables_dir(const char *dir, bool is_sha256)
{
	if (mkdir(dir, 0700) < 0)
		fail(dir);
	make_dir(dir, "refs");
	make_dir(dir, "objects");
	make_file(dir, "HEAD", "ref: refs/heads/.invalid\n");
	make_file(dir, "config",
	    is_sha256 ? "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
			"[extensions]\n\tobjectFormat = sha256\n"
			"\trefStorage = reftable\n" :
			"[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
			"[extensions]\n\trefStorage = reftable\n");
	make_link(dir, "reftable", FETCH_FD_TABLES, "");
}

void fetch_dirs_make(const char *dir)
{
	enum refd_object_format format;
	struct tree old = { .task = TREE_REMOVE };
	char *path, *tables;

	tree_walk(&old, AT_FDCWD, dir);
	if (mkdir(dir, 0700) < 0)
		fail(dir);
	for (format = REFD_FORMAT_SHA1; format <= REFD_FORMAT_SHA256;
	    format++) {
		path = xasprintf("%s/%s", dir, refd_object_format_name(format));
		make_git_dir(path, format == REFD_FORMAT_SHA256);
		tables = xasprintf("%s-tables", path);
		make_tables_dir(tables, format == REFD_FORMAT_SHA256);
		free(tables);
		free(path);
	}
}
