/*
 * Is a lock file older than this boot of the machine? Then no process of the
 * machine holds the lock, because all processes of earlier boots have ended.
 *
 * Only clocks tell the age of a file, and somebody can set a clock, so two
 * times are compared:
 *
 *	boot	the wall clock, less the time since the boot: a later setting
 *		of the clock moves this time
 *	stamp	the time of files which are made at the begin of each boot, so
 *		before any lock of the boot: nothing moves this time
 *
 * If the clock was set forward since, or the machine was paused, boot is later
 * than the stamp, and nothing is proved. If the clock was set back, boot is
 * earlier than every lock of this boot. So no number of settings in a single
 * direction makes a lock of this boot look older. Only a clock which was set
 * back and forth between the boot and the question could (docs/limits.md).
 *
 * A lock can outlive a boot if its holder is a process of another machine, a
 * client of a file server, so nothing is proved beside a file server either.
 *
 * One thread; may block. Nothing logs.
 */
#ifndef STORE_THIS_BOOT_H
#define STORE_THIS_BOOT_H

#include <stdint.h>

#include "daemon/base/sys.h"

/* If zero-initialised, no lock is older. */
struct this_boot {
	int64_t stamp_ns;
	/* NULL, or why nothing can be proved: as from this_boot_is_after(). */
	const char *unknown;
};

/* Reads trusted paths, so call it before the process is confined. */
void this_boot_find(const struct sys *sys, struct this_boot *b);
/* Did this boot begin after CTIME_NS, the ctime of a file whose file system has
 * the clock of this machine? NULL: yes. Otherwise a static text, to follow
 * "because". */
const char *this_boot_is_after(const struct this_boot *b, const struct sys *sys,
    int64_t ctime_ns);

#endif
