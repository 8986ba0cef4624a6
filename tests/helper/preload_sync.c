/*
 * Control of every flush of a program, for tests that kill the program or cut
 * its power. Loaded by LD_PRELOAD. Before fsync, fdatasync, syncfs and
 * sync_file_range, the code reads a page of memory that it shares with the test
 * (the file REFD_SYNC_PAGE). The call then waits, fails, never returns, or does
 * nothing and succeeds.
 *
 * All members are 32-bit numbers of this machine, in the order of struct page.
 * A call counts if its kind is in KINDS. The Nth call makes CALLS N.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum kind {
	FDATASYNC = 1,
	FSYNC = 2,
	SYNCFS = 4,
	SYNC_RANGE = 8,
};

struct page {
	uint32_t kinds;    /* kinds for CALLS, HOLD_AT and FAIL_AT */
	uint32_t calls;    /* set by this library */
	uint32_t hold_at;  /* the call that never returns; 0: none */
	uint32_t held;     /* set here as soon as a call is held */
	uint32_t fail_at;  /* the call that does nothing and fails with EIO; 0:
			      none */
	uint32_t drop;     /* kinds that do nothing and succeed */
	uint32_t delay_us; /* before every call */
};

static struct page *page;

__attribute__((constructor)) static void open_page(void)
{
	const char *path = getenv("REFD_SYNC_PAGE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    0);
	close(fd);
	if (at != MAP_FAILED)
		page = at;
}

static void *find(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	if (!next)
		abort();
	return next;
}

static void delay(uint32_t us)
{
	struct timespec left = { us / 1000000, us % 1000000 * 1000L };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

enum verdict {
	GO_ON,
	FAIL,
	DROP,
};

static enum verdict before(enum kind kind)
{
	uint32_t nr;

	if (!page)
		return GO_ON;
	if (page->delay_us)
		delay(page->delay_us);
	if (page->drop & kind)
		return DROP;
	if (!(page->kinds & kind))
		return GO_ON;
	nr = __atomic_add_fetch(&page->calls, 1, __ATOMIC_SEQ_CST);
	if (nr == page->hold_at) {
		__atomic_store_n(&page->held, 1, __ATOMIC_SEQ_CST);
		for (;;)
			pause();
	}
	if (nr != page->fail_at)
		return GO_ON;
	errno = EIO;
	return FAIL;
}

static int sync_by(enum kind kind, const char *name, int fd)
{
	int (*next)(int) = find(name);

	switch (before(kind)) {
	case DROP:
		return 0;
	case FAIL:
		return -1;
	case GO_ON:
		break;
	}
	return next(fd);
}

int fsync(int fd)
{
	return sync_by(FSYNC, "fsync", fd);
}

int fdatasync(int fd)
{
	return sync_by(FDATASYNC, "fdatasync", fd);
}

int syncfs(int fd)
{
	return sync_by(SYNCFS, "syncfs", fd);
}

int sync_file_range(int fd, off64_t offset, off64_t len, unsigned flags)
{
	int (*next)(int, off64_t, off64_t, unsigned) = find("sync_file_range");

	switch (before(SYNC_RANGE)) {
	case DROP:
		return 0;
	case FAIL:
		return -1;
	case GO_ON:
		break;
	}
	return next(fd, offset, len, flags);
}
