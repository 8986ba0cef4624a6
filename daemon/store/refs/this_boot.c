/*
 * The happy path: the stamp is some seconds later than the begin of this boot,
 * because the kernel and the service manager need this time. A lock from an
 * earlier boot is older than the begin of this boot by at least the time of a
 * restart.
 *
 * Failures: without a file for the stamp, or after a setting of the clock, the
 * age of a lock stays unknown. In a container the files of the stamp can be
 * much younger than the boot, and other containers may hold locks, so nothing
 * is proved there.
 */
#include "daemon/store/refs/this_boot.h"

#include <stddef.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/refs/processes.h"

/* The kernel and an initial file system may need minutes before the stamp. */
#define STAMP_LATEST_NS (INT64_C(600) * 1000000000)

/* Files that are made at the begin of a boot, and that nobody changes later.
 * The older of both is the stamp. The root of sysfs is mounted first of all.
 * But a service with a network of its own may get a new sysfs, and then the
 * file of systemd is the older one. */
static const char *const stamps[] = { "/sys", "/run/systemd/inaccessible/reg" };

void this_boot_find(const struct sys *sys, struct this_boot *b)
{
	struct sys_stat st;
	size_t i;

	*b = (struct this_boot){ .stamp_ns = INT64_MAX };
	for (i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++)
		if (sys_stat_trusted(sys, stamps[i], &st) == 0 &&
		    st.ctime_ns < b->stamp_ns)
			b->stamp_ns = st.ctime_ns;
	if (b->stamp_ns == INT64_MAX)
		b->unknown = "no file tells when the machine booted";
	if (processes_in_container(sys) != NULL)
		b->unknown = "refd runs in a container, and a process outside "
			     "may hold the lock";
	if (processes_serve_files(sys))
		b->unknown = "this machine has a file server, and a process of "
			     "another machine may hold the lock";
}

const char *this_boot_is_after(const struct this_boot *b, const struct sys *sys,
    int64_t ctime_ns)
{
	/* The wall clock is read first. A delay before the other clock is read
	 * then makes the boot earlier, and no lock looks older. */
	int64_t wall_ns = SYS(sys, now_wall);
	int64_t boot_ns = wall_ns - SYS(sys, now_boot);

	if (b->unknown != NULL)
		return b->unknown;
	if (boot_ns > b->stamp_ns + FS_SLACK_NS ||
	    boot_ns + STAMP_LATEST_NS < b->stamp_ns)
		return "the clock was set since the boot, or the machine was "
		       "paused";
	if (ctime_ns + 2 * FS_SLACK_NS > boot_ns)
		return "a process of this boot may hold the lock";
	return NULL;
}
