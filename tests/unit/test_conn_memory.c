/*
 * Proves that half-sent requests take at most one and a half times the counted
 * bytes of memory, over a socketpair: many tiny updates, long names, half a
 * packet, and waiting requests.
 *
 * The files that allocate for a request are compiled into this program a second
 * time, over an allocator that counts the usable bytes of every block.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t allocated;

static void *counting_malloc(size_t size);
static void *counting_calloc(size_t nr, size_t size);
static void *counting_realloc(void *p, size_t size);
static void counting_free(void *p);
static void *counting_mmap(void *at, size_t size, int prot, int flags, int fd,
    off_t offset);
static void *counting_mremap(void *p, size_t before, size_t size, int flags);
static int counting_munmap(void *p, size_t size);

#define malloc  counting_malloc
#define calloc  counting_calloc
#define realloc counting_realloc
#define free    counting_free
#define mmap    counting_mmap
#define mremap  counting_mremap
#define munmap  counting_munmap
#include "daemon/server/conn.c"
#include "proto/arena.c"
#include "proto/request.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef mmap
#undef mremap
#undef munmap

#include "tests/lib/conn_rig.h"
#include "tests/lib/suite.h"

static void *counting_malloc(size_t size)
{
	void *p = malloc(size);

	allocated += malloc_usable_size(p);
	return p;
}

static void *counting_calloc(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	allocated += malloc_usable_size(p);
	return p;
}

static void *counting_realloc(void *p, size_t size)
{
	size_t before = malloc_usable_size(p);

	p = realloc(p, size);
	if (p != NULL)
		allocated += malloc_usable_size(p) - before;
	return p;
}

static void counting_free(void *p)
{
	allocated -= malloc_usable_size(p);
	free(p);
}

static void *counting_mmap(void *at, size_t size, int prot, int flags, int fd,
    off_t offset)
{
	allocated += size;
	return mmap(at, size, prot, flags, fd, offset);
}

static void *counting_mremap(void *p, size_t before, size_t size, int flags)
{
	allocated += size - before;
	return mremap(p, before, size, flags);
}

static int counting_munmap(void *p, size_t size)
{
	allocated -= size;
	return munmap(p, size);
}

/* Begins a transaction with every byte counted; returns the number of bytes
 * allocated before. */
static size_t begin_counted(void)
{
	size_t before;

	/* The even share of the memory is zero. */
	conn_rig.host.connections_max = SIZE_MAX;
	before = allocated;
	/* Up to the delimiter. */
	conn_rig_tell(conn_rig_transaction,
	    (size_t)(strstr(conn_rig_transaction, "0044create") -
		conn_rig_transaction));
	return before;
}

static void expect_counted(size_t before)
{
	size_t counted = conn_rig.host.decoding_bytes;

	ck_assert_uint_le(allocated - before, counted + counted / 2);
	ck_assert_uint_le(counted, allocated - before);
}

/* Sends NR updates of LEN bytes without the final flush. */
static void half_send(size_t nr, const char *update, size_t len)
{
	size_t before = begin_counted(), i, per_turn = 32000 / len;
	char *many = malloc(per_turn * len);

	for (i = 0; i < per_turn; i++)
		memcpy(many + i * len, update, len);
	expect_counted(before);
	for (i = 0; i < nr; i += per_turn) {
		conn_rig_tell(many, per_turn * len);
		expect_counted(before);
	}
	free(many);
	ck_assert_uint_gt(allocated - before, nr * sizeof(struct refd_update));
	shutdown(conn_rig.client, SHUT_WR);
	ck_assert(!conn_rig_turn());
	ck_assert_uint_eq(conn_rig.host.decoding_bytes, 0);
}

CASE(.setup = conn_rig_setup, .teardown = conn_rig_teardown);

TEST(many_tiny_updates_are_counted_as_allocated)
{
	static const char update[] = "000ddelete a";

	half_send(50000, update, sizeof(update));
}

TEST(long_names_are_counted_as_allocated)
{
	char update[4 + 7 + REFD_REFNAME_MAX + 1 + 1];

	memset(update, 'x', sizeof(update));
	snprintf(update, sizeof(update), "%04zxdelete ", sizeof(update) - 1);
	update[4 + 7] = 'x';
	update[sizeof(update) - 2] = '\0';
	half_send(4000, update, sizeof(update) - 1);
}

/* An incomplete packet waits in encoded form. */
TEST(half_a_packet_is_counted_as_allocated)
{
	size_t before = begin_counted();
	char *large = malloc(REFD_PACKET_MAX);

	memset(large, 'x', REFD_PACKET_MAX);
	memcpy(large, "fff0", 4);
	conn_rig_tell(large, REFD_PACKET_MAX - 1);
	ck_assert_uint_gt(allocated - before, REFD_PACKET_MAX);
	expect_counted(before);
	free(large);
}

/* Requests behind the requests in flight wait in encoded form. */
TEST(requests_that_wait_are_counted_as_allocated)
{
	static char pings[4000 * 17 + 1];
	size_t before, len = 0;
	uint32_t id;

	for (id = 1; id <= 4000; id++)
		len += (size_t)snprintf(pings + len, sizeof(pings) - len,
		    "000dping %u0000", 1000 + id);
	conn_rig.host.connections_max = SIZE_MAX;
	before = allocated;
	conn_rig_tell(pings, len);
	ck_assert_uint_eq(conn_rig.nr_asked, REFD_REQUESTS_MAX);
	ck_assert_uint_gt(conn_rig.conn->in_len, len / 2);
	ck_assert_uint_le(conn_rig.conn->in_len, conn_rig.host.decoding_bytes);
	ck_assert_uint_gt(allocated, before + len / 2);
}
