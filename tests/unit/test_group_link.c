/*
 * Proves that a node says once a second what it has applied, also if its socket
 * is always full: nobody would count the rows of a busy leader.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/time.h"
#include "daemon/group/group_internal.h"
#include "daemon/store/deferred/deferred.h"
#include "tests/lib/suite.h"

/* Much more than the socket takes. */
#define LARGE (512 * 1024)

static uint8_t large[LARGE];

/* A frame waits at all times. */
static void keep_busy(struct group *g)
{
	const struct group_row row = { .path = { (const uint8_t *)"r", 1 },
		.objects = { large, LARGE } };
	const struct group_frame f = { .type = GROUP_BATCH,
		.batch = { .epoch = 1, .rows = &row, .nr = 1 } };

	mutex_lock(&g->mutex);
	while (g->output == NULL || g->output->next == NULL)
		ck_assert_int_eq(group_send(g, &f), 0);
	mutex_unlock(&g->mutex);
}

/* Takes a whole frame from FD. Its type. */
static uint8_t take_frame(int fd)
{
	static uint8_t rest[2 * LARGE];
	uint8_t head[5];
	uint32_t len;

	ck_assert_int_eq(recv(fd, head, sizeof(head), MSG_WAITALL),
	    sizeof(head));
	len = (uint32_t)head[0] | (uint32_t)head[1] << 8 |
	    (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
	ck_assert_uint_lt(len, sizeof(rest));
	if (len > 1)
		ck_assert_int_eq(recv(fd, rest, len - 1, MSG_WAITALL), len - 1);
	return head[4];
}

CASE(.seconds = 60);

TEST(a_busy_node_says_what_is_applied)
{
	struct store_parts host = { .sys = &sys_kernel };
	struct group *g = calloc(1, sizeof(*g));
	int64_t until = time_now_ns(CLOCK_MONOTONIC) + 5 * NS_PER_S;
	unsigned nr_told = 0;
	int fds[2];

	ck_assert_ptr_nonnull(g);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	host.deferred = deferred_new(&host);
	g->base.host = &host;
	g->fd = fds[0];
	g->output_end = &g->output;
	mutex_init(&g->mutex, MUTEX_JOBS);
	time_cond_init(&g->has_output);
	pthread_cond_init(&g->changed, NULL);
	keep_busy(g);
	ck_assert_int_eq(
	    pthread_create(&g->send_thread, NULL, group_send_main, g), 0);
	while (nr_told < 3 && time_now_ns(CLOCK_MONOTONIC) < until) {
		keep_busy(g);
		nr_told += take_frame(fds[1]) == GROUP_APPLIED;
		usleep(20000);
	}
	ck_assert_uint_eq(nr_told, 3);
	mutex_lock(&g->mutex);
	g->has_ended = true;
	pthread_cond_signal(&g->has_output);
	mutex_unlock(&g->mutex);
	close(fds[1]);
	pthread_join(g->send_thread, NULL);
	close(fds[0]);
	pthread_cond_destroy(&g->changed);
	pthread_cond_destroy(&g->has_output);
	mutex_destroy(&g->mutex);
	deferred_free(host.deferred);
	free(g);
}
