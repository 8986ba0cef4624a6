/*
 * The refs of a repository on the disk of a node, as git shows them to others:
 * git-ls-remote(1), with the credentials and limits of a fetch. So a symbolic
 * ref has the value of its target, and a ref that transfer.hideRefs hides on
 * its node is missing.
 *
 * The answer is hostile: at most 64 MiB are taken, every name is checked, and
 * no name comes twice. Any thread; only listing_read() blocks.
 */
#ifndef GROUP_SERVICE_LISTING_H
#define GROUP_SERVICE_LISTING_H

#include "daemon/group/service/fetch.h"

struct listing_ref {
	const char *name, *value; /* VALUE: an id as text */
};

/* Zero-initialised: no refs. Owns all. */
struct listing {
	struct text text;
	struct listing_ref *refs; /* sorted by name */
	size_t nr, size;
};

/* Takes the answer in LISTING->text apart. Leaves out the refs that refd keeps
 * for this node alone, below refs/refd/. False: WHY is the reason. */
bool listing_parse(struct listing *listing, struct text *why);
/* Asks the source of WISH. */
bool listing_read(struct listing *listing, const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *why);
/* The format of the ids, or SHA-1 if there is no ref. */
enum refd_object_format listing_format(const struct listing *listing);
/* A line with the id of each ref. */
void listing_add_values(const struct listing *listing, struct text *lines);
void listing_done(struct listing *listing);

#endif
