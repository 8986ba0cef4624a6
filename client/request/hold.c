/*
 *	enter	refd/migrate is made and gets a flock: from now on, the daemon
 *		refuses to open the repository, and its clients try again
 *	close	a new time of the configuration makes the daemon look at the
 *		repository again, and close it after the last batch or session.
 *		Then refd/lock, the lock of a daemon, is free
 *	forget	a checkpoint makes the daemon forget all rows of the repository
 *	end	first refd/lock goes, then refd/migrate
 *
 * Failures: the daemon ends, and a new daemon finds refd/lock held, so the new
 * daemon does not open the repository either; this process is killed, and the
 * kernel drops both flocks; updates go on for too long, and nothing has changed
 * yet.
 */
#include "client/request/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/tree.h"
#include "client/request/question.h"
#include "proto/lib/clock.h"

#define HOLD_MS 60000
#define NAP_MS  20
/* The daemon answers at once, or hangs. */
#define POKE_MS 5000
/* The daemon has the flock of refd/migrate for an instant. */
#define LOOK_MS 1000

/* The daemon compares the times of the configuration at each update, so any
 * answer will do. */
static void poke(struct refd *r, int dir, const struct gitdir *gd)
{
	struct refd_update update = { .action = REFD_VERIFY, .name = "HEAD" };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = gd->common,
		.common_dev = gd->dev,
		.common_ino = gd->ino,
		.umask = 022,
		.deadline_ms = POKE_MS,
		.updates = &update,
		.nr_updates = 1 };
	struct refd_answer ans;

	utimensat(dir, "config", NULL, AT_SYMLINK_NOFOLLOW);
	if (refd_call(r, &req, POKE_MS, &ans) == 0)
		refd_answer_done(&ans);
}

bool hold_take(int fd, uint64_t deadline)
{
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_now_ms() >= deadline)
			return false;
		clock_nap(NAP_MS, deadline);
	}
	return true;
}

static void enter(struct hold *h, const struct gitdir *gd)
{
	struct stat st;

	mkdirat(h->refd, "migrate", 0700);
	h->work = tree_open(h->refd, "migrate");
	/* Another holder removes the directory at the end. */
	if (!hold_take(h->work, clock_now_ms() + LOOK_MS) ||
	    fstat(h->work, &st) < 0 || st.st_nlink == 0)
		cli_die(EXIT_AWAY,
		    "%s: another 'refd migrate' is at work; nothing was "
		    "changed",
		    gd->common);
	if (st.st_uid != geteuid() || (st.st_mode & 0077))
		die("%s/refd/migrate is open to another user, who could change "
		    "the work: remove the directory; nothing was changed",
		    gd->common);
}

/* A daemon replaces a lock with two names, as a copy by hard links has. So only
 * a flock of the file with the name holds daemons back. */
static bool take_lock(struct hold *h, const struct gitdir *gd)
{
	struct stat st, named;

	h->lock = openat(h->refd, "lock",
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (h->lock < 0)
		die("cannot open %s/refd/lock: %s", gd->common,
		    strerror(errno));
	if (hold_take(h->lock, 0) && fstat(h->lock, &st) == 0 &&
	    fstatat(h->refd, "lock", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    named.st_ino == st.st_ino)
		return true;
	close(h->lock);
	h->lock = -1;
	return false;
}

static struct refd *find_daemon(const struct daemon_socket *socket)
{
	struct refd *r = connect_new(socket);
	int err = refd_connect(r, QUESTION_MS);

	if (err < 0)
		question_failed(r, err);
	if (refd_hello(r)->state != REFD_SERVING)
		cli_die(EXIT_AWAY, "the daemon is %s; nothing was changed",
		    refd_server_state_name(refd_hello(r)->state));
	return r;
}

/* No marker lets git write there, so no later attempt would help. */
static void refuse_group(const struct gitdir *gd)
{
	if (connect_is_in_group(gd))
		die("%s is in a group of nodes, so this node alone cannot do "
		    "that; nothing was changed",
		    gd->common);
}

void hold_begin(struct hold *h, int dir, const struct gitdir *gd,
    const struct daemon_socket *socket)
{
	const uint64_t deadline = clock_deadline_ms(HOLD_MS);
	struct refd_request req = { .verb = REFD_VERB_CHECKPOINT };
	struct refd_answer ans;
	struct refd *r;

	refuse_group(gd);
	r = find_daemon(socket);
	mkdirat(dir, "refd", 0777);
	h->refd = tree_open(dir, "refd");
	enter(h, gd);
	while (!take_lock(h, gd)) {
		if (clock_now_ms() >= deadline) {
			hold_end(h);
			cli_die(EXIT_AWAY,
			    "%s: the daemon still has updates or sessions at "
			    "work, or another daemon has refd/lock; nothing "
			    "was changed",
			    gd->common);
		}
		poke(r, dir, gd);
		clock_nap(NAP_MS, deadline);
	}
	question_call(r, &req, HOLD_MS, &ans);
	refd_answer_done(&ans);
	refd_free(r);
	if (!connect_may_bypass(socket->path, gd)) {
		hold_end(h);
		/* The daemon can have learned it meanwhile. */
		refuse_group(gd);
		cli_die(EXIT_AWAY,
		    "%s has updates that could not be written to its refs "
		    "yet: 'refd status' says why; nothing was changed",
		    gd->common);
	}
}

void hold_end(struct hold *h)
{
	close(h->lock);
	unlinkat(h->refd, "migrate", AT_REMOVEDIR);
	close(h->work);
	close(h->refd);
}
