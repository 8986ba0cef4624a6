/*
 * The packs of a repository's object stores, by the rules of odb.h. odb.c is
 * the only user.
 */
#ifndef STORE_PACK_LIST_H
#define STORE_PACK_LIST_H

#include <limits.h>

#include "daemon/base/hash.h"
#include "daemon/store/objects/object_stores.h"
#include "daemon/store/objects/pack.h"

struct listed_pack {
	struct pack pack;
	size_t dir;
	bool is_there;     /* present in the current listing */
	UT_hash_handle hh; /* in its directory, by name */
};

/* objects/pack of one store. */
struct pack_dir {
	int fd;             /* -1: missing */
	struct sys_stat st; /* at the time of the listing */
	bool is_recent;     /* a later change may be invisible in the ctime */
	bool is_incomplete; /* a bound was exceeded */
	struct listed_pack *by_name;
};

struct pack_list {
	const struct sys *sys;
	enum refd_object_format format;
	struct pack_dir *dirs; /* of every store, in order */
	size_t nr_dirs;
	struct listed_pack **packs; /* most recently used first */
	size_t nr, size;
	size_t nr_open;
	uint64_t clock; /* of uses */
	/* Directory entries read, and steps in packs (pack.h), for the owner's
	 * account. */
	size_t nr_read, nr_steps;
	/* The last unreadable file of the last look-up; "": none. */
	char fault_in[NAME_MAX + 1];
};

void pack_list_init(struct pack_list *list, const struct sys *sys);
/* Closes everything, but the list may be refreshed again. */
void pack_list_done(struct pack_list *list);

/* Lists the changed directories, whose packs have ids of FORMAT. Returns 1 if a
 * pack was added or removed. -ELOOP: a link in the place of a directory or a
 * pack. Other errors: a directory cannot be read. */
int pack_list_refresh(struct pack_list *list,
    const struct object_stores *stores, enum refd_object_format format);

/* Returns 1 if found, 0 if no pack has the object, and a negative errno if a
 * pack could not be read, or the number of packs exceeds the bounds. */
int pack_list_type(struct pack_list *list, const struct refd_oid *oid,
    enum object_type *type);
/* -EFBIG as in pack_read(). */
int pack_list_read(struct pack_list *list, const struct refd_oid *oid,
    size_t max, struct object_content *out);

#endif
