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
	/* No list before the first copy has named it. So it was begun later,
	 * and all its rows come, or the leader did not see it for a while. */
	bool is_late;
	bool is_gone; /* the leader does not name it any more; a fault, too */
	bool is_copied;
	struct text values; /* of the copy, for refd recover --join; owned */
};

struct join_list {
	struct join_repo *repos; /* owned */
	size_t nr, size;
	size_t nr_unnamed; /* directories beyond the search (lister.h) */
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
/* After JOIN_LIST_END: */
/* The repository with the uuid HEX, or NULL. */
struct join_repo *join_list_find(const struct join_list *list, const char *hex);
/* Does the copy of WAS count for REPO, the same one in the next list? */
bool join_list_keeps_copy(const struct join_repo *repo,
    const struct join_repo *was);
/* Takes over from OLD, the list before, which repositories are copied, and all
 * that were named before the first copy. LEFT is called for each one of OLD
 * whose copy does not count any more. ARE_LATE: the new ones are. Returns how
 * many can be copied, and are not. */
size_t join_list_follow(struct join_list *list, struct join_list *old,
    bool are_late, void (*left)(void *arg, const struct join_repo *was),
    void *arg);
/* Does the node lack refs of REPO that no row behind L brings? */
bool join_list_is_missed(const struct join_repo *repo);
void join_list_done(struct join_list *list);

#endif
