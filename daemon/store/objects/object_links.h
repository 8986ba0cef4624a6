/*
 * The objects that an object names, in pure functions for any thread.
 */
#ifndef STORE_OBJECT_LINKS_H
#define STORE_OBJECT_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/store/objects/object_type.h"
#include "proto/oid.h"

enum object_link_kind {
	OBJECT_LINK_TREE,   /* of a commit */
	OBJECT_LINK_PARENT, /* of a commit */
	OBJECT_LINK_TARGET, /* of a tag */
	OBJECT_LINK_ENTRY   /* of a tree */
};

struct object_link {
	enum object_link_kind kind;
	struct refd_oid oid;
	const char *name; /* of an entry; borrowed from the content */
	bool is_tree;     /* an entry with the mode of a tree */
};

/*
 * Calls CB for each object that the object with the content DATA names, in the
 * order of the content. The commit of a submodule is elsewhere, so it is left
 * out. -EBADMSG: malformed. A result of CB other than 0 ends the calls and is
 * returned.
 */
int object_links_each(enum object_type type, const void *data, size_t len,
    enum refd_object_format format,
    int (*cb)(void *arg, const struct object_link *link), void *arg);

#endif
