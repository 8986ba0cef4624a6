/*
 * The scheduler's part of a look: adds the records of history to the known
 * refs, and frees the memory of the look. The tests of the scheduler link this
 * file with a double of the store, which has no looker, so the file stands
 * apart from looker.c.
 *
 * Failure modes: no memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/looking/seen_refs.h"
#include "daemon/store/store.h"

int store_look_add(struct store_look *look, const struct refd_answer *ans)
{
	const struct refd_change *c;
	struct seen_ref ref;
	size_t i;
	int r = 0;

	look->at = ans->next;
	for (i = 0; i < ans->nr_changes && r == 0; i++) {
		c = &ans->changes[i];
		if (c->status != REFD_OK || c->record->voids != 0 ||
		    (!c->has_new && c->target == NULL) ||
		    !seen_refs_has_place(c->name))
			continue;
		ref = (struct seen_ref){ .name = c->name, .target = c->target };
		if (c->target == NULL)
			ref.oid = c->new_oid;
		r = seen_refs_set(look->refs, SEEN_KNOWN, &ref);
		look->has_news = true;
	}
	return r;
}

void store_look_enlarge(struct store_look *look)
{
	seen_refs_free(look->refs);
	look->refs = NULL;
	look->at = (struct refd_position){ 0 };
	look->is_large = true;
	look->has_news = false;
}

void store_look_address(const struct store_look *look, struct refd_request *req)
{
	req->object_format = look->repo->object_format;
	req->common_dev = look->repo->dev;
	req->common_ino = look->repo->ino;
}

void store_look_done(struct store_look *look)
{
	seen_refs_free(look->refs);
	free(look->changes);
	free(look->why);
}
