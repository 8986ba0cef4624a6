/*
 * A journal that was changed on its disk. The input is a list of patches (file,
 * offset and byte) to a good journal with a WAL, whose daemon was killed with
 * work to redo. The next start refuses the journal with a message, or recovers.
 * The start ends, and writes only to the repository and the state directory.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/world.h"

#define PATCH_BYTES 5 /* file and offset (4), byte (1) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void apply(struct world *w, const char *spec, bool atomic)
{
	struct txn *txn = world_apply(w, spec, atomic);

	expect(txn != NULL);
	world_done(w, txn);
}

static void patch_file(const struct sys *sys, const char *path, uint32_t at,
    uint8_t byte)
{
	struct sys_stat st;
	int fd = sys->openat(sys, AT_FDCWD, path, O_RDWR, 0);

	expect(fd >= 0 && sys->fstat(sys, fd, &st) == 0);
	if (st.size > 0)
		expect(
		    sys->pwrite(sys, fd, &byte, 1, (off_t)(at % st.size)) == 1);
	sys->close(sys, fd);
}

static void damage(struct memfs *fs, const uint8_t *data, size_t size)
{
	const struct sys *sys = memfs_other(fs);

	for (; size >= PATCH_BYTES; data += PATCH_BYTES, size -= PATCH_BYTES)
		patch_file(sys,
		    data[0] & 1 ? "/state/journal.db-wal" : "/state/journal.db",
		    (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3],
		    data[4]);
}

static unsigned count_dir(const struct sys *sys, const char *path)
{
	struct sys_dir *dir;
	struct sys_dirent entry;
	unsigned nr = 0;

	expect(sys->dir_open(sys, AT_FDCWD, path, &dir) == 0);
	while (sys->dir_next(sys, dir, &entry) > 0)
		nr++;
	sys->dir_close(sys, dir);
	return nr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memfs *fs = memfs_new();
	struct world *w;
	unsigned top, srv;

	expect(fs != NULL);
	w = world_new(fs, false);
	expect(w != NULL && world_start(w) == 0);
	apply(w, "a=1;b=1;c/d=1", false);
	apply(w, "a=2:1;-b", true);
	apply(w, "s>a;a=3", false);
	memfs_crash(fs);
	world_crash(w);
	top = count_dir(memfs_other(fs), "/");
	srv = count_dir(memfs_other(fs), "/srv");
	damage(fs, data, size);
	if (world_start(w) == 0)
		world_stop(w);
	expect(count_dir(memfs_other(fs), "/") == top);
	expect(count_dir(memfs_other(fs), "/srv") == srv);
	world_free(w);
	return 0;
}
