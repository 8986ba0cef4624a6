#include "daemon/base/flushing.h"

#include <stdatomic.h>
#include <stddef.h>

#include "daemon/base/sys.h"

/* For all threads together. */
#define SLOTS 64

static struct {
	atomic_int_least64_t since_ns; /* 0: free */
	atomic_int fd;
} slots[SLOTS];

int flushing_begin(int fd)
{
	int64_t now_ns = SYS(&sys_kernel, now_mono);
	int i;

	for (i = 0; i < SLOTS; i++) {
		int_least64_t is_free = 0;

		if (atomic_compare_exchange_strong(&slots[i].since_ns, &is_free,
			now_ns)) {
			atomic_store(&slots[i].fd, fd);
			return i;
		}
	}
	return SLOTS;
}

void flushing_end(int slot)
{
	if (slot < SLOTS)
		atomic_store(&slots[slot].since_ns, 0);
}

bool flushing_oldest(struct flushing *oldest)
{
	int64_t since_ns;
	size_t i;

	oldest->since_ns = INT64_MAX;
	for (i = 0; i < SLOTS; i++) {
		since_ns = atomic_load(&slots[i].since_ns);
		if (since_ns == 0 || since_ns >= oldest->since_ns)
			continue;
		oldest->since_ns = since_ns;
		oldest->fd = atomic_load(&slots[i].fd);
	}
	return oldest->since_ns != INT64_MAX;
}
