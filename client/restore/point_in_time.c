#include "client/restore/point_in_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/request/question.h"
#include "proto/lib/time_text.h"

/* ---- parsing ---- */

bool point_in_time_parse(const char *s, struct point_in_time *m,
    struct text *why)
{
	memset(m, 0, sizeof(*m));
	return when_position(s, &m->position) || when_past(s, &m->ms, why);
}

const char *point_in_time_number(const struct point_in_time *m, char buf[32])
{
	const struct refd_position *at = &m->position.at;

	if (at->nr)
		snprintf(buf, 32, "%" PRIu64 ".%u", at->lsn, at->nr);
	else
		snprintf(buf, 32, "%" PRIu64, at->lsn);
	return buf;
}

/* ---- look-up in history ---- */

void point_in_time_request(struct refd_request *req, const struct gitdir *gd)
{
	*req = (struct refd_request){ .verb = REFD_VERB_LOG,
		.git_dir = gd->path,
		.common_dev = gd->dev,
		.common_ino = gd->ino };
	req->select.has_after = true;
}

void point_in_time_ask(struct refd *r, struct refd_request *req,
    struct refd_answer *ans)
{
	int err = refd_log(r, req, QUESTION_MS, ans);

	if (err < 0)
		question_failed(r, err);
	question_refused(ans);
}

/* Gets the record of the first matching change. False if there is none. */
static bool find_one(struct refd *r, struct refd_request *req,
    struct refd_record *record)
{
	struct refd_answer ans;
	bool more = true, found = false;

	req->select.limit = 1;
	while (more && !found) {
		point_in_time_ask(r, req, &ans);
		found = ans.nr_changes > 0;
		/* Only its number and time stay valid after the answer. */
		if (found)
			*record = *ans.changes[0].record;
		more = ans.more;
		refd_answer_done(&ans);
	}
	return found;
}

static void find_begin(struct point_in_time *m, struct refd *r,
    const struct gitdir *gd)
{
	struct refd_request req;
	struct refd_answer ans;

	point_in_time_request(&req, gd);
	req.select.limit = 1;
	point_in_time_ask(r, &req, &ans);
	m->begin = ans.has_gap ? ans.gap : 0;
	refd_answer_done(&ans);
}

static void __attribute__((noreturn)) die_forgotten(
    const struct point_in_time *m)
{
	die("history no longer has the changes up to record %" PRIu64
	    ": the earliest possible value is --at %" PRIu64,
	    m->begin, m->begin);
}

static void check_position(struct point_in_time *m, struct refd *r,
    const struct gitdir *gd)
{
	struct refd_request req;
	struct refd_answer ans;
	char number[32];

	point_in_time_request(&req, gd);
	req.select.limit = 1;
	req.select.after = m->position.at;
	req.select.has_journal = m->position.has_journal;
	memcpy(req.select.journal, m->position.journal,
	    sizeof(req.select.journal));
	point_in_time_ask(r, &req, &ans);
	point_in_time_number(m, number);
	if (ans.has_gap && m->position.has_journal &&
	    memcmp(ans.journal, m->position.journal, sizeof(ans.journal)) != 0)
		die("the position belongs to the journal of a different daemon");
	if (ans.has_gap && m->position.at.lsn < ans.gap) {
		m->begin = ans.gap;
		die_forgotten(m);
	}
	if (ans.has_gap)
		die("there is no record %s yet (for a time, write @%s)", number,
		    number);
	refd_answer_done(&ans);
}

/* The history that is left may begin after the point. A record of any
 * repository up to the point proves the contrary. */
static void check_time(const struct point_in_time *m, struct refd *r)
{
	struct refd_request req = { .verb = REFD_VERB_LOG };
	struct refd_record first = { 0 };
	char when[64];

	req.select.has_after = true;
	req.select.after.lsn = m->begin;
	if (find_one(r, &req, &first) && first.time_ms <= m->ms)
		return;
	if (first.time_ms)
		die("history begins at %s: the earliest possible value is "
		    "--at %" PRIu64,
		    time_text_local(first.time_ms, when), m->begin);
	die_forgotten(m);
}

/* The point is after the last record of the repository up to the time. Clocks
 * may be set back, so records after the point can have earlier times. But an
 * update that is undone by mistake is worse than an update that stays. */
static void find_time(struct point_in_time *m, struct refd *r,
    const struct gitdir *gd)
{
	struct refd_record record = { 0 };
	struct refd_request req;

	point_in_time_request(&req, gd);
	req.select.has_after = false;
	req.select.reverse = true;
	req.select.until_ms = m->ms;
	m->position.at.lsn = m->begin;
	if (find_one(r, &req, &record))
		m->position.at.lsn = record.lsn;
	else if (m->begin)
		check_time(m, r);
}

static void find_first(struct point_in_time *m, struct refd *r,
    const struct gitdir *gd)
{
	struct refd_record first = { 0 };
	struct refd_request req;

	point_in_time_request(&req, gd);
	req.select.after.lsn = m->begin;
	m->is_before_first =
	    !find_one(r, &req, &first) || first.lsn > m->position.at.lsn;
}

void point_in_time_find(struct point_in_time *m, struct refd *r,
    const struct gitdir *gd)
{
	find_begin(m, r, gd);
	if (m->ms)
		find_time(m, r, gd);
	else
		check_position(m, r, gd);
	find_first(m, r, gd);
}
