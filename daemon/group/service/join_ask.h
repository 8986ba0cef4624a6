/* Asks the leader for its repositories, for refd group join. Blocking; one
 * thread. */
#ifndef GROUP_SERVICE_JOIN_ASK_H
#define GROUP_SERVICE_JOIN_ASK_H

#include "daemon/group/service/join_list.h"
#include "daemon/group/service/session.h"

/* Asks NODE by S, which is open. The list was empty. Ends the program on
 * failure. */
void join_ask(struct join_list *list, struct session *s, const char *node);

#endif
