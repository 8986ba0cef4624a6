#include "client/deliver/intake.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/lib/change_json.h"
#include "proto/lib/clock.h"
#include "proto/lib/json.h"

struct intake {
	struct outbox *outbox;
	struct receiver *receivers;
	size_t nr;
	const struct outbox_position *asked;
};

bool intake_is_same(const struct outbox_position *a,
    const struct outbox_position *b)
{
	if (!a->is_known || !b->is_known)
		return a->is_known == b->is_known;
	return a->at.lsn == b->at.lsn && a->at.nr == b->at.nr &&
	    !memcmp(a->journal, b->journal, sizeof(a->journal));
}

static void add(struct intake *in, struct stream *s, struct outbox_row *row)
{
	row->time_ms = clock_wall_ms();
	row->repo = s->repo;
	outbox_add(in->outbox, s->to->id, row);
	streams_add(s, 1, row->len);
}

static void add_overflow(struct intake *in, struct stream *s,
    struct outbox_row *row, uint64_t lsn)
{
	struct outbox_row gap = { .id = row->id, .event = (char *)"gap" };
	FILE *to = open_memstream(&gap.body, &gap.len);
	struct json j = { .to = to };

	if (!to)
		die("out of memory");
	json_begin(&j, NULL, '{');
	json_text(&j, "position", row->id);
	json_count(&j, "gap", lsn);
	json_text(&j, "repo", s->repo);
	json_end(&j, '}');
	fclose(to);
	say_warning("endpoint '%s' does not keep up with '%s': its next "
		    "changes are replaced by a gap",
	    s->to->endpoint->name, s->repo);
	add(in, s, &gap);
	free(gap.body);
}

static void add_change(struct intake *in, struct receiver *to,
    const struct refd_record *record, struct outbox_row *row)
{
	struct stream *s = streams_of(to, record->repo);

	if (s->bytes < INTAKE_STREAM_BYTES) {
		s->drops = false;
		add(in, s, row);
	} else if (!s->drops) {
		s->drops = true;
		add_overflow(in, s, row, record->lsn);
	}
}

/* Calls for every receiver which the answer is for. */
#define FOR_READERS(in, to)                                                    \
	for (to = (in)->receivers; to < (in)->receivers + (in)->nr; to++)      \
		if (!to->is_full && intake_is_same(&to->position, in->asked))

static void take_gap(struct intake *in, const struct refd_answer *ans)
{
	char id[CHANGE_JSON_POSITION_MAX + 1];
	struct outbox_row row = { .id = id, .event = (char *)"gap" };
	FILE *to_body = open_memstream(&row.body, &row.len);
	struct receiver *to;

	if (!to_body)
		die("out of memory");
	change_json_position(ans, ans->gap, 0, id);
	change_json_gap(to_body, ans);
	fclose(to_body);
	FOR_READERS(in, to)
	{
		say_warning("endpoint '%s' missed changes: what happened up to "
			    "%" PRIu64 " is not known any more",
		    to->endpoint->name, ans->gap);
		add(in, streams_of(to, ""), &row);
	}
	free(row.body);
}

static void take_change(struct intake *in, const struct refd_answer *ans,
    const struct refd_change *c)
{
	char id[CHANGE_JSON_POSITION_MAX + 1];
	struct outbox_row row = { .id = id, .event = (char *)"change" };
	FILE *to_body = open_memstream(&row.body, &row.len);
	struct receiver *to;

	if (!to_body)
		die("out of memory");
	change_json_position(ans, c->record->lsn, c->nr, id);
	change_json(to_body, ans, c, NULL);
	fclose(to_body);
	FOR_READERS(in, to)
	{
		add_change(in, to, c->record, &row);
	}
	free(row.body);
}

static void move_on(struct intake *in, const struct refd_answer *ans)
{
	struct outbox_position next = { .is_known = true, .at = ans->next };
	struct receiver *to;

	memcpy(next.journal, ans->journal, sizeof(next.journal));
	if (intake_is_same(&next, in->asked))
		return;
	FOR_READERS(in, to)
	{
		outbox_move(in->outbox, to->id, &next);
		to->position = next;
		to->is_full = to->bytes >= INTAKE_RECEIVER_BYTES;
	}
}

/* A new endpoint has no position, so the past is no gap for this endpoint. */
void intake_take(struct outbox *outbox, struct receiver *receivers, size_t nr,
    const struct outbox_position *asked, const struct refd_answer *ans)
{
	struct intake in = { .outbox = outbox,
		.receivers = receivers,
		.nr = nr,
		.asked = asked };
	size_t i;

	if (ans->has_gap && asked->is_known)
		take_gap(&in, ans);
	for (i = 0; i < ans->nr_changes; i++)
		take_change(&in, ans, &ans->changes[i]);
	move_on(&in, ans);
}

void intake_reopen(struct receiver *to)
{
	if (to->bytes < INTAKE_RECEIVER_BYTES / 2)
		to->is_full = false;
}
