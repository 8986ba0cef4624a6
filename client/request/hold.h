/*
 * Holds a repository for a command that replaces what a daemon has open. The
 * daemon must not write there meanwhile, so the daemon finishes its batches and
 * sessions, closes the repository, and opens it no more; its clients wait and
 * try again (repo_claim.c). A daemon that starts meanwhile finds the hold, too.
 * The kernel drops the locks of a process that ends, so the end of this process
 * ends the hold.
 *
 * In a process of the owner. Blocking; one thread.
 */
#ifndef CLIENT_REQUEST_HOLD_H
#define CLIENT_REQUEST_HOLD_H

#include "client/git/gitdir.h"
#include "client/request/connect.h"

struct hold {
	int refd; /* the directory refd/ */
	int lock; /* refd/lock, with a flock */
	/* The directory refd/migrate, with a flock, which only the owner may
	 * enter. A killed holder may have left files. */
	int work;
};

/*
 * Waits for a minute. DIR is the common directory of GD, and SOCKET the one of
 * its daemon: daemon_of(). A failure ends the program: with 128 if other nodes
 * have the repository; with 75 if nobody serves, if updates are at work for too
 * long, if there is a hold already, or if records of the repository wait for a
 * disk or a lock.
 */
void hold_begin(struct hold *h, int dir, const struct gitdir *gd,
    const struct daemon_socket *socket);
/* Removes refd/migrate, which has to be empty. */
void hold_end(struct hold *h);

/* Takes the flock of FD, which others have for a while. False, with errno: not
 * before DEADLINE. */
bool hold_take(int fd, uint64_t deadline);

#endif
