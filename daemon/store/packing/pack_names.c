/*
 * Finds the loose refs that may be packed.
 *
 * Happy path: one directory of every level is open; each regular file with the
 * name of a ref is read, and its object is looked up. The search ends early
 * when it has enough refs, because the caller removes them and searches again.
 *
 * Failure modes:
 *	a directory or file went, or became a link	passed over
 *	a file can't be read, an object is missing	the ref stays loose
 *	too many entries				the search ends; the
 *							refs found so far count
 *	a directory that can't be read			the error is returned
 */
#include "daemon/store/packing/pack_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/files/format/loose.h"
#include "proto/refname.h"

struct idx_listing {
	struct pack_names *found;
	char path[REFD_PATH_MAX];
};

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static bool can_be_packed(const char *name)
{
	const char *id, *bare;
	size_t id_len;

	return refd_refname_may_write(name) &&
	    refd_refname_place(name, &id, &id_len, &bare) == REFD_PLACE_COMMON;
}

/* 1: enough. */
static int add(struct idx_listing *s, const struct loose_value *value)
{
	struct pack_names *p = s->found;
	size_t len = strlen(s->path) + 1;
	struct pack_ref *ref;
	int r;

	if (p->nr == PACK_REFS || len > PACK_NAME_BYTES - p->names_len) {
		p->is_full = true;
		return 1;
	}
	ref = &p->refs[p->nr];
	*ref =
	    (struct pack_ref){ .oid = value->oid, .mtime_ns = value->mtime_ns };
	r = p->peel(p->arg, &ref->oid, &ref->peeled);
	if (r < 0)
		return 0;
	ref->is_tag = r > 0;
	ref->name = memcpy(p->names + p->names_len, s->path, len);
	p->names_len += len;
	p->nr++;
	return 0;
}

static int look_at_file(struct idx_listing *s)
{
	struct pack_names *p = s->found;
	struct loose_value value;
	int r = 0;

	if (!can_be_packed(s->path) ||
	    loose_read(p->sys, p->dirfd, s->path, p->format, &value) < 0)
		return 0;
	if (value.kind == LOOSE_OID && value.exact)
		r = add(s, &value);
	loose_value_done(&value);
	return r;
}

static int search(struct idx_listing *s);

static int look_at(struct idx_listing *s, size_t len,
    const struct sys_dirent *entry)
{
	const struct pack_names *p = s->found;
	size_t n = strlen(entry->name);
	unsigned char type = entry->type;
	struct sys_stat st;
	int r = 0;

	if (len + 1 + n >= sizeof(s->path))
		return 0;
	s->path[len] = '/';
	memcpy(s->path + len + 1, entry->name, n + 1);
	if (type == DT_UNKNOWN &&
	    SYS(p->sys, lstatat, p->dirfd, s->path, &st) == 0)
		type = S_ISDIR(st.mode) ? DT_DIR :
		    S_ISREG(st.mode)    ? DT_REG :
					  DT_UNKNOWN;
	if (type == DT_REG)
		r = look_at_file(s);
	else if (type == DT_DIR)
		r = search(s);
	s->path[len] = '\0';
	return r;
}

/* Searches below the path, and returns 1 if enough was found, 0, or negative
 * errno. */
static int search(struct idx_listing *s)
{
	struct pack_names *p = s->found;
	size_t len = strlen(s->path);
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	if (p->depth == PACK_DEPTH)
		return 0;
	r = SYS(p->sys, dir_open, p->dirfd, s->path, &dir);
	if (r < 0)
		return is_gone(r) ? 0 : r;
	p->depth++;
	while ((r = SYS(p->sys, dir_next, dir, &entry)) > 0) {
		if (p->left-- == 0) {
			p->left = 0;
			r = 1;
		} else {
			r = look_at(s, len, &entry);
		}
		if (r != 0)
			break;
	}
	p->depth--;
	SYS(p->sys, dir_close, dir);
	return r;
}

static int by_name(const void *va, const void *vb)
{
	const struct pack_ref *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

int pack_names_find(struct pack_names *p)
{
	struct idx_listing s = { .found = p, .path = "refs" };
	int r;

	p->refs = calloc(PACK_REFS, sizeof(*p->refs));
	p->names = malloc(PACK_NAME_BYTES);
	p->left = PACK_ENTRIES;
	if (p->refs == NULL || p->names == NULL)
		return -ENOMEM;
	r = search(&s);
	qsort(p->refs, p->nr, sizeof(*p->refs), by_name);
	return r < 0 ? r : 0;
}

void pack_names_done(struct pack_names *p)
{
	free(p->refs);
	free(p->names);
	p->refs = NULL;
	p->names = NULL;
	p->nr = 0;
}
