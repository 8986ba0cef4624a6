/*
 * SIGHUP: the configuration is read anew on a thread of its own, since names
 * of users may be asked for over a network and a disk may be slow; what was
 * read is put into force on the loop. Loop thread.
 */
#ifndef NET_RELOAD_H
#define NET_RELOAD_H

#include "daemon/net/net_internal.h"

/* libevent's, of the signal. One that comes while another is under way has it
 * done again afterwards. */
void reload_asked(evutil_socket_t number, short what, void *net);
/* Is it read by now? To be called when the loop was woken. */
void reload_look(struct net *net);
/* The loop is over: waits for the thread, and forgets what it has read. */
void reload_give_up(struct net *net);

#endif
