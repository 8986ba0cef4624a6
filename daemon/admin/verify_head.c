/*
 * "refd verify --head": are all records up to a noted line of "refd log --head"
 * in the journal, as they were?
 *
 * Happy path: the chain begins with the digest of the trimmed records, and goes
 * on with each record up to that of the line. If it then has the line's digest,
 * the records are proved, because nobody can find other records with this
 * digest, wherever the journal was written.
 *
 * Failure modes:
 *	another journal, a record that is missing, a damaged record, another
 *	digest		1, after a second reading: a daemon may trim meanwhile
 *	all records up to the line are trimmed, or the journal is unreadable
 *			128: the line proves nothing
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/time_text.h"

/* The result of a callback, which is neither an errno nor JOURNAL_UNKNOWN. */
#define STOP 2
/* The daemon makes no checkpoint while a slice is read, so a slice is not
 * larger. The WAL of a busy journal is copied for each slice, so a slice is not
 * smaller. */
#define SLICE_ROWS 4096

struct head_look {
	const struct verify_options *opt;
	uint8_t uuid[16]; /* of the line */
	struct journal_chain line;
	struct journal_chain at;
	uint64_t trimmed;
	int64_t first_us; /* the time of the first record behind them */
	uint64_t missing; /* the first number without a record; 0: none */
	bool goes_on;     /* there are later records */
};

static int add_row(void *arg, const struct journal_row *row)
{
	struct head_look *l = arg;

	l->goes_on = row->lsn > l->line.lsn;
	if (l->goes_on)
		return STOP;
	if (l->at.lsn == l->trimmed)
		l->first_us = row->time_us;
	if (l->missing == 0 && row->lsn != l->at.lsn + 1)
		l->missing = l->at.lsn + 1;
	journal_chain_add(&l->at, row);
	if (row->lsn == l->line.lsn)
		return STOP;
	return interrupt_came() ? -EINTR : 0;
}

static int read_rows(struct head_look *l, struct journal *j)
{
	struct journal_reader *reader = NULL;
	uint64_t last = UINT64_MAX;
	int r = journal_reader_open(j, &reader);

	if (r == 0)
		r = journal_chain_start(reader, &l->at);
	l->trimmed = l->at.lsn;
	while (r == 0 && l->at.lsn != last) {
		last = l->at.lsn;
		r = journal_read(reader, last, UINT64_MAX, false, SLICE_ROWS,
		    add_row, l);
	}
	journal_reader_close(reader);
	return r == STOP ? 0 : r;
}

static int judge(const struct head_look *l, char **said)
{
	const unsigned long long lsn = l->line.lsn, at = l->at.lsn,
				 first = l->trimmed + 1,
				 missing =
				     l->missing != 0 ? l->missing : at + 1;
	char time[TIME_TEXT_MAX];

	if (lsn < first) {
		*said = repo_why("the retention has removed the records up to "
				 "%llu, so the line can't be checked any more",
		    first - 1);
		return 128;
	}
	if (memcmp(&l->at, &l->line, sizeof(l->at)) == 0) {
		*said = repo_why("the records %llu to %llu are as they were: "
				 "none was changed or removed; the first is "
				 "of %s",
		    first, lsn,
		    time_text_utc((uint64_t)l->first_us / 1000, time));
		return 0;
	}
	if (!l->goes_on && at < lsn)
		*said = repo_why("the journal ends at record %llu, before that "
				 "of the line, and has no record %llu",
		    at, missing);
	else if (missing <= lsn)
		*said = repo_why("the records up to %llu are not as they were: "
				 "there is no record %llu",
		    lsn, missing);
	else
		*said = repo_why("the records up to %llu are not as they were: "
				 "one from %llu on was changed",
		    lsn, first);
	return 1;
}

static int look(struct head_look *l, char **said)
{
	struct journal *j = NULL;
	int r, status = 128;

	*said = NULL;
	r = verify_view(l->opt, &j, said);
	if (r == 0 && memcmp(journal_uuid(j), l->uuid, 16) != 0) {
		*said = repo_why("the line is of another journal than that in "
				 "'%s'",
		    l->opt->state);
		status = 1;
	} else if (r == 0 && (r = read_rows(l, j)) == 0) {
		status = judge(l, said);
	} else if (r == -EUCLEAN && j != NULL) {
		*said = journal_damage(j);
		status = 1;
	} else if (*said == NULL) {
		*said = repo_why("can't read the journal in '%s': %s",
		    l->opt->state, strerror(abs(r)));
	}
	journal_view_close(j);
	return interrupt_came() ? INTERRUPT_STATUS : status;
}

int verify_head(const struct verify_options *opt, const char *line, char **said)
{
	struct head_look l = { .opt = opt }, now;
	uint64_t trimmed = UINT64_MAX;
	int status;

	if (!journal_chain_parse(line, l.uuid, &l.line)) {
		*said = repo_why("this is no line of 'refd log --head'");
		return 129;
	}
	for (;;) {
		now = l;
		status = look(&now, said);
		if (status != 1 || now.trimmed == trimmed)
			return status;
		trimmed = now.trimmed;
		free(*said);
	}
}
