#include "client/admin/frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/admin/show.h"
#include "client/request/rows.h"

#define HEAD_LINES 6
/* An empty line and the heading of a table. */
#define TABLE_LINES 2
#define RATE_WIDTH  10
#define NAME_MIN    12

static void add_times(struct text *t, const struct refd_answer *ans,
    const char *what)
{
	static const char *const names[] = { "p50", "p99", "max" };
	size_t i;

	for (i = 0; i < 3; i++) {
		char *key = xasprintf("%s_%s", what, names[i]);

		text_addf(t, " %s ", names[i]);
		show_time(t, rows_number(ans, key));
		free(key);
	}
}

static enum colour state_colour(const struct refd_answer *ans)
{
	if (rows_number(ans, "flush_hangs_s") > 0)
		return COLOUR_ERROR;
	return strcmp(rows_value(ans, "state"), "serving") != 0 ?
	    COLOUR_WARNING :
	    COLOUR_OK;
}

static void add_head(struct text *t, const struct refd_answer *ans,
    size_t columns)
{
	uint64_t ms = rows_number(ans, "span_ms");
	size_t begin = t->len;

	text_addf(t, "refd %s, ", rows_value(ans, "state"));
	if (rows_number(ans, "flush_hangs_s") > 0) {
		text_adds(t, "A FLUSH HANGS for ");
		show_span(t, rows_number(ans, "flush_hangs_s"));
		text_adds(t, " on ");
		text_add_visible(t, rows_value(ans, "flush_hangs_on"));
		text_adds(t, ", ");
	}
	text_adds(t, "up ");
	show_span(t, rows_number(ans, "uptime_s"));
	text_addf(t, ", %" PRIu64 " connection%s",
	    rows_number(ans, "connections"),
	    rows_number(ans, "connections") == 1 ? "" : "s");
	show_cut(t, begin, columns, state_colour(ans));

	begin = t->len;
	text_adds(t, "last ");
	show_span(t, ms / 1000);
	text_adds(t, ": batches/s ");
	show_rate(t, rows_number(ans, "batches"), ms);
	text_adds(t, "  transactions/s ");
	show_rate(t, rows_number(ans, "transactions"), ms);
	text_adds(t, "  refs/s ");
	show_rate(t, rows_number(ans, "refs"), ms);
	show_cut(t, begin, columns, COLOUR_HEADING);

	begin = t->len;
	text_addf(t,
	    "batch       p50 %" PRIu64 " p99 %" PRIu64 " max %" PRIu64
	    " transactions",
	    rows_number(ans, "batch_txns_p50"),
	    rows_number(ans, "batch_txns_p99"),
	    rows_number(ans, "batch_txns_max"));
	show_cut(t, begin, columns, COLOUR_PLAIN);

	begin = t->len;
	text_adds(t, "flush      ");
	add_times(t, ans, "flush_us");
	show_cut(t, begin, columns, COLOUR_PLAIN);
	begin = t->len;
	text_adds(t, "transaction");
	add_times(t, ans, "total_us");
	show_cut(t, begin, columns, COLOUR_PLAIN);
	begin = t->len;
	text_addf(t,
	    "queue: %" PRIu64 " waiting, %" PRIu64 " in batches, %" PRIu64
	    " sessions prepared",
	    rows_number(ans, "waiting"), rows_number(ans, "in_store"),
	    rows_number(ans, "prepared"));
	show_cut(t, begin, columns, COLOUR_PLAIN);
}

static void add_rate(struct text *t, uint64_t nr, uint64_t ms)
{
	struct text rate = { 0 };

	show_rate(&rate, nr, ms);
	text_addf(t, "%*s", RATE_WIDTH, rate.data);
	text_done(&rate);
}

/* The name of a client begins with the number of its account, so people get the
 * account's name. */
static void full_name(struct text *full, const char *kind, const char *name)
{
	char *rest;

	text_clear(full);
	if (!strcmp(kind, "client")) {
		show_user(full, strtoull(name, &rest, 10));
		name = rest;
	}
	text_adds(full, name);
}

static void add_name(struct text *t, const char *kind, const char *name,
    size_t width)
{
	struct text full = { 0 };

	full_name(&full, kind, name);
	show_end(t, full.data, width);
	text_done(&full);
}

static size_t widest(const struct refd_answer *ans, const char *kind)
{
	struct text full = { 0 };
	struct row row = { 0 };
	size_t width = NAME_MIN;

	while (row_next(ans, kind, &row)) {
		full_name(&full, kind, row_value(&row, "name"));
		if (full.len > width)
			width = full.len;
	}
	text_done(&full);
	return width;
}

/* The column is as wide as the names, because the numbers have to stand close
 * to them. */
static size_t name_width(const struct refd_answer *ans, size_t columns)
{
	size_t repos = widest(ans, "repo"), clients = widest(ans, "client");
	size_t width = repos > clients ? repos : clients;

	if (width + 2 * RATE_WIDTH <= columns)
		return width;
	return columns > 2 * RATE_WIDTH + NAME_MIN ? columns - 2 * RATE_WIDTH :
						     NAME_MIN;
}

static void add_busiest(struct text *t, const struct refd_answer *ans,
    const char *kind, const char *title, size_t lines, size_t columns)
{
	size_t width = name_width(ans, columns), begin;
	struct row row = { 0 };
	uint64_t ms;

	text_addc(t, '\n');
	begin = t->len;
	show_end(t, title, width);
	text_addf(t, "%*s%*s", RATE_WIDTH, "TXN/S", RATE_WIDTH, "REFS/S");
	show_cut(t, begin, columns, COLOUR_HEADING);
	while (lines-- > 0 && row_next(ans, kind, &row)) {
		begin = t->len;
		ms = row_number(&row, "span_ms");
		add_name(t, kind, row_value(&row, "name"), width);
		add_rate(t, row_number(&row, "transactions"), ms);
		add_rate(t, row_number(&row, "refs"), ms);
		show_cut(t, begin, columns, COLOUR_PLAIN);
	}
}

static size_t count(const struct refd_answer *ans, const char *kind)
{
	struct row row = { 0 };
	size_t nr = 0;

	while (row_next(ans, kind, &row))
		nr++;
	return nr;
}

void frame_render(const struct refd_answer *ans, size_t lines, size_t columns,
    struct text *t)
{
	size_t clients = count(ans, "client"), repos = count(ans, "repo");
	size_t room, third;

	add_head(t, ans, columns);
	if (lines == 0)
		lines = HEAD_LINES + 2 * TABLE_LINES + clients + repos;
	if (lines < HEAD_LINES + 2 * TABLE_LINES + 2)
		return;
	room = lines - HEAD_LINES - 2 * TABLE_LINES;
	/* Clients get at most a third, unless there is room. */
	if (clients + repos > room) {
		third = room < 6 ? 1 : room / 3;
		if (clients > third)
			clients = repos > room - third ? third : room - repos;
		repos = room - clients;
	}
	add_busiest(t, ans, "repo", "REPOSITORY", repos, columns);
	add_busiest(t, ans, "client", "CLIENT", clients, columns);
}
