/*
 * Happy path of a look-up:
 *	loose	in the own store, because new objects are there
 *	packs	of all stores, beginning with the pack of the previous object
 *	loose	in the alternates
 *
 * Failures:
 *	not found	packs are listed again, in case git has moved the object
 *			into a pack; if a pack was removed, the whole look-up is
 *			repeated, since its objects may have become loose
 *	a place is unreadable or malformed: the other places may have the
 *			object; otherwise the result is an error, since the
 *			object is not known to be absent
 */
#include "daemon/store/objects/odb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/objects/loose_object.h"
#include "daemon/store/objects/pack_list.h"

/* Depth of tags of tags. A hostile chain would delay other users, and real
 * repositories need less. */
#define TAGS_DEEP 8
/* Bytes inflated, entries of a directory read, or steps in packs, in about the
 * time of a look-up. */
#define BYTES_OF_WORK   2048
#define ENTRIES_OF_WORK 16
#define STEPS_OF_WORK   8

struct odb {
	const enum refd_object_format *format; /* borrowed */
	struct object_stores stores;
	struct pack_list packs;
	int broken; /* result of the last refresh; negative before the first */
	int fault;  /* of the last look-up that failed, of FAULT_OF */
	struct refd_oid fault_of;
	size_t work;
};

struct odb *odb_new(const struct sys *sys, int common_fd,
    const enum refd_object_format *format, const struct object_rule *rule)
{
	struct odb *odb = calloc(1, sizeof(*odb));

	if (odb == NULL)
		return NULL;
	odb->format = format;
	object_stores_init(&odb->stores, sys, common_fd, rule);
	pack_list_init(&odb->packs, sys);
	odb->broken = -EAGAIN;
	return odb;
}

void odb_free(struct odb *odb)
{
	if (odb == NULL)
		return;
	pack_list_done(&odb->packs);
	object_stores_done(&odb->stores);
	free(odb);
}

const struct object_stores *odb_stores(const struct odb *odb)
{
	return &odb->stores;
}

size_t odb_take_work(struct odb *odb)
{
	size_t work = odb->work;

	odb->work = 0;
	return work;
}

/* ---- finding an object ---- */

/* A found object; of its content only the type unless wanted. */
struct odb_query {
	const struct refd_oid *oid;
	bool wants_data;
	size_t max; /* bytes of the contents */
	struct object_content found;
};

/* 1: found; 0: absent; negative: unreadable; -EFBIG: larger. */
static int look_loose(struct odb *odb, size_t nth, struct odb_query *at)
{
	const struct sys *sys = odb->stores.sys;
	int fd = odb->stores.at[nth].fd, r;

	if (at->wants_data)
		r = loose_object_read(sys, fd, at->oid, *odb->format, at->max,
		    &at->found);
	else
		r = loose_object_type(sys, fd, at->oid, *odb->format,
		    &at->found.type);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

/* A pack states how long the chain of an object is, and a repository may have
 * thousands of packs, so the steps in packs count as work. */
static int look_in_packs(struct odb *odb, struct odb_query *at)
{
	int r;

	if (at->wants_data)
		r = pack_list_read(&odb->packs, at->oid, at->max, &at->found);
	else
		r = pack_list_type(&odb->packs, at->oid, &at->found.type);
	odb->work += odb->packs.nr_steps / STEPS_OF_WORK;
	odb->packs.nr_steps %= STEPS_OF_WORK;
	return r;
}

static bool is_answer(int r, int *worst)
{
	if (r < 0)
		*worst = r;
	return r > 0 || r == -EFBIG;
}

static int look_everywhere(struct odb *odb, struct odb_query *at)
{
	int r, worst = 0;
	size_t i;

	odb->work++;
	if (is_answer(r = look_loose(odb, 0, at), &worst) ||
	    is_answer(r = look_in_packs(odb, at), &worst))
		return r;
	for (i = 1; i < odb->stores.nr; i++)
		if (is_answer(r = look_loose(odb, i, at), &worst))
			return r;
	return worst;
}

/* 1: packs were added or removed. */
static int list_packs(struct odb *odb)
{
	int r = pack_list_refresh(&odb->packs, &odb->stores, *odb->format);

	odb->work += odb->packs.nr_read / ENTRIES_OF_WORK;
	odb->packs.nr_read = 0;
	return r;
}

int odb_refresh(struct odb *odb)
{
	int r = object_stores_refresh(&odb->stores);

	if (r == 1)
		pack_list_done(&odb->packs);
	if (r >= 0)
		r = list_packs(odb);
	odb->broken = r < 0 ? r : 0;
	return odb->broken;
}

static int find_object(struct odb *odb, struct odb_query *at)
{
	int r, listed;

	if (odb->broken < 0)
		return odb->broken;
	r = look_everywhere(odb, at);
	if (r > 0 || r == -EFBIG)
		return r;
	listed = list_packs(odb);
	if (listed < 0)
		return listed;
	return listed > 0 ? look_everywhere(odb, at) : r;
}

enum object_type odb_type(struct odb *odb, const struct refd_oid *oid)
{
	struct odb_query at = { .oid = oid };
	int r = find_object(odb, &at);

	if (r < 0) {
		odb->fault = r;
		odb->fault_of = *oid;
	}
	return r > 0 ? at.found.type : r == 0 ? OBJECT_ABSENT : OBJECT_ERROR;
}

int odb_fault(const struct odb *odb, const struct refd_oid *oid,
    char why[ODB_FAULT_TEXT])
{
	const char *pack = odb->packs.fault_in, *text;

	*why = '\0';
	if (odb->fault == 0 || !refd_oid_eq(&odb->fault_of, oid))
		return 0;
	text = odb->fault == -EBADMSG ? "damaged" : strerror(-odb->fault);
	if (*pack != '\0')
		snprintf(why, ODB_FAULT_TEXT, ": pack/%s: %s", pack, text);
	else
		snprintf(why, ODB_FAULT_TEXT, ": %s", text);
	return odb->fault;
}

/* ---- reading ---- */

int odb_read(struct odb *odb, const struct refd_oid *oid, size_t max,
    struct object_content *out)
{
	struct odb_query at = { .oid = oid, .wants_data = true, .max = max };
	struct refd_oid is;
	int r = find_object(odb, &at);

	if (r <= 0)
		return r == 0 ? -ENOENT : r == -EFBIG ? r : -EIO;
	odb->work += 2 + at.found.len / BYTES_OF_WORK;
	object_id(at.found.type, at.found.data, at.found.len, *odb->format,
	    &is);
	if (!refd_oid_eq(&is, oid)) {
		free(at.found.data);
		return -EIO;
	}
	*out = at.found;
	return 0;
}

/* ---- peeling ---- */

/* The first two lines of a tag are "object <hex>" and "type <type>". */
static int parse_tag(const uint8_t *data, size_t len,
    enum refd_object_format format, struct refd_oid *to, enum object_type *type)
{
	static const char object[] = "object ", type_is[] = "\ntype ";
	const size_t hex_at = strlen(object);
	const size_t type_at = hex_at + refd_object_format_hex(format);
	const char *text = (const char *)data, *p;

	if (len <= type_at + strlen(type_is) ||
	    memcmp(text, object, hex_at) != 0 ||
	    refd_oid_parse(text + hex_at, format, to) < 0 ||
	    memcmp(text + type_at, type_is, strlen(type_is)) != 0)
		return -EINVAL;
	p = text + type_at + strlen(type_is);
	*type = object_type_take(&p, text + len, '\n');
	return *type == OBJECT_ERROR ? -EINVAL : 0;
}

/* *TYPE: of TO, as the tag states. */
static int peel_once(struct odb *odb, const struct refd_oid *tag,
    struct refd_oid *to, enum object_type *type)
{
	struct object_content is;
	int r;

	r = odb_read(odb, tag, ODB_TAG_BYTES, &is);
	if (r < 0)
		return r == -EFBIG ? r : -EIO;
	r = is.type == OBJECT_TAG ?
	    parse_tag(is.data, is.len, *odb->format, to, type) :
	    -EINVAL;
	free(is.data);
	return r;
}

/* -EINVAL: OID is not of TYPE, which a tag may state falsely. */
static int check_type(struct odb *odb, const struct refd_oid *oid,
    enum object_type type)
{
	struct odb_query at = { .oid = oid };
	int r = find_object(odb, &at);

	if (r <= 0)
		return r == -EFBIG ? r : -EIO;
	return at.found.type == type ? 0 : -EINVAL;
}

int odb_peel(struct odb *odb, const struct refd_oid *tag, struct refd_oid *to)
{
	enum object_type type = OBJECT_TAG;
	int r, deep;

	/* The type comes first, so that a blob of the same size is not read for
	 * nothing. */
	*to = *tag;
	r = check_type(odb, to, type);
	for (deep = 0; r == 0 && type == OBJECT_TAG; deep++) {
		const struct refd_oid at = *to;

		if (deep == TAGS_DEEP)
			return -EFBIG;
		r = peel_once(odb, &at, to, &type);
		if (r == 0)
			r = check_type(odb, to, type);
	}
	return r;
}
