#include "daemon/service/marker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

#define BOOT_ID       "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 256

int marker_init(struct marker *marker, const struct sys *sys,
    const char *socket_path)
{
	marker->sys = sys;
	if (asprintf(&marker->path, "%s.replayed", socket_path) < 0) {
		marker->path = NULL;
		return -ENOMEM;
	}
	mutex_init(&marker->mutex, MUTEX_MARKER);
	return 0;
}

void marker_done(struct marker *marker)
{
	if (marker->path == NULL)
		return;
	mutex_destroy(&marker->mutex);
	free(marker->path);
	marker->path = NULL;
}

int marker_remove(struct marker *marker)
{
	int err = SYS(marker->sys, unlinkat, SYS_TRUSTED, marker->path);

	if (err == 0 || err == -ENOENT)
		return 0;
	log_event(LOG_LEVEL_ERROR, "marker-failed",
	    LOG_STR("path", marker->path), LOG_STR("error", strerror(-err)),
	    LOG_TEXT("it can't be removed, and tells clients that nothing "
		     "awaits replay"));
	return err;
}

static int write_new_marker(const struct marker *marker, const char *new_path,
    const char *boot_id, const char *awaiting)
{
	const struct sys *sys = marker->sys;
	int fd, err;

	fd = SYS(sys, openat, SYS_TRUSTED, new_path,
	    O_WRONLY | O_CREAT | O_TRUNC, 0644);
	err = fd < 0 ? fd : SYS(sys, write_all, fd, boot_id, strlen(boot_id));
	if (err == 0)
		err = SYS(sys, write_all, fd, awaiting, strlen(awaiting));
	if (fd >= 0)
		SYS(sys, close, fd);
	if (err == 0)
		err = SYS(sys, renameat, SYS_TRUSTED, new_path, SYS_TRUSTED,
		    marker->path);
	return err;
}

static int replace_marker(const struct marker *marker, const char *awaiting)
{
	char *boot_id = NULL, *new_path = NULL;
	size_t len;
	int err;

	err = sys_read_file(marker->sys, SYS_TRUSTED, BOOT_ID, BOOT_ID_BYTES,
	    &boot_id, &len);
	if (err < 0)
		return err;
	if (asprintf(&new_path, "%s.new", marker->path) < 0) {
		free(boot_id);
		return -ENOMEM;
	}
	err = write_new_marker(marker, new_path, boot_id, awaiting);
	free(boot_id);
	free(new_path);
	return err;
}

void marker_write(struct marker *marker, const char *awaiting)
{
	int err;

	mutex_lock(&marker->mutex);
	err = replace_marker(marker, awaiting);
	if (err < 0) {
		log_event(LOG_LEVEL_WARNING, "marker-failed",
		    LOG_STR("path", marker->path),
		    LOG_STR("error", strerror(-err)),
		    LOG_TEXT("it can't be written: while the daemon is away "
			     "clients will wait for it, whatever "
			     "refd.fallback says"));
		marker_remove(marker);
	}
	mutex_unlock(&marker->mutex);
}
