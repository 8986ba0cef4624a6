/*
 * Happy path:
 *	format		"config" alone, without includes, as in git
 *	settings	"config" again, with includes; "config.worktree"
 *
 * Failure modes:
 *	a format that refd cannot write: refused by name, left to git
 *	a malformed file, a FIFO, a link: the repository is not opened
 *	too many files, too many bytes: the same
 */
#include "daemon/store/repos/repo_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/config_value.h"
#include "daemon/store/repos/repo.h"
#include "daemon/store/txn.h"
#include "proto/format.h"
#include "proto/lib/config_file.h"
#include "proto/lib/fsync.h"

/* Permission bits for the words of core.sharedRepository (git's path.h:
 * PERM_GROUP, PERM_EVERYBODY). */
#define SHARED_GROUP     0660
#define SHARED_EVERYBODY 0664

struct config_reading {
	const struct sys *sys;
	int common_fd;
	const char *path; /* of the common dir */
	char *main_text;  /* of "config" */
	size_t main_len;
	int version;
	bool has_worktree_config;
	bool is_bare_set;
	bool syncs_refs;     /* the last core.fsync has refs */
	bool is_sync_unsure; /* an unread file may follow */
	bool is_sync_weak;   /* core.fsyncMethod does not flush the disk */
	struct repo_config config;
	unsigned depth, nr_files;
	size_t nr_bytes;
	const char *name; /* of the file being read, below the common dir */
	/* The reason to stop reading; STATUS is REFD_OK until then. */
	enum refd_status status;
	char *why;
};

#define END_READING(r, code, ...)                                              \
	((r)->status = (code), (r)->why = repo_why(__VA_ARGS__), -1)

static int unsupported(struct config_reading *r, const char *what)
{
	return END_READING(r, REFD_UNSUPPORTED,
	    "the configuration of '%s' %s: git reads it itself", r->path, what);
}

/* ---- files ---- */

/* Opens NAME below the common dir, component by component. */
static int open_file(const struct config_reading *r, const char *name)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	char part[256];
	struct sys_stat st;
	size_t len;
	int dirfd = r->common_fd, fd;

	for (;;) {
		len = strcspn(name, "/");
		if (len >= sizeof(part)) {
			fd = -ENAMETOOLONG;
			break;
		}
		memcpy(part, name, len);
		part[len] = '\0';
		name += len + (name[len] == '/');
		fd = SYS(r->sys, openat, dirfd, part,
		    *name != '\0' ? flags | O_DIRECTORY : flags, 0);
		/* A link in the place of a directory is -ELOOP too. */
		if (fd == -ENOTDIR &&
		    SYS(r->sys, lstatat, dirfd, part, &st) == 0 &&
		    S_ISLNK(st.mode))
			fd = -ELOOP;
		if (fd < 0 || *name == '\0')
			break;
		if (dirfd != r->common_fd)
			SYS(r->sys, close, dirfd);
		dirfd = fd;
	}
	if (dirfd != r->common_fd)
		SYS(r->sys, close, dirfd);
	return fd;
}

/* 0; -ENOENT; -ELOOP: a link is on the way; -1: the reading ends. */
static int read_file(struct config_reading *r, const char *name, char **text,
    size_t *len)
{
	int fd, err;

	if (r->nr_files++ == CONFIG_FILES)
		return unsupported(r, "has too many files");
	fd = open_file(r, name);
	if (fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR)
		return fd == -ENOTDIR ? -ENOENT : fd;
	err = fd;
	if (fd >= 0) {
		err = sys_read_fd(r->sys, fd, CONFIG_BYTES - r->nr_bytes, text,
		    len);
		SYS(r->sys, close, fd);
	}
	if (err == -EFBIG)
		return unsupported(r, "is larger than 1 MiB");
	if (err == -EISDIR || err == -EINVAL)
		return END_READING(r, REFD_NOREPO,
		    "the configuration of '%s' holds a file that is not a "
		    "regular file",
		    r->path);
	if (err < 0)
		return END_READING(r, txn_io(err),
		    "can't read the configuration of '%s': %s", r->path,
		    strerror(-err));
	r->nr_bytes += *len;
	return 0;
}

static int parse(struct config_reading *r, const char *text, size_t len,
    config_entry_fn *fn)
{
	const char *why = "out of memory";
	unsigned line = 0;
	int err;

	err = config_file_parse(text, len, fn, r, &line, &why);
	if (err == 0 || r->status != REFD_OK)
		return err;
	return END_READING(r, REFD_IO,
	    "can't read the configuration of '%s', line %u: %s", r->path, line,
	    why);
}

static int bad_value(struct config_reading *r, const char *key, unsigned line)
{
	return END_READING(r, REFD_IO,
	    "can't read the configuration of '%s', line %u: %s has a bad value",
	    r->path, line, key);
}

/* ---- the format ---- */

static int not_served(struct config_reading *r, const char *why)
{
	return END_READING(r, REFD_UNSUPPORTED, "'%s' is not served: %s",
	    r->path, why);
}

static int version_entry(void *arg, const char *key, const char *value,
    unsigned line)
{
	struct config_reading *r = arg;

	if (strcmp(key, "core.repositoryformatversion") != 0)
		return 0;
	r->config.has_version = true;
	if (value == NULL || config_value_int(value, &r->version) < 0)
		return bad_value(r, "core.repositoryFormatVersion", line);
	return 0;
}

static int extension_entry(void *arg, const char *key, const char *value,
    unsigned line)
{
	static const char prefix[] = "extensions.";
	struct config_reading *r = arg;
	char why[FORMAT_WHY_MAX];

	if (strncmp(key, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	if (!format_serves(r->version, key + sizeof(prefix) - 1,
		value != NULL ? value : "", why))
		return not_served(r, why);
	if (strcmp(key, "extensions.partialclone") == 0)
		r->config.is_partial = true;
	/* format_serves() knows both values. */
	if (strcmp(key, "extensions.refstorage") == 0)
		r->config.is_reftable = strcmp(value, "reftable") == 0;
	if (strcmp(key, "extensions.objectformat") == 0)
		refd_object_format_from_name(value, &r->config.object_format);
	if (strcmp(key, "extensions.worktreeconfig") == 0 &&
	    config_value_bool(value, &r->has_worktree_config) < 0)
		return bad_value(r, key, line);
	return 0;
}

static int read_format(struct config_reading *r)
{
	int err = parse(r, r->main_text, r->main_len, version_entry);
	const char *why;

	if (err < 0)
		return err;
	why = format_version_unserved(r->version);
	if (why != NULL)
		return not_served(r, why);
	return parse(r, r->main_text, r->main_len, extension_entry);
}

/* ---- the settings ---- */

int repo_config_parse_shared(const char *value, int *perm)
{
	bool yes;
	long n;
	char *end;

	if (value == NULL || strcmp(value, "group") == 0) {
		*perm = SHARED_GROUP;
		return 0;
	}
	if (strcmp(value, "umask") == 0) {
		*perm = 0;
		return 0;
	}
	if (strcmp(value, "all") == 0 || strcmp(value, "world") == 0 ||
	    strcmp(value, "everybody") == 0) {
		*perm = SHARED_EVERYBODY;
		return 0;
	}
	n = strtol(value, &end, 8);
	if (*end != '\0') {
		if (config_value_bool(value, &yes) < 0)
			return -1;
		*perm = yes ? SHARED_GROUP : 0;
		return 0;
	}
	if (n >= 0 && n <= 2) {
		*perm = n == 0 ? 0 : n == 1 ? SHARED_GROUP : SHARED_EVERYBODY;
		return 0;
	}
	if ((n & 0600) != 0600)
		return -1;
	*perm = -(int)(n & 0666);
	return 0;
}

static int set_log(struct config_reading *r, const char *value)
{
	char *copy = strdup(value != NULL ? value : "true");

	free(r->config.log_all_ref_updates);
	r->config.log_all_ref_updates = copy;
	r->config.is_log_unsure = false;
	return copy != NULL ? 0 :
			      END_READING(r, busy_cause_count(BUSY_MEMORY),
				  "%s", busy_cause_text(BUSY_MEMORY));
}

static void is_not_read(struct config_reading *r)
{
	r->config.is_log_unsure = true;
	r->config.is_shared_unsure = true;
	r->is_sync_unsure = true;
}

/* Resolves VALUE, in the file NAME, to a path below the common dir, without "."
 * and "..". False: the path is elsewhere. BUF is REFD_PATH_MAX bytes. */
static bool resolve_include(const struct config_reading *r, const char *value,
    char *buf)
{
	size_t top = strlen(r->path), len = 0, part;
	const char *slash = strrchr(r->name, '/');

	if (strlen(value) + strlen(r->name) + 2 > REFD_PATH_MAX ||
	    value[0] == '~' || value[0] == '%' || value[0] == '\0')
		return false;
	if (value[0] == '/') {
		if (strncmp(value, r->path, top) != 0 || value[top] != '/')
			return false;
		value += top;
	} else if (slash != NULL) {
		len = (size_t)(slash - r->name);
		memcpy(buf, r->name, len);
	}
	for (; *value != '\0'; value += part) {
		value += strspn(value, "/");
		part = strcspn(value, "/");
		if (part == 2 && strncmp(value, "..", 2) == 0) {
			if (len == 0)
				return false;
			while (len > 0 && buf[--len] != '/')
				continue;
		} else if (part > 0 && !(part == 1 && *value == '.')) {
			if (len > 0)
				buf[len++] = '/';
			memcpy(buf + len, value, part);
			len += part;
		}
	}
	buf[len] = '\0';
	return len > 0;
}

static int settings_entry(void *arg, const char *key, const char *value,
    unsigned line);

/* git skips a missing include. */
static int include(struct config_reading *r, const char *value)
{
	const char *outer = r->name;
	char name[REFD_PATH_MAX], *text;
	size_t len;
	int err;

	if (!resolve_include(r, value, name)) {
		is_not_read(r);
		return 0;
	}
	if (r->depth == CONFIG_DEPTH)
		return unsupported(r, "has includes nested too deep");
	err = read_file(r, name, &text, &len);
	if (err == -ELOOP)
		is_not_read(r);
	if (err < 0)
		return err == -ELOOP || err == -ENOENT ? 0 : err;
	r->depth++;
	r->name = name;
	err = parse(r, text, len, settings_entry);
	r->name = outer;
	r->depth--;
	free(text);
	return err;
}

static bool is_conditional(const char *key)
{
	size_t len = strlen(key);

	return strncmp(key, "includeif.", 10) == 0 && len > 5 &&
	    strcmp(key + len - 5, ".path") == 0;
}

/* A remote from which git fetches absent objects (promisor_remote_config() of
 * git's promisor-remote.c). Since git 2.24 a partial clone is recognised by
 * this key, and has no extension. */
static bool is_promisor(const char *key, const char *value)
{
	static const char begin[] = "remote.", promisor[] = ".promisor",
			  filter[] = ".partialclonefilter";
	const char *last = strrchr(key, '.');
	bool is = false;

	if (strncmp(key, begin, sizeof(begin) - 1) != 0 || last < key + 7)
		return false;
	if (strcmp(last, promisor) == 0)
		return config_value_bool(value, &is) == 0 && is;
	return strcmp(last, filter) == 0;
}

static int settings_entry(void *arg, const char *key, const char *value,
    unsigned line)
{
	struct config_reading *r = arg;

	if (is_promisor(key, value))
		r->config.is_partial = true;
	/* Every repository is below "/", so the condition in this line of refd
	 * enable always holds. */
	if (strcmp(key, "include.path") == 0 ||
	    strcmp(key, "includeif.gitdir:/.path") == 0)
		return value != NULL ? include(r, value) :
				       bad_value(r, key, line);
	if (is_conditional(key))
		is_not_read(r);
	if (strcmp(key, "core.fsync") == 0)
		r->syncs_refs = fsync_covers_refs(value);
	if (strcmp(key, "core.fsyncmethod") == 0)
		r->is_sync_weak = value == NULL ||
		    (strcmp(value, "fsync") != 0 &&
			strcmp(value, "batch") != 0);
	if (strcmp(key, "core.logallrefupdates") == 0)
		return set_log(r, value);
	if (strcmp(key, "core.bare") == 0) {
		r->is_bare_set = true;
		return config_value_bool(value, &r->config.bare) < 0 ?
		    bad_value(r, key, line) :
		    0;
	}
	if (strcmp(key, "core.sharedrepository") == 0) {
		if (repo_config_parse_shared(value, &r->config.shared_perm) < 0)
			return END_READING(r, REFD_UNSUPPORTED,
			    "bad core.sharedRepository of '%s', line %u",
			    r->path, line);
		r->config.is_shared_unsure = false;
	}
	return 0;
}

static int read_settings(struct config_reading *r)
{
	char *text;
	size_t len;
	int err;

	r->name = "config";
	err = parse(r, r->main_text, r->main_len, settings_entry);
	if (err < 0 || !r->has_worktree_config || !r->config.has_version)
		return err;
	r->name = "config.worktree";
	err = read_file(r, r->name, &text, &len);
	if (err == -ENOENT)
		return 0;
	if (err == -ELOOP)
		return unsupported(r, "has a link in it");
	if (err < 0)
		return err;
	err = parse(r, text, len, settings_entry);
	free(text);
	return err;
}

static bool is_dot_git(const char *common_dir)
{
	size_t len = strlen(common_dir);

	return len >= 5 && strcmp(common_dir + len - 5, "/.git") == 0;
}

enum refd_status repo_config_read(const struct sys *sys, int common_fd,
    const char *path, struct repo_config *config, char **why)
{
	struct config_reading r = { .sys = sys,
		.common_fd = common_fd,
		.path = path };
	int err;

	err = read_file(&r, "config", &r.main_text, &r.main_len);
	if (err == -ELOOP)
		unsupported(&r, "is a link");
	if (err == 0)
		err = read_format(&r);
	if (err == 0)
		err = read_settings(&r);
	free(r.main_text);
	if (r.status != REFD_OK) {
		free(r.config.log_all_ref_updates);
		*why = r.why;
		return r.status;
	}
	/* A repository need not set core.bare. */
	if (!r.is_bare_set)
		r.config.bare = !is_dot_git(path);
	r.config.git_syncs_refs =
	    r.syncs_refs && !r.is_sync_weak && !r.is_sync_unsure;
	*config = r.config;
	return REFD_OK;
}

void repo_config_done(struct repo_config *config)
{
	free(config->log_all_ref_updates);
	memset(config, 0, sizeof(*config));
}
