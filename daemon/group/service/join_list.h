/* The repositories of the leader, for refd group join. Nothing blocks. */
#ifndef GROUP_SERVICE_JOIN_LIST_H
#define GROUP_SERVICE_JOIN_LIST_H

#include "daemon/group/service/fetch_id.h"

#define JOIN_LIST_MAX 1000000

struct join_repo {
	char *path; /* below the root; owned */
	char hex[FETCH_ID_HEX + 1];
	enum refd_object_format format;
	const char *fault; /* why it cannot be copied; NULL: it can be */
	bool is_copied;
	struct text values; /* of the copy, for refd recover --join; owned */
};

struct join_list {
	struct join_repo *repos; /* owned */
	size_t nr, size;
};

enum join_list_said {
	JOIN_LIST_MORE,
	JOIN_LIST_END,
	JOIN_LIST_FAILED,  /* the leader cannot list them */
	JOIN_LIST_PARTIAL, /* some are missing */
	JOIN_LIST_WRONG    /* no answer of lister.h, or too many */
};

/* LINE: an answer of lister.h, behind the request, from a hostile sender. */
enum join_list_said join_list_take(struct join_list *list, const char *line);
/* After JOIN_LIST_END. */
/* The repository with the uuid HEX, or NULL. */
struct join_repo *join_list_find(const struct join_list *list, const char *hex);
void join_list_done(struct join_list *list);

#endif
