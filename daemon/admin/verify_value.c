/*
 * Which value a ref had that is broken now.
 *
 * The happy path: the journal's last record whose object is there.
 *
 * Otherwise the log: where the journal knows nothing, or the ref was deleted
 * since, and where lines follow the recorded value's: git wrote those later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"

struct search {
	struct verify *v;
	const struct verify_place *place;
	const char *name;
	/* The journal's. */
	bool has_record;
	uint64_t lsn;
	struct refd_oid oid;
	char *target;
	/* The log's last that is there. */
	bool has_line;
	struct refd_oid line;
	bool met_record, is_after_record;
};

static void forget_record(struct search *s)
{
	free(s->target);
	s->target = NULL;
	s->has_record = false;
}

static int note_record(void *arg, const struct journal_row *row,
    const struct record_member *m)
{
	struct search *s = arg;

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
	const size_t field = REFD_OID_HEX + 1;
	struct search *s = arg;
	struct refd_oid oid;

	if (!ends || len <= 2 * field || memchr(line, '\0', len) != NULL ||
	    refd_oid_parse(line + field, &oid) < 0 ||
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

static void read_log(struct search *s)
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

int verify_last_value(struct verify *v, const struct verify_place *place,
    const char *name, struct verify_value *value)
{
	struct search s = { .v = v, .place = place, .name = name };
	uint64_t last;
	int r;

	r = verify_each_member(v, 0, note_record, &s, &last);
	/* What an id names can't be looked at then; and what HEAD points to no
	 * log tells. */
	if (v->git == NULL && s.target == NULL)
		forget_record(&s);
	else if (r == 0 && v->git != NULL)
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
	if (r == 0 && !s.has_line)
		return -ENOENT;
	value->oid = s.line;
	snprintf(value->from, sizeof(value->from), "its log");
	return r;
}
