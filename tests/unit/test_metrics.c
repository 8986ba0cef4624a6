/*
 * Proves that both forms of the metrics have the same values. The HTTP endpoint
 * answers only GET and HEAD of three paths, even without memory. Silent
 * connections keep nobody out, neither of the same address nor of another one,
 * and many who ask at once get one text.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/metrics/metrics.h"
#include "daemon/metrics/metrics_http.h"
#include "tests/lib/suite.h"

static const char *value_of(const struct key_values *kv, const char *key)
{
	size_t i;

	for (i = 0; i < kv->nr; i++)
		if (strcmp(kv->list[i].key, key) == 0)
			return kv->list[i].value;
	return NULL;
}

static void expect_value(const struct key_values *kv, const char *key,
    const char *value)
{
	const char *got = value_of(kv, key);

	ck_assert_msg(got != NULL, "there is no %s", key);
	ck_assert_str_eq(got, value);
}

static struct metrics *sample(void)
{
	struct metrics *m = calloc(1, sizeof(*m));

	ck_assert_ptr_nonnull(m);
	m->now_ns = INT64_C(60000000000);
	m->connections = 5;
	m->paused = 1;
	m->store.last_lsn = 12;
	m->store.forgotten_lsn = 10;
	m->store.checkpoint_ns = INT64_C(57000000000);
	m->store.checkpoint_took_ns = 1500000;
	m->stage_stuck[STORE_STAGE_COMMIT] = 2;
	m->measure.refs[REFD_OK] = 8;
	m->measure.refs[REFD_STALE] = 1;
	histogram_add_ns(&m->turn, 3000);
	metrics_complete(m);
	return m;
}

CASE(.name = "forms");

TEST(both_forms_have_the_same_values)
{
	struct key_values keys = { 0 }, text = { 0 };
	struct metrics *m = sample();

	metrics_key_values(m, &keys);
	metrics_text(m, &text);
	free(m);
	ck_assert(!keys.failed && !text.failed);
	expect_value(&keys, "connections", "5");
	expect_value(&text, "refd_connections",
	    "# HELP refd_connections Clients that are connected.\n"
	    "# TYPE refd_connections gauge\n"
	    "refd_connections 5\n");
	expect_value(&keys, "paused", "1");
	expect_value(&keys, "to_replay", "2");
	expect_value(&keys, "checkpoint_age_s", "3");
	expect_value(&keys, "checkpoint_took_us", "1500");
	ck_assert_ptr_nonnull(
	    strstr(value_of(&text, "refd_checkpoint_last_seconds"),
		"\nrefd_checkpoint_last_seconds 0.001500\n"));
	expect_value(&keys, "turn_us_count", "1");
	ck_assert_ptr_nonnull(strstr(value_of(&text, "refd_loop_turn_seconds"),
	    "_bucket{le=\"+Inf\"} 1\n"));
	expect_value(&keys, "stage_stuck_commit", "2");
	/* Only statuses that occurred. refs_ok is a separate metric. */
	expect_value(&keys, "refs_stale", "1");
	expect_value(&keys, "refs_ok", "0");
	ck_assert_ptr_null(value_of(&keys, "refs_io"));
	key_values_done(&keys);
	key_values_done(&text);
}

TEST(each_metric_has_its_own_name)
{
	struct key_values text = { 0 };
	struct metrics *m = sample();
	size_t i, j;

	metrics_text(m, &text);
	free(m);
	for (i = 0; i < text.nr; i++)
		for (j = 0; j < i; j++)
			ck_assert_str_ne(text.list[i].key, text.list[j].key);
	key_values_done(&text);
}

TEST(no_memory_is_a_failure)
{
	struct key_values kv = { 0 };

	metrics_key_values(NULL, &kv);
	ck_assert(kv.failed);
	key_values_done(&kv);
	metrics_text(NULL, &kv);
	ck_assert(kv.failed);
	key_values_done(&kv);
}

/* ---- HTTP ---- */

static bool has_memory, takes_writes, serves_reads;
static unsigned nr_collected;

static struct metrics *collect(void *arg)
{
	struct metrics *m = has_memory ? sample() : NULL;

	(void)arg;
	nr_collected++;
	if (m != NULL) {
		m->role = "role";
		m->takes_writes = takes_writes;
		m->serves_reads = serves_reads;
	}
	return m;
}

static struct event_base *base;
static struct metrics_http *http;

static void open_http(void)
{
	base = event_base_new();
	http = metrics_http_new(base, collect, NULL);
}

static void close_http(void)
{
	metrics_http_free(http);
	event_base_free(base);
}

/* A new connection. */
static int join(void)
{
	int fds[2];

	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	metrics_http_accept(http, fds[0]);
	return fds[1];
}

static void say_to(int fd, const char *request)
{
	ck_assert_int_eq(write(fd, request, strlen(request)),
	    (ssize_t)strlen(request));
}

/* All that comes until the end of the connection; to be freed. Closes FD. */
static char *answer_of(int fd)
{
	char *answer = calloc(1, 1 << 20);
	size_t len = 0;
	ssize_t n;

	do {
		event_base_loop(base, EVLOOP_NONBLOCK);
		n = read(fd, answer + len, (1 << 20) - 1 - len);
		if (n > 0)
			len += (size_t)n;
	} while (n != 0);
	close(fd);
	return answer;
}

/* The answer to REQUEST; to be freed. */
static char *ask(const char *request)
{
	char *answer;
	int fd;

	open_http();
	fd = join();
	say_to(fd, request);
	answer = answer_of(fd);
	close_http();
	return answer;
}

static void expect_answer(const char *request, const char *status, bool body)
{
	char *answer = ask(request), *end = strstr(answer, "\r\n\r\n");

	ck_assert_int_eq(strncmp(answer, status, strlen(status)), 0);
	ck_assert_ptr_nonnull(end);
	ck_assert((strstr(end, "\nrefd_connections 5\n") != NULL) == body);
	free(answer);
}

static void expect_role(const char *request, const char *status)
{
	char *answer, *end;

	has_memory = true;
	answer = ask(request);
	end = strstr(answer, "\r\n\r\n");
	ck_assert_int_eq(strncmp(answer, status, strlen(status)), 0);
	ck_assert_ptr_nonnull(end);
	ck_assert_str_eq(end + 4, request[0] == 'H' ? "" : "role\n");
	ck_assert_ptr_nonnull(strstr(answer, "Content-Length: 5\r\n"));
	free(answer);
}

CASE(.name = "http");

TEST(roles_are_a_status)
{
	takes_writes = serves_reads = false;
	expect_role("GET /leader HTTP/1.0\r\n\r\n", "HTTP/1.1 503 ");
	expect_role("GET /follower HTTP/1.0\r\n\r\n", "HTTP/1.1 503 ");
	serves_reads = true;
	expect_role("GET /leader HTTP/1.0\r\n\r\n", "HTTP/1.1 503 ");
	expect_role("HEAD /follower HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ");
	takes_writes = true;
	expect_role("GET /leader?a HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ");
	expect_role("HEAD /leader HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ");
	takes_writes = serves_reads = false;
}

TEST(only_the_metrics_are_served)
{
	has_memory = true;
	expect_answer("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", true);
	expect_answer("GET /metrics?x=y HTTP/1.1\r\nHost: a\r\n\r\n",
	    "HTTP/1.1 200 ", true);
	expect_answer("HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", false);
	expect_answer("GET /metricsx HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", false);
	expect_answer("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", false);
	expect_answer("POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", false);
	expect_answer("nonsense\r\n\r\n", "HTTP/1.1 405 ", false);
}

TEST(without_memory_the_metrics_are_unavailable)
{
	has_memory = false;
	expect_answer("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 503 ", false);
	expect_answer("GET /leader HTTP/1.1\r\n\r\n", "HTTP/1.1 503 ", false);
}

/* ---- many who ask ---- */

#define MANY 300

static void expect_leader(int fd)
{
	char *answer = answer_of(fd);

	ck_assert_msg(strncmp(answer, "HTTP/1.1 200 ", 13) == 0, "got: %s",
	    answer);
	free(answer);
}

TEST(silent_connections_silence_nobody)
{
	int silent[MANY], fd, i;

	has_memory = takes_writes = true;
	open_http();
	for (i = 0; i < MANY; i++)
		silent[i] = join();
	fd = join();
	say_to(fd, "GET /leader HTTP/1.0\r\n\r\n");
	expect_leader(fd);
	for (i = 0; i < MANY; i++)
		close(silent[i]);
	close_http();
	takes_writes = false;
}

/* From 127.0.0.HOST. */
static int join_from(int listener, unsigned host)
{
	struct sockaddr_in to,
	    from = { .sin_family = AF_INET,
		    .sin_addr.s_addr = htonl(0x7f000000 + host) };
	socklen_t size = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&to, &size),
	    0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, size), 0);
	metrics_http_accept(http,
	    accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	return fd;
}

TEST(the_largest_address_loses_its_oldest)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int silent[MANY], fd, i;
	char byte;

	has_memory = takes_writes = true;
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&any, sizeof(any)),
	    0);
	ck_assert_int_eq(listen(listener, 1), 0);
	open_http();
	fd = join_from(listener, 1);
	for (i = 0; i < MANY; i++)
		silent[i] = join_from(listener, 2);
	say_to(fd, "GET /leader HTTP/1.0\r\n\r\n");
	expect_leader(fd);
	ck_assert_int_eq(recv(silent[0], &byte, 1, 0), 0);
	ck_assert_int_eq(recv(silent[MANY - 1], &byte, 1, MSG_DONTWAIT), -1);
	for (i = 0; i < MANY; i++)
		close(silent[i]);
	close(listener);
	close_http();
	takes_writes = false;
}

TEST(many_at_once_get_one_text)
{
	int fds[3];
	char *answers[3];
	int i;

	has_memory = true;
	open_http();
	nr_collected = 0;
	for (i = 0; i < 3; i++) {
		fds[i] = join();
		say_to(fds[i], "GET /metrics HTTP/1.0\r\n\r\n");
	}
	for (i = 0; i < 3; i++)
		answers[i] = answer_of(fds[i]);
	ck_assert_uint_eq(nr_collected, 1);
	ck_assert_str_eq(answers[0], answers[1]);
	ck_assert_str_eq(answers[0], answers[2]);
	fds[0] = join();
	say_to(fds[0], "GET /metrics HTTP/1.0\r\n\r\n");
	free(answer_of(fds[0]));
	ck_assert_uint_eq(nr_collected, 2);
	for (i = 0; i < 3; i++)
		free(answers[i]);
	close_http();
}
