/*
 * Names the repositories of this node to a node that joins (join.c), because
 * the log has only the changed ones, and ssh gives no more than git. The
 * request and the answers are notices of PostgreSQL, because nobody needs them
 * later:
 *
 *	refd_list	"<group> <node> <request>": the node shall answer
 *	refd_listed	"<request> <uuid> <format> <state> <path>" for each
 *			repository; the path in hexadecimal digits. The state is
 *			shown: all can be fetched; hidden: not all refs can be;
 *			importing: perhaps refs that are no rows yet; shallow:
 *			git would leave refs out; open: others may write
 *			refd/id; unreadable: git fails at the configuration; or
 *			long: the uuid stands for a path that is too long for a
 *			notice
 *			"<request> busy": the search has begun
 *			"<request> unnamed <number>", if not 0: directories
 *			beyond the search. Anybody who may write below the root
 *			can make them, so they end no search
 *			"<request> end <number of repositories>", or "<request>
 *			failed"
 *
 * A search takes minutes in a large root, so a thread of its own makes it. A
 * request that comes meanwhile is dropped, and the other node repeats it.
 *
 * All calls come from one thread. Only the last one blocks.
 */
#ifndef GROUP_SERVICE_LISTER_H
#define GROUP_SERVICE_LISTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/group/service/session.h"

#define LISTER_REQUEST 16 /* characters */

struct lister {
	const struct group_config *config;
	pthread_t thread;
	bool has_thread;
	atomic_bool is_working, has_ended;
	char request[LISTER_REQUEST + 1]; /* in work */
	/* Of the thread. */
	struct session s;
	bool is_whole; /* nothing has failed */
	size_t nr;     /* of the repositories that were named */
};

/* PAYLOAD: of a notice refd_list. */
void lister_take(struct lister *l, const char *payload);
void lister_end(struct lister *l);

#endif
