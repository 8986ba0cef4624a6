/*
 * The configuration of refd-deliver: deliver.conf, see refd-deliver(8). One
 * thread; reads files.
 */
#ifndef CLIENT_DELIVER_ENDPOINTS_H
#define CLIENT_DELIVER_ENDPOINTS_H

#include "proto/lib/cli.h"

#define ENDPOINTS_NAME_MAX 64

/* A section [deliver "NAME"]. */
struct endpoint {
	char *name;
	char *url, *command; /* one of them is NULL */
	char *secret_file;   /* or NULL */
	struct text secret;  /* empty: no signature */
	uint64_t timeout_ms; /* of an attempt */
	uint64_t tries;      /* of a change, before it is a dead letter */
	uint64_t parallel;   /* attempts at a time */
};

struct endpoints {
	char *socket; /* of the daemon; NULL: not given */
	struct endpoint *list;
	size_t nr, size;
};

/* Reads the file PATH and the secrets. If the result is false, *WHY has a
 * sentence without the value of a url or a secret. ENDPOINTS is zeroed before,
 * and has to be freed in any case. */
bool endpoints_read(struct endpoints *endpoints, const char *path,
    struct text *why);
void endpoints_done(struct endpoints *endpoints);
const struct endpoint *endpoints_find(const struct endpoints *endpoints,
    const char *name);

#endif
