/*
 * Watches the flushes of the process under test: large files must not be
 * flushed under a lock that git waits for. One watch at a time.
 */
#ifndef TESTS_LIB_FLUSH_WATCH_H
#define TESTS_LIB_FLUSH_WATCH_H

#include "tests/lib/memfs.h"

struct flush_watch {
	struct memfs *fs;
	const char *locks[2]; /* paths; NULL: none */
	uint64_t large_bytes; /* larger files are large */
	/* Results: flushes of large files, those of them under a lock, and the
	 * most open descriptors at any flush. */
	unsigned nr_large, nr_locked;
	unsigned long most_fds;
};

/* Watches all later calls on WATCH->fs. */
void flush_watch_begin(struct flush_watch *watch);

#endif
