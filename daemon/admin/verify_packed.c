/*
 * packed-refs, as a file and as refs.
 *
 * Happy path: git's header, then records in the order of names, each tag with
 * its peeled value.
 *
 * Failures: git ends with an error at a malformed line, so the check of the
 * file ends there, too. Git trusts the order, unique names and peeled values
 * without a check, so a breach is a finding here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/verify_internal.h"
#include "proto/refname.h"

#define PACKED "packed-refs"
#define HEADER "# pack-refs with:"

/* The name in "<hex> SP <name>", or NULL. */
static const char *record_name(const struct verify *v, const char *line,
    size_t len, struct refd_oid *oid)
{
	const enum refd_object_format format = v->repo.object_format;
	const size_t hex = refd_object_format_hex(format);

	if (len <= hex + 1 || refd_oid_parse(line, format, oid) < 0 ||
	    line[hex] != ' ' || strlen(line) != len || line[len - 1] == '\r')
		return NULL;
	return line + hex + 1;
}

/* ---- the file ---- */

struct packed_check {
	struct verify *v;
	unsigned long line;
	char last[REFD_PATH_MAX];        /* name; "" before the first */
	struct refd_oid oid;             /* its */
	bool is_peeled;                  /* a line said of what */
	bool is_sorted, is_fully_peeled; /* so the header says */
	bool told_unsorted;
};

static void end_record(struct packed_check *look)
{
	struct verify *v = look->v;
	struct refd_oid is;
	int r;

	if (look->last[0] == '\0' || !look->is_fully_peeled ||
	    look->is_peeled || v->odb == NULL)
		return;
	/* Git peels large tags, too. */
	r = odb_peel(v->odb, &look->oid, &is);
	if (r == 0 || r == -EFBIG)
		verify_found(v, FOUND_PACKED_PEELED, look->last, PACKED,
		    "it is a tag, and no line has its peeled value");
}

static void check_peeled(struct packed_check *look, const struct refd_oid *said)
{
	struct verify *v = look->v;
	enum object_type type;
	struct refd_oid is;
	char hex[REFD_OID_MAX_HEX + 1];

	look->is_peeled = true;
	type = v->odb != NULL ? odb_type(v->odb, &look->oid) : OBJECT_ABSENT;
	if (type == OBJECT_ABSENT || type == OBJECT_ERROR)
		return;
	refd_oid_hex(said, v->repo.object_format, hex);
	/* A tag that is too large to read cannot be compared. The same holds
	 * for a tag that states a wrong type, because git before 2.53 peels
	 * such a tag. */
	if (type != OBJECT_TAG)
		verify_found(v, FOUND_PACKED_PEELED, look->last, PACKED,
		    "line %lu says that it is a tag of %s, and it is no tag",
		    look->line, hex);
	else if (odb_peel(v->odb, &look->oid, &is) == 0 &&
	    !refd_oid_eq(&is, said))
		verify_found(v, FOUND_PACKED_PEELED, look->last, PACKED,
		    "line %lu says that it is a tag of %s, and it is not",
		    look->line, hex);
}

static void check_order(struct packed_check *look, const char *name)
{
	int order = strcmp(look->last, name);

	if (order == 0)
		verify_found(look->v, FOUND_PACKED_DUPLICATE, name, PACKED,
		    "line %lu repeats the ref", look->line);
	else if (order > 0 && look->is_sorted && !look->told_unsorted)
		verify_found(look->v, FOUND_PACKED_UNSORTED, name, PACKED,
		    "the header claims an order that line %lu breaks: git does "
		    "not find all refs",
		    look->line);
	look->told_unsorted = look->told_unsorted || order > 0;
}

static int malformed(struct packed_check *look, const char *why)
{
	verify_found(look->v, FOUND_PACKED_MALFORMED, "", PACKED, "line %lu %s",
	    look->line, why);
	return 1;
}

static int packed_line(void *arg, char *line, size_t len, bool ends)
{
	struct packed_check *look = arg;
	const enum refd_object_format format = look->v->repo.object_format;
	struct refd_oid oid;
	const char *name;

	look->line++;
	if (!ends)
		return malformed(look, "has no end");
	if (line[0] == '#' && look->line == 1) {
		if (strncmp(line, HEADER, strlen(HEADER)) != 0)
			return malformed(look, "is no header of git's");
		look->is_sorted = packed_header_has(line, len, "sorted");
		look->is_fully_peeled =
		    packed_header_has(line, len, "fully-peeled");
		return 0;
	}
	if (line[0] == '^') {
		if (len != 1 + refd_object_format_hex(format) ||
		    refd_oid_parse(line + 1, format, &oid) < 0 ||
		    look->last[0] == '\0' || look->is_peeled)
			return malformed(look, "is no peeled line");
		check_peeled(look, &oid);
		return 0;
	}
	end_record(look);
	name = record_name(look->v, line, len, &oid);
	if (name == NULL || strlen(name) >= sizeof(look->last))
		return malformed(look, "is no ref");
	check_order(look, name);
	snprintf(look->last, sizeof(look->last), "%s", name);
	look->oid = oid;
	look->is_peeled = false;
	return 0;
}

void verify_packed(struct verify *v, const struct ref_place *place,
    const char *name)
{
	struct packed_check look = { .v = v };
	int fd, r;

	fd = SYS(v->sys, openat, place->dirfd, name,
	    O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT)
		return;
	r = fd < 0 ? fd : verify_each_line(v->sys, fd, packed_line, &look);
	if (r == 0)
		end_record(&look);
	if (r < 0)
		verify_found(v, FOUND_PACKED_MALFORMED, "", PACKED,
		    "it can't be read: %s", strerror(-r));
	/* Each line is in order, but no name can be looked up. */
	if (r == 0 && v->snap_err < 0)
		verify_found(v, FOUND_PACKED_MALFORMED, "", PACKED,
		    "its refs can't be looked up, so they were not checked: %s",
		    strerror(-v->snap_err));
	if (fd >= 0)
		SYS(v->sys, close, fd);
}

/* ---- its refs ---- */

static int packed_ref(void *arg, char *line, size_t len, bool ends)
{
	struct verify *v = arg;
	const struct ref_place common = { v->repo.fd, "" };
	struct refd_oid oid;
	struct sys_stat st;
	const char *name;

	if (line[0] == '#' || line[0] == '^')
		return 0;
	name = record_name(v, line, len, &oid);
	if (!ends || name == NULL)
		return 1;
	/* A loose ref counts and was checked, so the packed value below it may
	 * name a missing object. */
	if (SYS(v->sys, lstatat, v->repo.fd, name, &st) < 0 || S_ISDIR(st.mode))
		verify_check(v, verify_ref, &common, name);
	return 0;
}

void verify_walk_packed(struct verify *v)
{
	int fd;

	fd = SYS(v->sys, openat, v->repo.fd, PACKED,
	    O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return;
	verify_each_line(v->sys, fd, packed_ref, v);
	SYS(v->sys, close, fd);
}
