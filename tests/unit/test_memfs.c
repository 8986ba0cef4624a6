/*
 * Proves that the fake file system behaves as the kernel does. A random script
 * of thousands of calls runs on both. Every result, every errno and the final
 * trees must be the same. A mismatch names seed and step. Faults and power
 * losses, which only the fake has, are in test_memfs_rules.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/sys.h"
#include "tests/lib/memfs.h"
#include "tests/lib/suite.h"
#include "tests/lib/systree.h"
#include "tests/lib/tmp.h"

#define STEPS    4000
#define SEEDS    12
#define NR_SLOTS 12
/* So deep that ".." and symbolic links may leave the work directory. */
#define WORK "n/n/n/n/n/n"

struct side {
	const struct sys *sys;
	const char *base;
	int slots[NR_SLOTS]; /* 0 is the work directory; -1: closed */
};

static struct memfs *fs;
static struct side kernel, model;
static char step_text[1024];

static void setup(void)
{
	int i;

	umask(0);
	tmp_setup();
	tmp_mkdir(WORK);
	tmp_run("chmod -R 777 .");
	kernel.sys = &sys_kernel;
	kernel.base = tmp_root;
	kernel.slots[0] = openat(tmp_fd, WORK, O_RDONLY | O_DIRECTORY);

	fs = memfs_new();
	memfs_mkdirs(fs, "/w/" WORK);
	model.sys = memfs_sys(fs);
	model.base = "/w";
	model.slots[0] = SYS(model.sys, openat, AT_FDCWD, "/w/" WORK,
	    O_RDONLY | O_DIRECTORY, 0);
	for (i = 1; i < NR_SLOTS; i++)
		kernel.slots[i] = model.slots[i] = -1;
}

static void teardown(void)
{
	memfs_free(fs);
	tmp_teardown();
}

/* ---- a random script ---- */

static uint64_t rng;

static unsigned pick(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)((rng >> 11) % n);
}

/* Mostly a path that a call below a descriptor accepts. */
static void pick_path(char *path)
{
	static const char *const names[] = { "a", "b", "c", "d.lock" };
	unsigned i, nr = 1 + pick(3);
	const char *name, *sep;
	size_t len = 0;

	path[0] = '\0';
	if (pick(100) == 0)
		return;
	if (pick(30) == 0) {
		strcpy(path, pick(2) == 0 ? "." : "/");
		return;
	}
	for (i = 0; i < nr; i++) {
		name = names[pick(4)];
		if (pick(60) == 0)
			name = pick(2) == 0 ? ".." : ".";
		sep = i == 0 ? "" : pick(40) == 0 ? "//" : "/";
		len += (size_t)sprintf(path + len, "%s%s", sep, name);
	}
	if (pick(30) == 0)
		len += (size_t)sprintf(path + len, "/");
	if (pick(300) == 0) {
		memset(path + len, 'x', 256);
		path[len + 256] = '\0';
	}
}

static int pick_slot(void)
{
	unsigned i, slot = pick(NR_SLOTS);

	for (i = 0; i < NR_SLOTS && kernel.slots[slot] < 0; i++)
		slot = (slot + 1) % NR_SLOTS;
	return (int)slot;
}

/* Mostly the work directory, because most files are there. */
static int pick_dir(void)
{
	return pick(3) == 0 ? pick_slot() : 0;
}

static int pick_free_slot(void)
{
	unsigned slot = 1 + pick(NR_SLOTS - 1);

	if (kernel.slots[slot] >= 0) {
		SYS(kernel.sys, close, kernel.slots[slot]);
		SYS(model.sys, close, model.slots[slot]);
	}
	kernel.slots[slot] = model.slots[slot] = -1;
	return (int)slot;
}

static mode_t pick_mode(bool is_dir)
{
	static const mode_t modes[] = { 0600, 0640, 0666, 0755, 0777, 02770 };
	mode_t mode = modes[pick(geteuid() == 0 ? 6 : 5)];

	return is_dir ? mode | 0700 : mode;
}

static int pick_flags(void)
{
	static const int access[] = { O_RDONLY, O_WRONLY, O_RDWR };
	int flags = access[pick(3)];

	if (pick(2) == 0)
		flags |= pick(4) == 0 ? O_CREAT | O_EXCL : O_CREAT;
	if (pick(5) == 0)
		flags |= O_TRUNC;
	if (pick(5) == 0)
		flags |= O_APPEND;
	if (pick(6) == 0)
		flags |= O_NOFOLLOW;
	if (pick(5) == 0)
		flags = O_RDONLY | O_DIRECTORY;
	if (pick(30) == 0)
		flags |= O_PATH;
	return flags;
}

/* ---- results ---- */

static void same(const char *what, long long k, long long m)
{
	char *dump;

	if (k == m)
		return;
	dump = memfs_dump(fs);
	ck_abort_msg("%s: %s is %lld with the kernel, %lld with memfs\n%s",
	    step_text, what, k, m, dump);
}

static void say(const char *fmt, ...)
{
	va_list args;
	size_t len = strlen(step_text);

	va_start(args, fmt);
	vsnprintf(step_text + len, sizeof(step_text) - len, fmt, args);
	va_end(args);
}

static void same_stat(const struct sys_stat *k, const struct sys_stat *m)
{
	same("mode", k->mode, m->mode);
	if (S_ISDIR(k->mode))
		return; /* size and links of a directory differ */
	same("size", (long long)k->size, (long long)m->size);
	same("nlink", k->nlink, m->nlink);
}

/* Makes one call on both sides and compares the results. */
#define BOTH(call, slot, ...)                                                  \
	same("result",                                                         \
	    SYS(kernel.sys, call, kernel.slots[slot], ##__VA_ARGS__),          \
	    SYS(model.sys, call, model.slots[slot], ##__VA_ARGS__))

/* ---- steps ---- */

static void step_open(void)
{
	int slot = pick_free_slot(), dir = pick_dir(), flags = pick_flags();
	mode_t mode = pick_mode(false);
	char path[1024];
	int k, m;

	pick_path(path);
	say("open(%d, \"%s\", %#o, %#o) to %d", dir, path, (unsigned)flags,
	    (unsigned)mode, slot);
	k = SYS(kernel.sys, openat, kernel.slots[dir], path, flags, mode);
	m = SYS(model.sys, openat, model.slots[dir], path, flags, mode);
	same("result", k < 0 ? k : 0, m < 0 ? m : 0);
	kernel.slots[slot] = k < 0 ? -1 : k;
	model.slots[slot] = m < 0 ? -1 : m;
}

static void step_close(void)
{
	int slot = pick_slot();

	say("close(%d)", slot);
	if (slot == 0)
		return;
	BOTH(close, slot);
	kernel.slots[slot] = model.slots[slot] = -1;
}

static void step_read(void)
{
	char k[12000], m[12000];
	size_t len = pick(sizeof(k));
	off_t off = pick(20000);
	int slot = pick_slot();
	ssize_t r;

	say("pread(%d, %zu, %lld)", slot, len, (long long)off);
	r = SYS(kernel.sys, pread, kernel.slots[slot], k, len, off);
	same("result", r,
	    SYS(model.sys, pread, model.slots[slot], m, len, off));
	if (r > 0)
		same("content", 0, memcmp(k, m, (size_t)r));
}

static void step_write(void)
{
	char buf[9000];
	size_t len = pick(3) == 0 ? pick(sizeof(buf)) : pick(60);
	off_t off = pick(2) == 0 ? pick(12000) : pick(100);
	int slot = pick_slot();

	memset(buf, 'A' + (int)pick(26), len);
	if (pick(2) == 0) {
		say("write_all(%d, %zu)", slot, len);
		BOTH(write_all, slot, buf, len);
	} else {
		say("pwrite(%d, %zu, %lld)", slot, len, (long long)off);
		BOTH(pwrite, slot, buf, len, off);
	}
}

static void step_truncate(void)
{
	int slot = pick_slot();
	off_t size = pick(2) == 0 ? (off_t)pick(12000) : (off_t)pick(10) - 1;

	say("ftruncate(%d, %lld)", slot, (long long)size);
	BOTH(ftruncate, slot, size);
}

static void step_chmod(void)
{
	int slot = pick_slot();
	mode_t mode = pick_mode(true);

	say("fchmod(%d, %#o)", slot, (unsigned)mode);
	BOTH(fchmod, slot, mode);
}

static void step_stat(void)
{
	bool is_fd = pick(3) == 0;
	int slot = is_fd ? pick_slot() : pick_dir(), r, m;
	int k_fd = kernel.slots[slot], m_fd = model.slots[slot];
	struct sys_stat k, st;
	char path[1024];

	pick_path(path);
	if (is_fd) {
		say("fstat(%d)", slot);
		r = SYS(kernel.sys, fstat, k_fd, &k);
		m = SYS(model.sys, fstat, m_fd, &st);
	} else {
		say("lstatat(%d, \"%s\")", slot, path);
		r = SYS(kernel.sys, lstatat, k_fd, path, &k);
		m = SYS(model.sys, lstatat, m_fd, path, &st);
	}
	same("result", r, m);
	if (r == 0)
		same_stat(&k, &st);
}

static void step_two_names(void)
{
	int from = pick_dir(), to = pick_dir();
	char old[1024], new[1024];
	int k, m;

	pick_path(old);
	pick_path(new);
	/* The order of two errors does not matter. */
	if (strlen(old) > 200 || strlen(new) > 200)
		return;
	if (pick(3) == 0) {
		say("linkat(%d, \"%s\", %d, \"%s\")", from, old, to, new);
		k = SYS(kernel.sys, linkat, kernel.slots[from], old,
		    kernel.slots[to], new);
		m = SYS(model.sys, linkat, model.slots[from], old,
		    model.slots[to], new);
	} else {
		say("renameat(%d, \"%s\", %d, \"%s\")", from, old, to, new);
		k = SYS(kernel.sys, renameat, kernel.slots[from], old,
		    kernel.slots[to], new);
		m = SYS(model.sys, renameat, model.slots[from], old,
		    model.slots[to], new);
	}
	same("result", k, m);
}

static void step_one_name(void)
{
	int dir = pick_dir();
	mode_t mode = pick_mode(true);
	unsigned way = pick(4);
	char path[1024];

	pick_path(path);
	if (way == 0) {
		say("unlinkat(%d, \"%s\")", dir, path);
		BOTH(unlinkat, dir, path);
	} else if (way == 1) {
		say("rmdirat(%d, \"%s\")", dir, path);
		BOTH(rmdirat, dir, path);
	} else {
		say("mkdirat(%d, \"%s\", %#o)", dir, path, (unsigned)mode);
		BOTH(mkdirat, dir, path, mode);
	}
}

static void step_readlink(void)
{
	char path[1024], k[64], m[64];
	int dir = pick_dir();
	/* musl takes 0 for 1. */
	size_t size = 1 + pick(sizeof(k));
	ssize_t r;

	pick_path(path);
	say("readlinkat(%d, \"%s\", %zu)", dir, path, size);
	r = SYS(kernel.sys, readlinkat, kernel.slots[dir], path, k, size);
	same("result", r,
	    SYS(model.sys, readlinkat, model.slots[dir], path, m, size));
	if (r > 0)
		same("target", 0, memcmp(k, m, (size_t)r));
}

/* struct sys makes no symbolic links, so the test makes them directly. */
static void step_symlink(void)
{
	static const char *const targets[] = { "a", "b/c", "./b", "c/", "a/..",
		"." };
	static const char *const names[] = { "a", "b", "c", "d.lock" };
	const char *target = targets[pick(6)], *name = names[pick(4)];
	char path[64];

	if (pick(4) != 0)
		return;
	snprintf(path, sizeof(path), "/w/" WORK "/%s", name);
	if (memfs_exists(fs, path))
		return;
	memfs_symlink(fs, target, path);
	say("symlink(\"%s\", \"%s\")", target, name);
	same("result", symlinkat(target, kernel.slots[0], name), 0);
}

static void step_small(void)
{
	unsigned way = pick(40);
	int slot = pick_slot();

	if (way < 20) {
		say("flock_try(%d)", slot);
		BOTH(flock_try, slot);
	} else if (way < 38) {
		say("futimens_now(%d)", slot);
		BOTH(futimens_now, slot);
	} else if (way == 38) {
		say("fsync(%d)", slot);
		BOTH(fsync, slot);
	} else {
		say("fdatasync(%d)", slot);
		BOTH(fdatasync, slot);
	}
}

static void step_path(void)
{
	char k[PATH_MAX], m[PATH_MAX];
	int slot = pick_slot(), r;
	struct sys_stat st;

	SYS(model.sys, fstat, model.slots[slot], &st);
	if (!S_ISDIR(st.mode))
		return;
	say("fd_path(%d)", slot);
	r = SYS(kernel.sys, fd_path, kernel.slots[slot], k, sizeof(k));
	same("result", r,
	    SYS(model.sys, fd_path, model.slots[slot], m, sizeof(m)));
	if (r == 0)
		ck_assert_str_eq(k + strlen(kernel.base),
		    m + strlen(model.base));
}

static void step_list(void)
{
	char *k[32], *m[32], path[1024];
	int i, r, dir = pick_dir();

	pick_path(path);
	say("list(%d, \"%s\")", dir, path);
	r = systree_list(kernel.sys, kernel.slots[dir], path, k, 32);
	same("result", r,
	    systree_list(model.sys, model.slots[dir], path, m, 32));
	for (i = 0; i < r; i++) {
		ck_assert_msg(strcmp(k[i], m[i]) == 0, "%s: \"%s\", \"%s\"",
		    step_text, k[i], m[i]);
		free(k[i]);
		free(m[i]);
	}
}

static void same_trees(void)
{
	char *k = systree(kernel.sys, kernel.base);
	char *m = systree(model.sys, model.base);

	ck_assert_msg(strcmp(k, m) == 0,
	    "%s\nkernel:\n%.3000s\nmemfs:\n%.3000s", step_text, k, m);
	free(k);
	free(m);
}

static void (*const steps[])(void) = { step_open, step_open, step_open,
	step_one_name, step_one_name, step_one_name, step_two_names,
	step_two_names, step_two_names, step_write, step_write, step_write,
	step_read, step_read, step_stat, step_stat, step_truncate, step_chmod,
	step_close, step_readlink, step_symlink, step_small, step_small,
	step_path, step_list };

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(random_script, .times = SEEDS)
{
	int step;

	rng = 0x9e3779b97f4a7c15ULL * (uint64_t)(_i + 1);
	for (step = 0; step < STEPS; step++) {
		snprintf(step_text, sizeof(step_text), "seed %d step %d: ", _i,
		    step);
		steps[pick(sizeof(steps) / sizeof(steps[0]))]();
		if (step % 500 == 499)
			same_trees();
	}
}
