/*
 * A reload after SIGHUP. The configuration is read on a thread of its own,
 * because a disk may be slow and user names may come over a network. The loop
 * then applies the configuration that was read.
 *
 * Loop thread.
 */
#ifndef SERVER_RELOAD_THREAD_H
#define SERVER_RELOAD_THREAD_H

#include <stdbool.h>

#include "daemon/service/service.h"

struct reload_calls {
	/* On a thread of its own, and may block. Returns the new
	 * configuration; NULL after a line in the log that says why nothing
	 * changes. */
	void *(*read)(void *arg);
	/* On the loop. Takes ownership of NEW, the result of READ. */
	void (*apply)(void *arg, void *new);
	/* Frees NEW, which is not applied. */
	void (*forget)(void *new);
	void *arg;
};

/* The fields belong to reload_thread.c. */
struct reload_thread {
	struct reload_calls calls;
	struct service_link *service;
	void (*wake)(void *arg);
	void *wake_arg;
	struct reload_run *run; /* NULL: no reload is in progress */
	bool again;             /* reload again at the end */
};

/* WAKE is called by the thread at its end, and makes the loop call
 * reload_thread_look(). SERVICE is borrowed until the end. */
void reload_thread_init(struct reload_thread *reload,
    const struct reload_calls *calls, struct service_link *service,
    void (*wake)(void *arg), void *wake_arg);
/* Starts a reload. During a reload, a new reload follows at its end. */
void reload_thread_ask(struct reload_thread *reload);
/* Applies the configuration if the thread has read it. */
void reload_thread_look(struct reload_thread *reload);
/* Waits for the thread and forgets the configuration. After the loop. */
void reload_thread_give_up(struct reload_thread *reload);

#endif
