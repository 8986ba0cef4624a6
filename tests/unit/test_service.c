/*
 * Proves which messages the service manager gets: ready, status, reloading and
 * stopping, and none about a reload while the daemon recovers or stops.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/service/notify.h"
#include "daemon/service/service.h"
#include "tests/lib/suite.h"

static struct service_facts told_facts;
static struct service_link link_up;
static struct event_base *base;
static int manager_fd, ready_fds[2];

static void tell_facts(void *arg, struct service_facts *facts)
{
	(void)arg;
	*facts = told_facts;
}

static void setup(void)
{
	struct service_config cfg = { .sys = &sys_kernel,
		.state_dir = "/nowhere",
		.facts = tell_facts };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char name[64];
	size_t len;

	snprintf(name, sizeof(name), "@refd-service-%d", (int)getpid());
	len = strlen(name);
	memcpy(addr.sun_path, name, len);
	addr.sun_path[0] = '\0';
	manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(manager_fd, (struct sockaddr *)&addr,
			     (socklen_t)(sizeof(addr.sun_family) + len)),
	    0);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_connect();
	ck_assert_int_eq(pipe(ready_fds), 0);
	cfg.ready_fd = ready_fds[1];
	base = event_base_new();
	told_facts = (struct service_facts){ 0 };
	service_init(&link_up, &cfg, base);
}

static void teardown(void)
{
	service_done(&link_up);
	event_base_free(base);
	notify_disconnect();
	close(manager_fd);
	close(ready_fds[0]);
	unsetenv("NOTIFY_SOCKET");
}

/* Expects TEXT as the next message, or as its beginning if TEXT ends with "=".
 * NULL: no message is left. */
static void expect_message(const char *text)
{
	char got[1024] = "";
	ssize_t n = recv(manager_fd, got, sizeof(got) - 1, 0);

	if (text == NULL) {
		ck_assert_int_lt(n, 0);
		return;
	}
	if (text[strlen(text) - 1] == '=')
		got[strlen(text)] = '\0';
	ck_assert_str_eq(got, text);
}

static void begin_serving(void)
{
	told_facts = (struct service_facts){ .is_serving = true,
		.transactions = 7,
		.in_work = 2,
		.connections = 3 };
	service_ready(&link_up);
	expect_message("READY=1\nSTATUS=serving: 7 transactions, 2 in work, "
		       "3 connections");
}

CASE(.setup = setup, .teardown = teardown);

TEST(a_daemon_that_serves_says_so_once)
{
	char line[16] = "";

	begin_serving();
	ck_assert_int_eq(read(ready_fds[0], line, sizeof(line) - 1), 6);
	ck_assert_str_eq(line, "ready\n");
	/* The end of the file: the descriptor is closed. */
	ck_assert_int_eq(read(ready_fds[0], line, sizeof(line)), 0);
}

TEST(a_reload_begins_and_ends)
{
	begin_serving();
	service_reloading(&link_up);
	expect_message("RELOADING=1\nMONOTONIC_USEC=");
	service_reloaded(&link_up);
	expect_message("READY=1\nSTATUS=serving: 7 transactions, 2 in work, "
		       "3 connections");
}

TEST(a_reload_during_recovery_is_not_told)
{
	service_reloading(&link_up);
	service_reloaded(&link_up);
	expect_message(NULL);
}

TEST(a_reload_that_ends_while_stopping_is_not_told)
{
	begin_serving();
	told_facts.is_serving = false;
	service_stopping(&link_up);
	expect_message("STOPPING=1\nSTATUS=finishing 2 transactions");
	service_reloaded(&link_up);
	expect_message(NULL);
}

TEST(without_a_store_there_is_no_stall)
{
	service_look(&link_up);
	ck_assert(!stall_is_on(&link_up.stall));
	expect_message(NULL);
}
