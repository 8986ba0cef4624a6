/* What these commands have in common: their options and the way to the socket
 * for administration. One thread. */
#ifndef CLIENT_ADMIN_ASK_ADMIN_H
#define CLIENT_ADMIN_ASK_ADMIN_H

#include <stdbool.h>

#include "client/refd.h"

struct ask_admin {
	const char *usage;
	const char *socket; /* --socket, or NULL */
	bool json;
	bool once;     /* top */
	int timeout_s; /* drain; -1: for ever */
	int every_s;   /* top */
};

/* OPTIONS: the letters of those the command takes: j, o, t, i. Ends the
 * program where they are used wrongly. */
void ask_admin_parse(struct ask_admin *q, int argc, char **argv,
    const char *options);
/* Asks one thing. ANS is of pairs, or the program has ended. */
void ask_admin_once(const struct ask_admin *q, enum refd_verb verb,
    int timeout_ms, struct refd_answer *ans);

#endif
