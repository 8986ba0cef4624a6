/*
 * Opens the file with the failed syncs of this boot, and tells the
 * administrator of further failures.
 *
 * The happy path: the file has nothing in it, and no sync fails.
 *
 * Failures: a sync needs its mark in the file, so the daemon does not start if
 * the file cannot be written. If the file cannot be read, every file system may
 * have failed, so there is a warning.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/recover_internal.h"
#include "daemon/store/store_internal.h"

static void fs_failed(void *store, const char *place, int err)
{
	store_tell(store, STORE_FS_FAILED, place, strerror(-err));
}

static void unmarked(void *store, int err)
{
	const struct store *s = store;
	char path[REFD_PATH_MAX];

	snprintf(path, sizeof(path), "%s/syncs", s->state_dir);
	store_tell(s, STORE_UNMARKED, path, err == 0 ? "" : strerror(-err));
}

static void replaced(void *store, const char *place)
{
	store_tell(store, STORE_REPO_REPLACED, place, "");
}

static const char *sync_failures_advice(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return ": make room there";
	case -EISDIR:
	case -EPERM:
		return ": remove what stands there, or at 'syncs.new'";
	}
	return "";
}

int store_open_sync_failures(struct store *s, char **warning, char **why)
{
	struct recover_starts starts;
	int r;

	r = recover_starts_read(&starts, s->journal);
	if (r == 0)
		r = sync_failures_open(s->sys, s->state_fd, s->boot_id,
		    starts.nr_of_boot <= 1, &s->sync_failures);
	recover_starts_done(&starts);
	if (r != 0) {
		*why = repo_why("can't write 'syncs' in the state directory "
				"'%s': %s%s",
		    s->state_dir, strerror(r < 0 ? -r : EIO),
		    sync_failures_advice(r));
		return r;
	}
	s->repos.sync_failures = s->sync_failures;
	s->repos.has_failed = sync_failures_any(s->sync_failures);
	s->repos.report =
	    (struct repos_report){ fs_failed, unmarked, replaced, s };
	if (sync_failures_unread(s->sync_failures) == 0)
		return 0;
	free(*warning);
	*warning = repo_why(
	    "'syncs' in the state directory '%s', which says what file systems "
	    "failed to sync, can't be read (%s): until the next boot each "
	    "is taken for one of them, and objects are read from its disk "
	    "before a ref to them is acknowledged; if the kernel's log knows "
	    "of none that failed, stop refd, remove the file and start it",
	    s->state_dir,
	    sync_failures_unread(s->sync_failures) == -EBADMSG ?
		"it is damaged" :
		strerror(-sync_failures_unread(s->sync_failures)));
	return 0;
}
