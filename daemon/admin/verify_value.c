/*
 * The former value of a broken ref.
 *
 * Happy path: the last record of the journal whose object exists. The journal
 * is read once for all suspects; later records are read for each ref.
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
	const struct verify_place *place;
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

static int note_record(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	struct verify_search *s = arg;

	(void)rec;
	if (strcmp(m->worktree, s->place->worktree) != 0 ||
	    strcmp(m->name, s->name) != 0)
		return 0;
	if (m->action == RECORD_WRITE && m->target == NULL &&
	    !verify_object_fits(s->v, s->name, &m->new_oid))
		return 0;
	forget_record(s);
	if (m->action == RECORD_DELETE)
		return 0;
	if (m->target != NULL && (s->target = strdup(m->target)) == NULL)
		return -ENOMEM;
	s->has_record = true;
	s->lsn = row->lsn;
	s->oid = m->new_oid;
	return 0;
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

/* ---- all suspects ---- */

static int compare(const void *va, const void *vb)
{
	const struct verify_search *a = va, *b = vb;
	int r = strcmp(a->place->worktree, b->place->worktree);

	return r != 0 ? r : strcmp(a->name, b->name);
}

static struct verify_search *find_search(const struct verify *v,
    const struct verify_place *place, const char *name)
{
	const struct verify_search key = { .place = place, .name = name };

	return v->nr_values == 0 ?
	    NULL :
	    bsearch(&key, v->values, v->nr_values, sizeof(key), compare);
}

static int note_any(void *arg, const struct journal_row *row,
    const struct record *rec, const struct record_member *m)
{
	const struct verify_place place = { -1, m->worktree };
	struct verify_search *s = find_search(arg, &place, m->name);

	return s != NULL ? note_record(s, row, rec, m) : 0;
}

static int read_all(struct verify *v)
{
	struct verify_search *values;
	size_t i;

	values = calloc(v->nr_suspects + 1, sizeof(*values));
	if (values == NULL)
		return -ENOMEM;
	v->values = values;
	for (i = 0; i < v->nr_suspects; i++)
		if (v->suspects[i].check == verify_ref)
			values[v->nr_values++] = (struct verify_search){ .v = v,
				.place = &v->suspects[i].place,
				.name = v->suspects[i].name };
	qsort(values, v->nr_values, sizeof(*values), compare);
	return verify_each_member(v, 0, note_any, v, &v->values_last);
}

void verify_values_done(struct verify *v)
{
	size_t i;

	for (i = 0; i < v->nr_values; i++)
		free(v->values[i].target);
	free(v->values);
	v->values = NULL;
	v->nr_values = 0;
	v->values_last = 0;
}

/* Fills the members of S that come from the journal. */
static int read_journal(struct verify_search *s)
{
	const struct verify_search *known;
	struct verify *v = s->v;
	uint64_t after = 0, last;
	int r = 0;

	if (v->values == NULL && (r = read_all(v)) != 0)
		return r;
	known = find_search(v, s->place, s->name);
	if (known != NULL) {
		*s = *known;
		after = v->values_last;
	}
	if (s->target != NULL && (s->target = strdup(s->target)) == NULL)
		return -ENOMEM;
	return verify_each_member(v, after, note_record, s, &last);
}

/* ---- one ---- */

/* HEAD of a repository, of a worktree or of a remote. */
static bool is_head(const char *name)
{
	const char *slash = strrchr(name, '/');

	return strcmp(slash != NULL ? slash + 1 : name, "HEAD") == 0;
}

int verify_last_value(struct verify *v, const struct verify_place *place,
    const char *name, struct verify_value *value)
{
	struct verify_search s = { .v = v, .place = place, .name = name };
	int r;

	r = read_journal(&s);
	/* Without objects, an id cannot be checked. A log does not have the
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
