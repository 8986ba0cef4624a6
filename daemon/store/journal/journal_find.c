/*
 * Searches history's index: SQL for a question, run for one segment after the
 * other.
 *
 * Happy path: one SELECT for each ref, pattern or user, joined by UNION ALL.
 * Each SELECT of a whole name reads one range of a tree in the order of the
 * LSNs, so SQLite merges them and reads no further than the caller. A pattern
 * reads all names that begin with its literal part, and sorts what it finds.
 *
 * Failure modes: those of journal_index.c. A pattern with very many names is
 * interrupted, because other clients wait for their turns.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/journal/journal_index_internal.h"
#include "proto/limits.h"
#include "proto/pattern.h"

/* Steps of SQLite's virtual machine between two looks at the clock, about 0.1
 * ms. */
#define STEPS 1000

/* ---- the SQL ---- */

/* Parameters of all SELECTs. */
enum { SEGMENT = 1, AFTER, BEFORE, REPO, OWN };
/* Parameters of each pattern, from OWN: the name, or the range of names and the
 * pattern. */
enum { FROM, TO, PATTERN, PER_PATTERN };
enum { SOURCE = OWN, USER };

static const char within[] = " WHERE segment = ?1 AND lsn > ?2 AND lsn < ?3";
static const char damaged[] = " UNION ALL SELECT lsn FROM damaged"
			      " WHERE lsn > ?2 AND lsn < ?3 ORDER BY 1";

static void add_select(sqlite3_str *sql, const char *table, const char *and)
{
	sqlite3_str_appendf(sql, "%sSELECT lsn FROM %s%s%s",
	    sqlite3_str_length(sql) > 0 ? " UNION ALL " : "", table,
	    within, and);
}

static void add_pattern(sqlite3_str *sql, size_t i, bool has_repo,
    const char *pattern)
{
	int own = OWN + (int)i * PER_PATTERN;

	add_select(sql,
	    has_repo ? "change NOT INDEXED" :
		       "change INDEXED BY change_anywhere",
	    has_repo ? " AND repo = ?4" : "");
	if (refd_pattern_is_name(pattern))
		sqlite3_str_appendf(sql, " AND ref = ?%d", own + FROM);
	else
		sqlite3_str_appendf(sql,
		    " AND ref >= ?%d AND ref < ?%d AND matches(?%d, ref)",
		    own + FROM, own + TO, own + PATTERN);
}

/* NULL: no such entries, or out of memory. To be freed by sqlite3_free(). */
static char *make_sql(uint64_t repo, const struct refd_selection *select,
    bool down)
{
	sqlite3_str *sql = sqlite3_str_new(NULL);
	size_t i;

	for (i = 0; i < select->nr_patterns; i++)
		add_pattern(sql, i, repo != 0, select->patterns[i]);
	if (i == 0 && (repo != 0 || select->has_uid))
		add_select(sql, "source", " AND source = ?5");
	if (i == 0 && repo == 0 && select->user != NULL)
		add_select(sql, "source", " AND source = ?6");
	if (sqlite3_str_length(sql) > 0)
		sqlite3_str_appendf(sql, "%s%s", damaged, down ? " DESC" : "");
	return sqlite3_str_finish(sql);
}

/* ---- its parameters ---- */

/* The least text that does not begin with LEN bytes of TEXT. Where there is
 * none: a blob, which SQLite sorts behind all texts. */
static int bind_behind(sqlite3_stmt *s, int parameter, const char *text,
    size_t len)
{
	char end[REFD_REFNAME_MAX];

	while (len > 0 && (uint8_t)text[len - 1] == 0xff)
		len--;
	if (len == 0 || len > sizeof(end))
		return sqlite3_bind_zeroblob(s, parameter, 0);
	memcpy(end, text, len);
	end[len - 1] = (char)((uint8_t)end[len - 1] + 1);
	return sqlite3_bind_text(s, parameter, end, (int)len, SQLITE_TRANSIENT);
}

/* Without memory a parameter would be NULL, and match nothing, so the function
 * returns an SQLite code. Only bind_behind() needs memory. */
static int bind_pattern(sqlite3_stmt *s, size_t i, const char *pattern)
{
	int own = OWN + (int)i * PER_PATTERN;
	size_t literal = refd_pattern_literal(pattern);

	sqlite3_bind_text(s, own + FROM, pattern, (int)literal, SQLITE_STATIC);
	if (refd_pattern_is_name(pattern))
		return SQLITE_OK;
	sqlite3_bind_text(s, own + PATTERN, pattern, -1, SQLITE_STATIC);
	return bind_behind(s, own + TO, pattern, literal);
}

static int bind_all(sqlite3_stmt *s, uint64_t repo,
    const struct refd_selection *select)
{
	int rc = SQLITE_OK;
	size_t i;

	sqlite3_bind_int64(s, REPO, (sqlite3_int64)repo);
	for (i = 0; i < select->nr_patterns && rc == SQLITE_OK; i++)
		rc = bind_pattern(s, i, select->patterns[i]);
	if (select->nr_patterns > 0)
		return rc;
	if (repo != 0)
		sqlite3_bind_int64(s, SOURCE, journal_index_source(repo));
	else if (select->has_uid)
		sqlite3_bind_int64(s, SOURCE, select->uid);
	if (repo == 0 && select->user != NULL)
		sqlite3_bind_text(s, USER, select->user, -1, SQLITE_STATIC);
	return SQLITE_OK;
}

/* ---- running ---- */

static void matches(sqlite3_context *ctx, int nr, sqlite3_value **values)
{
	const char *pattern = (const char *)sqlite3_value_text(values[0]);
	const char *ref = (const char *)sqlite3_value_text(values[1]);

	(void)nr;
	if (pattern == NULL || ref == NULL)
		sqlite3_result_error_nomem(ctx);
	else
		sqlite3_result_int(ctx, refd_pattern_matches(pattern, ref));
}

int journal_index_search_prepare(struct journal_index *x)
{
	return sqlite3_create_function(x->db, "matches", 2, SQLITE_UTF8, NULL,
	    matches, NULL, NULL);
}

/* Has the time passed without a row? */
static int is_late(void *arg)
{
	struct journal_index *x = arg;

	return x->found == 0 && SYS(x->sys, now_mono) > x->until_ns;
}

int journal_index_search(struct journal_index *x, uint64_t repo,
    const struct refd_selection *select, bool down)
{
	char *sql;
	int rc;

	if (repo == 0 && select->nr_patterns == 0 && !select->has_uid &&
	    select->user == NULL)
		return 1;
	sql = make_sql(repo, select, down);
	if (sql == NULL)
		return -ENOMEM;
	rc = journal_prepare(x->db, sql, &x->search);
	sqlite3_free(sql);
	if (rc == SQLITE_OK)
		rc = bind_all(x->search, repo, select);
	if (rc != SQLITE_OK)
		return journal_errno(rc);
	sqlite3_progress_handler(x->db, STEPS, is_late, x);
	x->down = down;
	return 0;
}

void journal_index_search_in(struct journal_index *x, uint64_t after,
    uint64_t before)
{
	uint64_t lsn = x->down ? before - 1 : after + 1;

	sqlite3_reset(x->search);
	sqlite3_bind_int64(x->search, SEGMENT,
	    (sqlite3_int64)(lsn >> JOURNAL_INDEX_SEGMENT_BITS));
	sqlite3_bind_int64(x->search, AFTER, journal_signed(after));
	sqlite3_bind_int64(x->search, BEFORE, journal_signed(before));
	x->found = 0;
}

int journal_index_search_next(struct journal_index *x, int64_t until_ns,
    uint64_t *lsn)
{
	int rc;

	x->until_ns = until_ns;
	do {
		rc = sqlite3_step(x->search);
		*lsn = rc == SQLITE_ROW ?
		    (uint64_t)sqlite3_column_int64(x->search, 0) :
		    0;
		/* A row of several matching refs comes several times, so equal
		 * LSNs are passed over. */
	} while (rc == SQLITE_ROW && *lsn == x->found);
	x->found = *lsn;
	if (rc == SQLITE_ROW)
		return 1;
	sqlite3_reset(x->search);
	if (rc == SQLITE_INTERRUPT)
		return -EINTR;
	return rc == SQLITE_DONE ? 0 : journal_errno(rc);
}

void journal_index_search_done(struct journal_index *x)
{
	if (x->search == NULL)
		return;
	sqlite3_progress_handler(x->db, 0, NULL, NULL);
	sqlite3_finalize(x->search);
	x->search = NULL;
}

/* ---- times ---- */

static int ask_span(sqlite3_stmt *s, int64_t us, bool *has, uint64_t *nr)
{
	int rc;

	sqlite3_bind_int64(s, 1, us);
	rc = sqlite3_step(s);
	*has = rc == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL;
	if (*has)
		*nr = (uint64_t)sqlite3_column_int64(s, 0);
	sqlite3_reset(s);
	return rc == SQLITE_ROW ? 0 : journal_errno(rc);
}

int journal_index_between(struct journal_index *x, int64_t since_us,
    int64_t until_us, uint64_t *after, uint64_t *before)
{
	uint64_t nr, lsn;
	bool has;
	int r = 0;

	if (since_us > 0) {
		r = ask_span(x->stmts[INDEX_SINCE], since_us, &has, &nr);
		lsn = has ? nr << JOURNAL_INDEX_SPAN_BITS : x->last + 1;
		if (r == 0 && lsn > 0 && lsn - 1 > *after)
			*after = lsn - 1;
	}
	if (r == 0 && until_us < INT64_MAX) {
		r = ask_span(x->stmts[INDEX_UNTIL], until_us, &has, &nr);
		lsn = has ? (nr + 1) << JOURNAL_INDEX_SPAN_BITS : 0;
		if (r == 0 && lsn < *before)
			*before = lsn;
	}
	return r;
}
