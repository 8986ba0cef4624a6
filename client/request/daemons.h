/*
 * The refd daemons of this machine: who listens, who may start, and what each
 * serves. Commands ask here before they set up one more, because two daemons
 * cannot serve one repository.
 *
 * A daemon is found by its socket or by its configuration: refd.service has
 * /run/refd/refd.sock, refd@NAME.service has /run/refd-NAME/refd.sock, and a
 * user's own daemon has a socket below /run/user.
 *
 * Blocks, for some seconds for each daemon; one thread.
 */
#ifndef CLIENT_REQUEST_DAEMONS_H
#define CLIENT_REQUEST_DAEMONS_H

#include "proto/lib/cli.h"

/* All owned. */
struct known_daemon {
	char *socket;
	char *unit;    /* "refd", "refd@NAME"; NULL: without a unit */
	char *account; /* NULL: not known */
	char *state;   /* "serving", and so on, or why there is no answer */
	char **roots;  /* by the daemon, or else by its configuration */
	size_t nr_roots;
	bool listens;
	bool is_paused;  /* and serves no update */
	bool is_of_root; /* only root can have put the socket there */
};

/* Zero-initialised is empty. */
struct daemons {
	struct known_daemon *list;
	size_t nr, size;
};

/* SOCKET, which may be NULL, is asked, too. */
void daemons_find(struct daemons *all, const char *socket);
/* Adds the daemons of users. Each of these users can let root wait for some
 * seconds. */
void daemons_find_users(struct daemons *all);
void daemons_done(struct daemons *all);
/* Appends "SOCKET (unit UNIT, account ACCOUNT, roots ROOT...)". */
void daemons_describe(const struct known_daemon *known, struct text *out);
/* The daemon on SOCKET that listens; NULL: none. */
const struct known_daemon *daemons_on(const struct daemons *all,
    const char *socket);
/* Does KNOWN serve ROOT, or something below or above ROOT? */
bool daemons_serves(const struct known_daemon *known, const char *root);
/* A daemon of root that listens and serves ROOT, but not the one on SOCKET;
 * NULL: none. */
const struct known_daemon *daemons_other(const struct daemons *all,
    const char *root, const char *socket);

/* The file that the daemon on SOCKET reads, owned, or NULL if not known. */
char *daemons_config(const char *socket);
/* The installed unit of the daemon on SOCKET; NULL: none. Owned. */
char *daemons_unit(const char *socket);
/* Appends the commands by which the daemon on SOCKET serves ROOT, too. */
void daemons_add_root_command(const char *socket, const char *root,
    struct text *out);
/* Appends "; start ..." with the command that starts the daemon on SOCKET, if
 * ERR of refd_connect() says that nobody listens. */
void daemons_add_start(const char *socket, int err, struct text *out);

#endif
