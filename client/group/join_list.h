/* The repositories of the leader, for refd group join. Blocking; one thread. */
#ifndef CLIENT_GROUP_JOIN_LIST_H
#define CLIENT_GROUP_JOIN_LIST_H

#include "client/group/fetch_id.h"
#include "client/group/session.h"

struct join_repo {
	char *path; /* below the root; owned */
	char hex[FETCH_ID_HEX + 1];
	enum refd_object_format format;
	const char *fault; /* why it cannot be copied; NULL: it can be */
	bool is_copied;
};

struct join_list {
	struct join_repo *repos; /* owned */
	size_t nr, size;
};

/* Asks NODE by S, which is open. The list was empty. Ends the program on
 * failure. */
void join_list_ask(struct join_list *list, struct session *s, const char *node);
/* The repository with the uuid HEX, or NULL. */
struct join_repo *join_list_find(const struct join_list *list, const char *hex);
void join_list_done(struct join_list *list);

#endif
