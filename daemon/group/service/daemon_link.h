/*
 * The socket to the daemon, and frames in both directions. A wrong frame ends
 * the program. After the daemon has closed the socket, no call returns, because
 * the thread of lease_keeper.h ends the lease, and then the program. The main
 * thread opens, reads and closes. Any thread may send.
 */
#ifndef GROUP_SERVICE_DAEMON_LINK_H
#define GROUP_SERVICE_DAEMON_LINK_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/group_frame.h"
#include "proto/lib/cli.h"

struct daemon_link {
	int fd;
	struct text in;          /* bytes that were read */
	size_t at;               /* of IN: the first byte that was not taken */
	pthread_mutex_t lock;    /* of IN and AT */
	pthread_mutex_t sending; /* held for a whole frame; before LOCK */
	atomic_uint_fast64_t heard_ms; /* of the last byte that was read */
};

/* A frame of the daemon, with the bytes from which the frame borrows. */
struct daemon_frame {
	struct group_frame frame;
	struct refd_arena *arena;
	uint8_t *bytes;
	size_t len;
	struct daemon_frame *next; /* for the owner */
};

/* Connects to the socket PATH. */
void daemon_link_open(struct daemon_link *link, const char *path);
void daemon_link_close(struct daemon_link *link);
/* Waits at most WAIT_MS for a frame, which the caller frees; -1: for ever.
 * NULL: none came. */
struct daemon_frame *daemon_link_next(struct daemon_link *link, int wait_ms);
void daemon_frame_free(struct daemon_frame *frame);
/* Waits at most WAIT_MS for STOP, and keeps all frames. True: STOP is there. */
bool daemon_link_await_stop(struct daemon_link *link, int wait_ms);
/* Has the daemon sent no byte for 3 seconds? Then the daemon hangs, or is
 * stopped, because it sends a frame at least once a second. Bytes that nobody
 * has read yet count as sent now. Any thread; does not block. */
bool daemon_link_is_silent(struct daemon_link *link);
/* Blocks until the daemon has read enough. Meanwhile keeps what the daemon
 * sends, up to 32 MiB. Beyond, the daemon has to read first, so that the memory
 * stays bounded. */
void daemon_link_send(struct daemon_link *link, const struct group_frame *f);

#endif
