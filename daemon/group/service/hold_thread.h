/*
 * A thread for HOLDs, with a session of its own, because the main thread waits
 * for a COMMIT. If this node leads, the thread asks the other nodes to hold the
 * objects that its daemon names. If another node leads, the thread fetches for
 * this leader.
 *
 * All calls come from the main thread. Only the last one blocks.
 */
#ifndef GROUP_SERVICE_HOLD_THREAD_H
#define GROUP_SERVICE_HOLD_THREAD_H

#include "daemon/group/service/daemon_link.h"
#include "daemon/group/service/group_config.h"

struct hold_thread;

/* DIR is the directory for git (fetch_dirs_make()). LINK gets the answers. */
struct hold_thread *hold_thread_start(const struct group_config *config,
    const char *machine, struct daemon_link *link, const char *dir);
/* Owns FRAME, a HOLD. LEADER: the other node that leads, from which the objects
 * come; NULL: this node leads, and the others fetch. */
void hold_thread_take(struct hold_thread *t, struct daemon_frame *frame,
    const char *leader);
/* The epoch of the last ROLE. A server with an earlier epoch is a former
 * primary, and fetches of earlier epochs end. */
void hold_thread_set(struct hold_thread *t, uint64_t epoch);
/* Ends all fetches. */
void hold_thread_end(struct hold_thread *t);

#endif
