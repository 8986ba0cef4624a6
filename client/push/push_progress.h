/*
 * Tells a pusher why there is no answer yet, because a push that waits in
 * silence looks like a push that hangs. A daemon is paused or busy; in a group,
 * other nodes fetch the objects before an update, and a node that does not lead
 * gives no answer, because the lead may come. git shows the lines of the hook's
 * standard error as "remote: ...".
 *
 * SIGALRM prints the lines, so this hook uses no alarm of its own and starts no
 * program between begin and end. System calls end with EINTR meanwhile.
 */
#ifndef CLIENT_PUSH_PUSH_PROGRESS_H
#define CLIENT_PUSH_PUSH_PROGRESS_H

#include <stdbool.h>

/* From now on a line is printed after two seconds, and then every ten seconds.
 * Main thread. */
void push_progress_begin(bool is_in_group);
/* Nothing is printed any more. True: a line was printed. */
bool push_progress_end(void);

#endif
