/*
 * The commands of the administrator on the state of refd-deliver. Each prints
 * to standard output, and returns the exit status. The service may run
 * meanwhile. Blocking; one thread.
 */
#ifndef CLIENT_DELIVER_CONSOLE_H
#define CLIENT_DELIVER_CONSOLE_H

#include "client/deliver/outbox.h"

/* Ends the program if the service has never had an endpoint NAME, so that a
 * typing error is noticed. */
void console_require(struct outbox *o, const char *name);
/* NAME is an endpoint, or NULL for all of them. */
int console_list(struct outbox *o, const char *name, bool as_json);
/* Dead letters of the endpoint NAME: those with one of NR ids, or all of them
 * if NR is 0. */
int console_retry(struct outbox *o, const char *name, char **ids, int nr);
/* The same. Without IS_SURE they ask. */
int console_drop(struct outbox *o, const char *name, char **ids, int nr,
    bool is_sure);
int console_forget(struct outbox *o, const char *name, bool is_sure);
int console_prometheus(struct outbox *o);

#endif
