/*
 * The settings of a repository's configuration that refd uses: the format,
 * core.bare, core.logAllRefUpdates, core.sharedRepository and core.fsync.
 *
 * The files are hostile input, so each file is opened below the common dir by
 * single names, without following a link, and must be a regular file. Files to
 * be read: "config", "config.worktree" if extensions.worktreeConfig is set, and
 * the files below the common dir named by include.path, or by the line of refd
 * enable. An include elsewhere, through a link or under another condition
 * (includeIf) is not read, so the caller must get the possibly affected
 * settings from the client.
 *
 * Bounds: CONFIG_FILES files, CONFIG_BYTES bytes in all, includes nested
 * CONFIG_DEPTH deep (git's own bound). Blocks; nothing logs; any thread.
 */
#ifndef STORE_REPO_CONFIG_H
#define STORE_REPO_CONFIG_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "proto/oid.h"
#include "proto/status.h"

#define CONFIG_FILES 32
#define CONFIG_BYTES (1024 * 1024)
#define CONFIG_DEPTH 10

struct repo_config {
	bool has_version; /* otherwise git ignores all extensions */
	enum refd_object_format object_format;
	bool is_partial;  /* git can fetch absent objects */
	bool is_reftable; /* the refs are in reftables */
	bool bare;        /* core.bare; unset: the directory is not ".git" */
	/* core.sharedRepository as in git's calc_shared_perm(). 0: umask;
	 * positive: bits to add; negative: minus the exact mode. */
	int shared_perm;
	char *log_all_ref_updates; /* NULL: unset */
	/* Git syncs refs before they get their names (core.fsync and
	 * core.fsyncMethod). False if an unread file may set one of them. */
	bool git_syncs_refs;
	/* An unread file may set the value. */
	bool is_log_unsure, is_shared_unsure;
};

/* A value of core.sharedRepository (git_config_perm()); NULL: a key without a
 * value. -1: git dies on the value. Pure; any thread. */
int repo_config_parse_shared(const char *value, int *perm);

/*
 * Reads the configuration of the directory COMMON_FD, with path PATH.
 * REFD_NOREPO: a file is not a regular file. REFD_UNSUPPORTED: a format, a
 * value or a size that only git handles. REFD_IO: unreadable or malformed. *WHY
 * (to be freed; NULL when out of memory) is a sentence with the reason. *CONFIG
 * is set only on success, for repo_config_done().
 */
enum refd_status repo_config_read(const struct sys *sys, int common_fd,
    const char *path, struct repo_config *config, char **why);
void repo_config_done(struct repo_config *config);

#endif
