/*
 * The former value of a broken ref.
 *
 * Happy path: the last record of the journal whose object exists.
 *
 * Otherwise the last value of the log: if the journal has no record, if the
 * last record is a deletion, or if git wrote lines after the record. Not for
 * HEAD: the log has ids alone, and with an id HEAD would name no branch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"

struct verify_search {
	struct verify *v;
	const struct ref_place *place;
	const char *name;
	/* From the journal. */
	bool has_record;
	uint64_t lsn;
	struct refd_oid oid;
	char *target;
	/* The last line of the log whose object exists. */
	bool has_line;
	struct refd_oid line;
	bool met_record, is_after_record;
};

static void forget_record(struct verify_search *s)
{
	free(s->target);
	s->target = NULL;
	s->has_record = false;
}

/* Ends at the newest record that answers. */
static int note_record(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct verify_search *s = arg;

	(void)rec;
	if (m->action == RECORD_DELETE)
		return 1;
	if (m->target == NULL &&
	    !verify_object_fits(s->v, s->name, &m->new_oid))
		return 0;
	if (m->target != NULL && (s->target = strdup(m->target)) == NULL)
		return -ENOMEM;
	s->has_record = true;
	s->lsn = row->lsn;
	s->oid = m->new_oid;
	return 1;
}

static int note_line(void *arg, char *line, size_t len, bool ends)
{
	struct verify_search *s = arg;
	const enum refd_object_format format = s->v->repo.object_format;
	const size_t field = refd_object_format_hex(format) + 1;
	struct refd_oid oid;

	if (!ends || len <= 2 * field || memchr(line, '\0', len) != NULL ||
	    refd_oid_parse(line + field, format, &oid) < 0 ||
	    !verify_object_fits(s->v, s->name, &oid))
		return 0;
	s->has_line = true;
	s->line = oid;
	s->is_after_record = s->met_record;
	if (s->has_record && s->target == NULL && refd_oid_eq(&oid, &s->oid)) {
		s->met_record = true;
		s->is_after_record = false;
	}
	return 0;
}

static void read_log(struct verify_search *s)
{
	const struct sys *sys = s->v->sys;
	char path[REFD_PATH_MAX];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "logs/%s", s->name) >=
	    sizeof(path))
		return;
	fd = SYS(sys, openat, s->place->dirfd, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return;
	verify_each_line(sys, fd, note_line, s);
	SYS(sys, close, fd);
}

/* A record that answers is right, even if older rows can't be read. */
static int read_journal(struct verify_search *s)
{
	struct verify *v = s->v;
	int r;

	if (v->repo_rows == NULL)
		return 0;
	verify_rows_read_on(v->rows);
	r = verify_each_row(v, s->place, s->name, note_record, s);
	if (r == 0)
		return v->rows->err;
	return r > 0 ? 0 : r;
}

/* HEAD of a repository, of a worktree or of a remote. */
static bool is_head(const char *name)
{
	const char *slash = strrchr(name, '/');

	return strcmp(slash != NULL ? slash + 1 : name, "HEAD") == 0;
}

int verify_last_value(struct verify *v, const struct ref_place *place,
    const char *name, struct verify_value *value)
{
	struct verify_search s = { .v = v, .place = place, .name = name };
	int r;

	r = read_journal(&s);
	/* Without objects, an id cannot be checked, and a log does not have the
	 * target of HEAD. */
	if (v->odb == NULL && s.target == NULL)
		forget_record(&s);
	else if (r == 0 && v->odb != NULL)
		read_log(&s);
	memset(value, 0, sizeof(*value));
	if (r == 0 && s.has_record && !s.is_after_record) {
		value->oid = s.oid;
		value->target = s.target;
		snprintf(value->from, sizeof(value->from),
		    "the journal's record %llu", (unsigned long long)s.lsn);
		return 0;
	}
	free(s.target);
	if (r == 0 && is_head(name))
		return -ENOLINK;
	if (r == 0 && !s.has_line)
		return -ENOENT;
	value->oid = s.line;
	snprintf(value->from, sizeof(value->from), "its log");
	return r;
}
