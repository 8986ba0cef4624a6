/*
 * The packs of a repository's object stores. As odb.h has it; odb.c alone uses
 * it.
 */
#ifndef STORE_PACK_LIST_H
#define STORE_PACK_LIST_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/objects/object_stores.h"
#include "daemon/store/objects/pack.h"

struct listed_pack {
	struct pack pack;
	size_t dir;
	bool is_there;     /* in the listing that is under way */
	UT_hash_handle hh; /* in its directory, by name */
};

/* objects/pack of one store. */
struct pack_dir {
	int fd;             /* -1: there is none */
	struct sys_stat st; /* when it was listed */
	bool is_recent;     /* a later change may not show */
	bool is_incomplete; /* a bound was exceeded */
	struct listed_pack *by_name;
};

struct pack_list {
	const struct sys *sys;
	struct pack_dir *dirs; /* of each store, in their order */
	size_t nr_dirs;
	struct listed_pack **packs; /* that which had the last object first */
	size_t nr, size;
	size_t nr_open;
	uint64_t clock; /* of uses */
	size_t nr_read; /* entries of directories, for the owner's account */
};

void pack_list_init(struct pack_list *list, const struct sys *sys);
/* Everything is closed; it may be refreshed again. */
void pack_list_done(struct pack_list *list);

/* Lists the directories that changed. 1: a pack came or went. -ELOOP: a link
 * in the place of a directory or a pack; or a directory that can't be read. */
int pack_list_refresh(struct pack_list *list,
    const struct object_stores *stores);

/* 1: found; 0: no pack has it; negative: a pack could not be read, or there
 * are more than the bounds allow. */
int pack_list_type(struct pack_list *list, const struct refd_oid *oid,
    enum object_type *type);
/* The contents, to be freed; -EFBIG as pack_read() has it. */
int pack_list_read(struct pack_list *list, const struct refd_oid *oid,
    size_t max, enum object_type *type, uint8_t **data, size_t *len);

#endif
