/*
 * Proves that a fetch from a former leader, which never answers, does not keep
 * the repository from the next leader. Fetches of the daemon, as many as there
 * are, leave a thread to other nodes.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/group/service/fetch_pool.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define THREADS 4 /* of the pool */

static char *roots[1], *dir, *source;
static struct refd_oid oid;
static struct fetch_pool *pool;
static int wake;
static char refd[] = "true"; /* in place of refd enable */

static void setup(void)
{
	char *path, *hex;

	tmp_setup();
	roots[0] = xasprintf("%s/dst", tmp_root);
	dir = xasprintf("%s/git", tmp_root);
	source = xasprintf("%s/src", tmp_root);
	tmp_put("bin/ssh", "#!/bin/sh\nexec sleep 1000\n");
	tmp_run("chmod +x bin/ssh && mkdir dst && git init -q --bare src/r");
	hex = tmp_output("git -C src/r hash-object -w --stdin </dev/null");
	ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1, &oid), 0);
	free(hex);
	path = xasprintf("%s/bin:%s", tmp_root, getenv("PATH"));
	setenv("PATH", path, 1);
	free(path);
	fetch_dirs_make(dir);
	wake = eventfd(0, EFD_CLOEXEC);
	pool = fetch_pool_start(
	    &(struct fetch_site){ roots, 1, dir, { refd, NULL } }, wake);
}

static void teardown(void)
{
	fetch_pool_end(pool);
	close(wake);
	free(roots[0]);
	free(dir);
	free(source);
	tmp_teardown();
}

/* A job with this NUMBER and EPOCH, for the repository NAME, a letter, of the
 * daemon or of another node. */
static void add_of(bool is_of_daemon, uint64_t number, char name,
    const char *from, uint64_t epoch)
{
	const struct group_bytes path = { (const uint8_t *)"r", 1 };
	struct fetch_job *job = fetch_job_new(&path, &oid, 1, NULL, 0);

	job->path[0] = name;
	job->uuid[0] = (uint8_t)name;
	job->uuid[6] = 0x86;
	job->source = from;
	job->format = REFD_FORMAT_SHA1;
	job->number = number;
	job->epoch = epoch;
	job->is_new = true;
	job->id[0] = !is_of_daemon;
	fetch_pool_add(pool, job);
}

static void add(uint64_t number, char name, const char *from, uint64_t epoch)
{
	add_of(false, number, name, from, epoch);
}

/* The number of the next job that is done; 0: none yet. */
static uint64_t done(int wait_ms, bool is_held)
{
	struct pollfd fd = { .fd = wake, .events = POLLIN };
	struct fetch_job *job;
	uint64_t number = 0, count;

	job = fetch_pool_done(pool);
	while (!job && poll(&fd, 1, wait_ms) > 0) {
		ck_assert_int_eq(read(wake, &count, sizeof(count)),
		    sizeof(count));
		job = fetch_pool_done(pool);
	}
	if (job) {
		number = job->number;
		ck_assert_msg(job->is_held == is_held, "job %d: %s",
		    (int)number, job->why.data ? job->why.data : "");
	}
	fetch_job_free(job);
	return number;
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(a_later_epoch_ends_fetches)
{
	uint64_t number, sum = 0;

	for (number = 1; number <= THREADS; number++)
		add(number, (char)('a' + number), "ssh://host/", 5);
	/* These wait for a thread, or for their repository. */
	add(10, 'z', "ssh://host/", 5);
	add(20, 'b', "ssh://host/", 5);
	ck_assert_int_eq(done(300, false), 0);
	fetch_pool_end_fetches(pool, 5, NULL);
	ck_assert_int_eq(done(300, false), 0);
	fetch_pool_end_fetches(pool, 6, NULL);
	while (sum < 40 && (number = done(10000, false)) > 0)
		sum += number;
	ck_assert_int_eq(sum, 1 + 2 + 3 + 4 + 10 + 20);
	add(50, 'b', source, 6);
	ck_assert_int_eq(done(10000, true), 50);
}

/* The next leader can ask before this node knows the end of the epoch. */
TEST(a_later_epoch_goes_on)
{
	add(1, 'b', "ssh://host/", 5);
	ck_assert_int_eq(done(300, false), 0);
	add(2, 'b', source, 6);
	ck_assert_int_eq(done(300, false), 0);
	fetch_pool_end_fetches(pool, 6, NULL);
	ck_assert_int_eq(done(10000, false), 1);
	ck_assert_int_eq(done(10000, true), 2);
	/* The epoch 6 was never proven. */
	add(3, 'b', source, 5);
	ck_assert_int_eq(done(10000, true), 3);
}

/* The machine of SOURCE may be lost, and the others are well. */
TEST(fetches_from_one_source_end)
{
	static const char lost[] = "ssh://lost/", well[] = "ssh://well/";

	add(1, 'b', lost, 5);
	add(2, 'c', well, 5);
	add(4, 'd', lost, 6);
	ck_assert_int_eq(done(300, false), 0);
	fetch_pool_end_fetches(pool, 6, lost);
	ck_assert_int_eq(done(10000, false), 1);
	ck_assert_int_eq(done(300, false), 0);
}

TEST(the_end_ends_fetches)
{
	add(1, 'b', "ssh://host/", 5);
	add(2, 'b', "ssh://host/", 6);
	ck_assert_int_eq(done(300, false), 0);
}

/* Repositories whose rows wait ask again and again. */
TEST(the_daemon_leaves_a_thread_to_others)
{
	uint64_t number, sum = 0;
	char name;

	for (number = 1; number <= 3; number++)
		for (name = 'b'; name < 'b' + THREADS; name++)
			add_of(true, number, name, "ssh://host/", 5);
	ck_assert_int_eq(done(300, false), 0);
	add(50, 'z', source, 5);
	ck_assert_int_eq(done(10000, true), 50);
	fetch_pool_end_fetches(pool, 6, NULL);
	while ((number = done(2000, false)) > 0)
		sum += number;
	ck_assert_int_eq(sum, THREADS);
}
