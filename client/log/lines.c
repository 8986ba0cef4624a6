#include "client/log/lines.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/git/quote.h"
#include "client/log/when.h"
#include "client/request/git_messages.h"
#include "proto/lib/time_text.h"
#include "proto/utf8.h"

/* ---- a table ---- */

/* Cells are visible UTF-8. Zero-initialised: all empty. */
struct columns_row {
	struct text cells[COLUMNS_MAX];
	enum colour colour; /* of the last cell */
	struct text below;  /* lines that follow the row */
};

#define LEAST_WIDTH 80
#define DOTS        "..."
#define DOTS_WIDTH  3

size_t columns_of_terminal(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t width = 0;

	if ((!columns || !cli_number(columns, 10000, &width)) &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	return width < LEAST_WIDTH ? LEAST_WIDTH : (size_t)width;
}

static void measure(struct columns *c, size_t i, const char *s)
{
	size_t width = utf8_width(s);

	if (c->widest[i] < width)
		c->widest[i] = width;
}

/* The widest column shrinks, until a line fits or every column has its least
 * width. */
static void fit(const struct columns *c, size_t width[COLUMNS_MAX])
{
	size_t i, total = c->nr - 1, at;

	for (i = 0; i < c->nr; i++) {
		width[i] = c->widest[i];
		total += width[i];
	}
	for (; total > c->width; total--) {
		at = c->nr;
		for (i = 0; i < c->nr; i++)
			if (width[i] > c->list[i].least &&
			    (at == c->nr || width[i] > width[at]))
				at = i;
		if (at == c->nr)
			break;
		width[at]--;
	}
}

static void add_blanks(struct text *t, size_t nr)
{
	for (; nr > 0; nr--)
		text_addc(t, ' ');
}

static void cut(struct text *t, const char *s, size_t width, bool cuts_begin)
{
	size_t nr = utf8_width(s);

	if (nr <= width) {
		text_adds(t, s);
	} else if (cuts_begin) {
		text_adds(t, DOTS);
		text_adds(t, s + utf8_skip(s, nr - (width - DOTS_WIDTH)));
	} else {
		text_add(t, s, utf8_skip(s, width - DOTS_WIDTH));
		text_adds(t, DOTS);
	}
}

/* No blanks follow the last cell. */
static void add_cell(struct text *out, const struct columns *c, size_t i,
    const char *s, size_t width, enum colour colour)
{
	struct text cell = { 0 };
	size_t len;

	cut(&cell, s, width, c->list[i].cuts_begin);
	len = cell.data ? utf8_width(cell.data) : 0;
	if (i > 0)
		text_addc(out, ' ');
	if (c->list[i].is_number)
		add_blanks(out, width - len);
	if (cell.data)
		text_add_colour(out, colour, cell.data);
	if (!c->list[i].is_number && i + 1 < c->nr)
		add_blanks(out, width - len);
	text_done(&cell);
}

static void add_heading(struct columns *c, const size_t width[],
    struct text *out)
{
	size_t i;

	for (i = 0; i < c->nr; i++)
		add_cell(out, c, i, c->list[i].heading, width[i],
		    COLOUR_HEADING);
	text_addc(out, '\n');
	c->has_heading = true;
}

static const char *cell_text(const struct columns_row *row, size_t i)
{
	return row->cells[i].data ? row->cells[i].data : "";
}

/* Appends the rows, and before the first rows the heading. Columns get wider
 * with later rows, never narrower. */
static void columns_add(struct columns *c, const struct columns_row *rows,
    size_t nr, struct text *out)
{
	size_t width[COLUMNS_MAX], i, k;

	for (i = 0; i < c->nr; i++) {
		measure(c, i, c->list[i].heading);
		for (k = 0; k < nr; k++)
			measure(c, i, cell_text(&rows[k], i));
	}
	fit(c, width);
	if (nr > 0 && !c->has_heading)
		add_heading(c, width, out);
	for (k = 0; k < nr; k++) {
		for (i = 0; i < c->nr; i++)
			add_cell(out, c, i, cell_text(&rows[k], i), width[i],
			    i + 1 < c->nr ? c->list[i].colour : rows[k].colour);
		text_addc(out, '\n');
		if (rows[k].below.data)
			text_adds(out, rows[k].below.data);
	}
}

/* ---- changes ---- */

/* Hex digits of an object id in a table, as in git. */
#define SHORT_OID 7

#define LEFT                                                                   \
	{ .heading = "time", .colour = COLOUR_DIM, .least = COLUMNS_NEVER },   \
	    { .heading = "record",                                             \
		    .colour = COLOUR_OID,                                      \
		    .least = COLUMNS_NEVER,                                    \
		    .is_number = true },                                       \
	    { .heading = "who", .least = 11 }
#define REPOSITORY                                                             \
	{ .heading = "repository",                                             \
		.colour = COLOUR_REF,                                          \
		.least = 10,                                                   \
		.cuts_begin = true }
#define RIGHT                                                                  \
	{ .heading = "ref",                                                    \
		.colour = COLOUR_REF,                                          \
		.least = 12,                                                   \
		.cuts_begin = true },                                          \
	    { .heading = "change", .least = 19 }

#define NR(list) (sizeof(list) / sizeof((list)[0]))

static const struct column of_all[] = { LEFT, REPOSITORY, RIGHT };
static const struct column of_one[] = { LEFT, RIGHT };

/* ---- cells ---- */

static void add_oid(struct text *t, const struct lines *l, bool given,
    const struct refd_oid *oid, enum refd_object_format format)
{
	char hex[REFD_OID_MAX_HEX + 1];

	text_addf(t, "%.*s", l->is_table ? SHORT_OID : REFD_OID_MAX_HEX,
	    given ? refd_oid_hex(oid, format, hex) : "?");
}

/* In a table, an update is "old..new" alone, as git push prints it. */
static enum colour add_outcome(struct text *t, const struct lines *l,
    const struct refd_change *c)
{
	enum refd_object_format format = c->record->object_format;
	bool had = c->has_old && !refd_oid_is_null(&c->old_oid);
	bool gone = c->has_new && refd_oid_is_null(&c->new_oid);

	if (c->target) {
		text_adds(t, "symbolic: ");
		text_add_visible(t, c->target);
	} else if (c->has_old && c->has_new &&
	    refd_oid_eq(&c->old_oid, &c->new_oid)) {
		text_adds(t, "unchanged ");
		add_oid(t, l, had, &c->old_oid, format);
	} else if (gone) {
		text_adds(t, "deleted ");
		add_oid(t, l, c->has_old, &c->old_oid, format);
		return COLOUR_WARNING;
	} else if (c->has_old && !had) {
		text_adds(t, "created ");
		add_oid(t, l, c->has_new, &c->new_oid, format);
		return COLOUR_OK;
	} else {
		text_adds(t, l->is_table ? "" : "updated ");
		add_oid(t, l, c->has_old, &c->old_oid, format);
		text_adds(t, "..");
		add_oid(t, l, c->has_new, &c->new_oid, format);
	}
	return COLOUR_PLAIN;
}

static enum colour add_change(struct text *t, const struct lines *l,
    const struct refd_change *c)
{
	if (c->record->voids)
		text_addf(t, "took back %" PRIu64, c->record->voids);
	else if (c->status != REFD_OK)
		text_adds(t, "rejected");
	else
		return add_outcome(t, l, c);
	return COLOUR_ERROR;
}

/* The reason of a failure, or the message of the log. */
static void add_reason(struct text *t, const struct refd_change *c)
{
	const char *message = c->record->message;
	struct text reason = { 0 };

	if (c->status != REFD_OK && c->text)
		git_messages_text(c->status, c->text, &reason);
	else if (c->status != REFD_OK)
		text_adds(&reason, refd_status_text(c->status));
	else if (message)
		text_adds(&reason, message);
	else if (c->record->origin == REFD_ORIGIN_SEEN)
		text_adds(&reason, "seen on disk");
	if (reason.data)
		text_add_visible(t, reason.data);
	text_done(&reason);
}

static const char *identity(const struct refd_record *rec, const char *name)
{
	size_t i;

	for (i = 0; i < rec->nr_identities; i++)
		if (!strcmp(rec->identities[i].name, name))
			return rec->identities[i].value;
	return NULL;
}

/* Neighbours mostly have the same account, and a look-up may ask a directory
 * service, so the last account is kept. */
static const char *account_name(uint32_t uid)
{
	static struct text name;
	static uint32_t known;
	const struct passwd *pw;

	if (name.len && known == uid)
		return name.data;
	known = uid;
	text_clear(&name);
	pw = getpwuid(uid);
	if (pw)
		text_add_visible(&name, pw->pw_name);
	else
		text_addf(&name, "uid=%u", uid);
	return name.data;
}

/* SSH_CONNECTION begins with the address of the client. */
static void add_address(struct text *t, const char *connection)
{
	char *address = xstrdup(connection);

	address[strcspn(address, " ")] = '\0';
	text_adds(t, " from ");
	text_add_visible(t, address);
	free(address);
}

void lines_add_who(struct text *t, const struct refd_record *rec)
{
	const char *account = account_name(rec->uid),
		   *person = refd_identity_person(rec->identities,
		       rec->nr_identities);
	const char *connection = identity(rec, "SSH_CONNECTION");

	text_adds(t, account);
	if (person && strcmp(person, account) != 0) {
		text_adds(t, " (");
		text_add_visible(t, person);
		text_addc(t, ')');
	} else if (!person && connection) {
		add_address(t, connection);
	}
}

static void add_time(struct text *t, const struct lines *l, uint64_t ms,
    uint64_t now_ms)
{
	char buf[64];

	text_adds(t,
	    l->is_relative ? when_relative(ms, now_ms, buf) :
			     time_text_utc(ms, buf));
}

static void make_row(const struct lines *l, const struct refd_change *c,
    uint64_t now_ms, struct columns_row *row)
{
	const struct refd_record *rec = c->record;
	struct text *cell = row->cells, reason = { 0 };

	add_time(cell++, l, rec->time_ms, now_ms);
	text_addf(cell, "%" PRIu64, rec->lsn);
	if (!l->is_table)
		text_addf(cell, ".%u", c->nr);
	lines_add_who(++cell, rec);
	if (l->has_repo || !l->is_table)
		text_add_visible(++cell, *rec->repo ? rec->repo : "-");
	text_add_visible(++cell, c->name);
	row->colour = add_change(++cell, l, c);
	add_reason(&reason, c);
	if (l->is_table && reason.len)
		text_adds(cell, ": ");
	text_adds(l->is_table ? cell : ++cell, reason.data ? reason.data : "");
	text_done(&reason);
}

/* ---- -v ---- */

/* A shell would get a different name. */
static bool is_visible(const char *s)
{
	struct text t = { 0 };
	bool is;

	text_add_visible(&t, s);
	is = t.len && !strcmp(t.data, s);
	text_done(&t);
	return is;
}

/* The command that brings the old value back: refd restore goes back to the
 * record before this record, and leaves symbolic refs and HEAD alone. */
static void add_restore(struct text *t, const struct refd_change *c)
{
	const struct refd_record *rec = c->record;

	if (c->status != REFD_OK || rec->voids || c->target || !c->has_old ||
	    !c->has_new || refd_oid_is_null(&c->old_oid) ||
	    refd_oid_eq(&c->old_oid, &c->new_oid) ||
	    !has_prefix(c->name, "refs/") || strpbrk(c->name, "*?") ||
	    !is_visible(c->name) || !is_visible(rec->repo))
		return;
	text_adds(t, "    undo: refd restore --repo ");
	quote_shell(rec->repo, t);
	text_adds(t, " --ref ");
	quote_shell(c->name, t);
	text_addf(t, " --at %" PRIu64 "\n", rec->lsn - 1);
}

static void add_fact(struct text *t, const char *name, const char *value)
{
	text_addf(t, "    %s: ", name);
	text_add_visible(t, value);
	text_addc(t, '\n');
}

/* In full: a table cuts long names. */
static void add_details(struct text *t, const struct refd_change *c)
{
	const struct refd_record *rec = c->record;
	char hex[REFD_OID_MAX_HEX + 1], txid[REFD_TXID_HEX + 1];
	struct text reason = { 0 };
	size_t i;

	text_addf(t, "    record %" PRIu64 ".%u, transaction %s\n", rec->lsn,
	    c->nr, refd_txid_hex(&rec->txid, txid));
	add_fact(t, "repository", *rec->repo ? rec->repo : "-");
	add_fact(t, "ref", c->name);
	if (c->has_old)
		add_fact(t, "old",
		    refd_oid_hex(&c->old_oid, rec->object_format, hex));
	if (c->has_new)
		add_fact(t, "new",
		    refd_oid_hex(&c->new_oid, rec->object_format, hex));
	add_reason(&reason, c);
	if (reason.len)
		add_fact(t, c->status == REFD_OK ? "message" : "reason",
		    reason.data);
	text_done(&reason);
	text_addf(t, "    client: uid %u, pid %" PRIu64 "\n", rec->uid,
	    rec->pid);
	for (i = 0; i < rec->nr_identities; i++)
		add_fact(t, rec->identities[i].name, rec->identities[i].value);
	if (rec->committer)
		add_fact(t, "committer, not verified", rec->committer);
	add_restore(t, c);
}

/* ---- all ---- */

static void add_tabbed(const struct columns_row *row, struct text *out)
{
	size_t i;

	for (i = 0; i < LINES_FIELDS; i++) {
		text_adds(out, i > 0 ? "\t" : "");
		text_adds(out, row->cells[i].data);
	}
	text_addc(out, '\n');
	if (row->below.data)
		text_adds(out, row->below.data);
}

static void free_rows(struct columns_row *rows, size_t nr)
{
	size_t i, k;

	for (i = 0; i < nr; i++) {
		for (k = 0; k < COLUMNS_MAX; k++)
			text_done(&rows[i].cells[k]);
		text_done(&rows[i].below);
	}
	free(rows);
}

void lines_add(struct lines *l, const struct refd_answer *ans, uint64_t now_ms,
    struct text *out)
{
	struct columns_row *rows = xcalloc(ans->nr_changes, sizeof(*rows));
	size_t i, nr = ans->nr_changes;

	for (i = 0; i < nr; i++) {
		make_row(l, &ans->changes[i], now_ms, &rows[i]);
		if (l->is_verbose)
			add_details(&rows[i].below, &ans->changes[i]);
	}
	l->columns.list = l->has_repo ? of_all : of_one;
	l->columns.nr = l->has_repo ? NR(of_all) : NR(of_one);
	if (l->is_table)
		columns_add(&l->columns, rows, nr, out);
	for (i = 0; i < nr && !l->is_table; i++)
		add_tabbed(&rows[i], out);
	free_rows(rows, nr);
}
