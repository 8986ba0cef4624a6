/*
 * The repository of a fetch, by descriptors, because others may write below a
 * root: no path there is resolved twice or through a link. Any thread; every
 * call blocks.
 */
#ifndef GROUP_SERVICE_FETCH_REPO_H
#define GROUP_SERVICE_FETCH_REPO_H

#include "daemon/group/service/fetch.h"

/* Descriptors, which are closed in an exec; -1: none. */
struct fetch_repo {
	int fd;      /* the common directory */
	int objects; /* objects/ and objects/pack/ */
	int pack;
};

/* Opens the repository of WISH, or makes the repository, and checks or writes
 * its uuid. With wish->copies git must read none of the files of an old copy,
 * so the repository is always made, aside. False: WHY is the reason. Call
 * fetch_repo_close() in any case. */
bool fetch_repo_open(struct fetch_repo *repo, const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *why);
/* Opens the repository at wish->path below ROOT, of whatever uuid. */
bool fetch_repo_open_place(struct fetch_repo *repo, const char *root,
    const struct fetch_wish *wish, struct text *why);
void fetch_repo_close(struct fetch_repo *repo);
/* Nothing with such a name is served any more. */
#define FETCH_REPO_WAY ".refd-way-"
/* Puts a complete repository that is aside into its place, where others see it
 * from now on. A directory in the place is moved to .refd-way-<uuid>-<seconds>
 * beside it. False: WHY is the reason. */
bool fetch_repo_place(const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *why);

/* Moves an old copy, or a part of a new one, out of the way, to a directory
 * FETCH_REPO_WAY. Looks for the repository of WISH at wish->path below the
 * first root, and aside there. False: the repository may still be there. Syncs
 * nothing. */
bool fetch_repo_leave(const struct fetch_site *site,
    const struct fetch_wish *wish);

/* Opens PATH beneath DIR, and waits for nothing. Returns the descriptor or a
 * negative errno, which is -ELOOP for a link on the way. */
int fetch_repo_beneath(int dir, const char *path, int flags);

/* Appends a line with the id for every ref with a value in the repository
 * REPO_FD. Links, other refs, and whatever lies behind bounds are left out.
 * False: git can't read its reftables. */
bool fetch_repo_values(int repo_fd, const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *lines);

#endif
