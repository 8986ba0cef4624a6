/*
 * While refs move, nobody else may write refs through refd, also a daemon which
 * starts meanwhile.
 *
 *	begin	refd/migrate is made, with a flock: the daemon opens the
 *		repository no more, and its clients try again (repo_claim.c)
 *	hold	a new time of the configuration makes the daemon look at the
 *		repository again, and close it after the last batch or session.
 *		Then refd/lock, the lock of a daemon, is free. A checkpoint
 *		makes the daemon forget all rows of the repository
 *	end	first refd/lock goes, then refd/migrate
 *
 * Failures: the daemon ends, and a new daemon finds refd/lock held; this
 * program is killed, and the kernel drops both flocks; updates go on for too
 * long: nothing has changed yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/librefd/conn.h"
#include "client/migrate/migrate_internal.h"
#include "client/request/connect.h"

/* Of other users of the flock: the daemon looks at the flock for an instant. */
#define FLOCK_MS 1000
#define NAP_MS   20
/* The daemon answers at once, or hangs. */
#define POKE_MS 5000

static bool flock_within(int fd, uint64_t ms)
{
	const uint64_t deadline = refd_now_ms() + ms;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || refd_now_ms() >= deadline)
			return false;
		refd_nap(NAP_MS, deadline);
	}
	return true;
}

static bool is_same_dir(int dirfd, const char *name, int fd)
{
	struct stat ours, found;

	return fstat(fd, &ours) == 0 &&
	    fstatat(dirfd, name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
	    ours.st_dev == found.st_dev && ours.st_ino == found.st_ino;
}

/* Of refd/. A repository that no daemon has opened yet has none. */
static int open_refd(const struct migration *m)
{
	if (mkdirat(m->dirfd, "refd", 0777) < 0 && errno != EEXIST)
		return -errno;
	return files_open_dir(m->dirfd, "refd");
}

static bool begin_in(struct migration *m, int refd_fd)
{
	m->was_left = mkdirat(refd_fd, "migrate", 0700) < 0;
	if (m->was_left && errno != EEXIST) {
		say_error("cannot make %s/refd/migrate: %s", m->gd->common,
		    strerror(errno));
		return false;
	}
	m->work_fd = files_open_dir(refd_fd, "migrate");
	if (m->work_fd < 0) {
		say_error("cannot open %s/refd/migrate: %s", m->gd->common,
		    strerror(-m->work_fd));
		return false;
	}
	/* A call which ends meanwhile removes the directory. */
	if (flock_within(m->work_fd, FLOCK_MS) &&
	    is_same_dir(refd_fd, "migrate", m->work_fd))
		return true;
	say_error("%s: another 'refd migrate' is at work", m->gd->common);
	return false;
}

bool migrate_begin(struct migration *m)
{
	int refd_fd = open_refd(m);
	bool ok;

	if (refd_fd < 0) {
		say_error("cannot open %s/refd: %s", m->gd->common,
		    strerror(-refd_fd));
		return false;
	}
	m->lock_fd = openat(refd_fd, "lock",
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	ok = m->lock_fd >= 0;
	if (!ok)
		say_error("cannot open %s/refd/lock: %s", m->gd->common,
		    strerror(errno));
	ok = ok && begin_in(m, refd_fd);
	close(refd_fd);
	return ok;
}

/* The daemon compares the times of the configuration at each update. Any answer
 * will do. */
static void poke(const struct migration *m, struct refd *r)
{
	struct refd_update update = { .action = REFD_VERIFY, .name = "HEAD" };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = m->gd->common,
		.common_dev = m->gd->dev,
		.common_ino = m->gd->ino,
		.umask = 022,
		.deadline_ms = POKE_MS,
		.updates = &update,
		.nr_updates = 1 };
	struct refd_answer ans;

	utimensat(m->dirfd, "config", NULL, AT_SYMLINK_NOFOLLOW);
	if (refd_call(r, &req, POKE_MS, &ans) == 0)
		refd_answer_done(&ans);
}

static int forget_rows(struct refd *r, uint64_t deadline)
{
	struct refd_request req = { .verb = REFD_VERB_CHECKPOINT };
	struct refd_answer ans;
	bool ok;
	int err = refd_call(r, &req, (int)connect_ms_left(deadline), &ans);

	if (err < 0) {
		say_error("the daemon made no checkpoint: %s", refd_error(r));
		return EXIT_AWAY;
	}
	ok = ans.kind == REFD_ANSWER_PAIRS;
	if (!ok)
		say_error("the daemon made no checkpoint: %s",
		    ans.text ? ans.text : "no reason given");
	refd_answer_done(&ans);
	return ok ? EXIT_DONE : EXIT_AWAY;
}

int migrate_hold(struct migration *m, struct refd *r, uint64_t deadline)
{
	while (flock(m->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || refd_now_ms() >= deadline) {
			say_error("%s: the daemon still has updates or "
				  "sessions at work, or another daemon has "
				  "refd/lock; nothing was changed",
			    m->gd->common);
			return EXIT_AWAY;
		}
		poke(m, r);
		refd_nap(NAP_MS, deadline);
	}
	return forget_rows(r, deadline);
}

void migrate_end(struct migration *m, bool remove)
{
	int refd_fd = files_open_dir(m->dirfd, "refd");

	if (m->lock_fd >= 0)
		close(m->lock_fd);
	if (remove && m->work_fd >= 0 && refd_fd >= 0)
		files_remove(refd_fd, "migrate");
	if (m->work_fd >= 0)
		close(m->work_fd);
	if (refd_fd >= 0)
		close(refd_fd);
}
