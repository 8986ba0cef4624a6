/*
 * Tells a pusher to a group of nodes why there is no answer yet: other nodes
 * fetch the objects before an update, and large objects take long. A node that
 * does not lead gives no answer either, because the lead may come. git shows
 * the lines of the hook's standard error as "remote: ...".
 */
#ifndef CLIENT_PUSH_PUSH_PROGRESS_H
#define CLIENT_PUSH_PUSH_PROGRESS_H

#include <stdbool.h>

struct push_progress;

/* Starts a thread that prints a line after two seconds, and then every ten
 * seconds. NULL: no thread can be started, so nothing is printed. */
struct push_progress *push_progress_begin(void);
/* Ends and joins the thread, and frees P, which can be NULL. True: a line was
 * printed. */
bool push_progress_end(struct push_progress *p);

#endif
