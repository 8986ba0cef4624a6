#include "tests/lib/flush_watch.h"

static struct flush_watch *now;
static int (*fsync_before)(const struct sys *sys, int fd);

static bool is_locked(void)
{
	size_t i;

	for (i = 0; i < 2; i++)
		if (now->locks[i] != NULL &&
		    memfs_exists(now->fs, now->locks[i]))
			return true;
	return false;
}

static int watched_fsync(const struct sys *sys, int fd)
{
	struct sys_stat st;

	if (now->most_fds < memfs_open_fds(now->fs))
		now->most_fds = memfs_open_fds(now->fs);
	if (SYS(sys, fstat, fd, &st) == 0 && st.size > now->large_bytes) {
		now->nr_large++;
		now->nr_locked += is_locked();
	}
	return fsync_before(sys, fd);
}

void flush_watch_begin(struct flush_watch *watch)
{
	struct sys *sys = (struct sys *)(uintptr_t)memfs_sys(watch->fs);

	now = watch;
	fsync_before = sys->fsync;
	sys->fsync = watched_fsync;
}
