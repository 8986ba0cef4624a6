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
	/* The first copy began before any list named the repository. So either
	 * the repository was begun later, and all its rows come; or the leader
	 * did not see it for a while. */
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
/* Copies can begin before the last list, so the results of OLD, the list
 * before, are carried over. A repository of OLD stays copied if
 * join_list_keeps_copy(), and otherwise LEFT is called for the lost copy. A
 * repository that LIST does not name any more is added with a fault, unless it
 * is late. ARE_LATE: repositories that only LIST names are late. Returns how
 * many repositories are not copied yet, and have no fault. */
size_t join_list_follow(struct join_list *list, struct join_list *old,
    bool are_late, void (*left)(void *arg, const struct join_repo *was),
    void *arg);
/* Does the node lack refs of REPO that no row behind L brings? */
bool join_list_is_missed(const struct join_repo *repo);
void join_list_done(struct join_list *list);

#endif
