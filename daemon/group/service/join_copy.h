/*
 * Copies one repository of another node, for refd group join: all objects and
 * refs of a moment. Symbolic refs are copied as such. Kept values of other
 * programs (REFD_DIVERGED) are not copied, because they belong to one node.
 * Blocking; one thread.
 */
#ifndef GROUP_SERVICE_JOIN_COPY_H
#define GROUP_SERVICE_JOIN_COPY_H

#include "daemon/group/service/fetch.h"

/* True: the repository is durable, complete and in its place, and REFS gets its
 * refs, as refd recover --join reads them. False: WHY is the reason, and git
 * has printed messages. May be repeated. */
bool join_copy(const struct fetch_site *site, const struct fetch_wish *wish,
    struct text *refs, struct text *why);

#endif
