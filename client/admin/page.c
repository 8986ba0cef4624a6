#include "client/admin/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/admin/show.h"
#include "client/admin/slowlog.h"
#include "client/admin/summary.h"
#include "client/log/lines.h"
#include "client/request/question.h"
#include "proto/lib/clock.h"

#define USERS_MAX 10
#define SLOW_MAX  20
#define LAST_MS   1000 /* of the last question about history, at least */
/* The axis of times: 400 units for seven decades from 10 us on. */
#define AXIS   400
#define DECADE 57

/* The policy forbids scripts and all other files, so that a name that was not
 * escaped could not run or load anything either. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta name=\"robots\" content=\"noindex\">\n"
    "<meta http-equiv=\"refresh\" content=\"60\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
    "'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "base-uri 'none'\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
    ":root { color-scheme: light dark; --back: #fff; --text: #1f2328;\n"
    "  --line: #ccc; --ok: #1a7f37; --warning: #9a6700; --error: #cf222e }\n"
    "@media (prefers-color-scheme: dark) { :root { --back: #111;\n"
    "  --text: #e6e6e6; --line: #555; --ok: #3fb950; --warning: #d29922;\n"
    "  --error: #ff7b72 } }\n"
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem;\n"
    "  margin: 0 auto; padding: 0 1rem; overflow-wrap: anywhere;\n"
    "  background: var(--back); color: var(--text) }\n"
    "p { margin: .3rem 0 } .below { margin-left: 1.5rem }\n"
    ".ok { color: var(--ok) } .warning { color: var(--warning) }\n"
    ".error { color: var(--error) } .ok, .warning, .error {\n"
    "  border-left: .4rem solid; padding-left: .6rem; font-weight: 600 }\n"
    "div { overflow-x: auto; overflow-wrap: normal }\n"
    "table { border-collapse: collapse; width: 100% }\n"
    "th, td { text-align: left; vertical-align: top; padding: .2rem .5rem\n"
    "  .2rem 0; border-bottom: 1px solid var(--line) }\n"
    ".name { min-width: 8rem; overflow-wrap: anywhere }\n"
    ".number { white-space: nowrap } meter { width: 100% }\n"
    "svg { display: block; width: 100%; max-width: 30rem }\n"
    "svg text { font-size: 26px; fill: currentColor }\n"
    "@media (min-width: 40rem) { svg text { font-size: 14px } }\n"
    "line { stroke: var(--line) } rect { fill: var(--ok) }\n"
    ".slow { fill: var(--error) }\n"
    "</style>\n";

/* ---- texts ---- */

/* For elements, and for attributes in quotation marks. */
static void add_escaped(struct text *t, const char *s)
{
	size_t len;

	for (;; s += len + 1) {
		len = strcspn(s, "&<>\"'");
		text_add(t, s, len);
		if (!s[len])
			return;
		text_addf(t, "&#%d;", s[len]);
	}
}

static const char *class_of(enum colour colour)
{
	if (colour == COLOUR_OK)
		return "ok";
	if (colour == COLOUR_WARNING)
		return "warning";
	return colour == COLOUR_ERROR ? "error" : "plain";
}

static void add_line(void *arg, enum colour colour, bool is_below,
    const char *line)
{
	struct text *t = arg;

	text_addf(t, "<p class=\"%s%s\">", class_of(colour),
	    is_below ? " below" : "");
	add_escaped(t, line);
	text_adds(t, "</p>\n");
}

static bool is_missing(const struct page *p, enum page_part part)
{
	return p->why[part].data != NULL;
}

/* Begins a section. False: the page has the reason instead. */
static bool add_heading(struct text *t, const struct page *p,
    enum page_part part, const char *heading)
{
	text_addf(t, "<h2>%s</h2>\n", heading);
	if (!is_missing(p, part))
		return true;
	text_adds(t, "<p>Not shown: ");
	add_escaped(t, p->why[part].data);
	text_adds(t, "</p>\n");
	return false;
}

/* ---- the state ---- */

static void add_state(struct text *t, const struct page *p)
{
	text_adds(t, "<title>refd on ");
	add_escaped(t, p->host);
	text_adds(t, "</title>\n</head>\n<body>\n<h1>refd on ");
	add_escaped(t, p->host);
	text_adds(t, "</h1>\n<p>As of ");
	show_moment(t, p->now_ms);
	text_adds(t,
	    ". If this is long ago, the job that writes this page has "
	    "stopped.</p>\n");
	if (!is_missing(p, PAGE_STATUS)) {
		summary_each(&p->parts[PAGE_STATUS], p->now_ms, add_line, t);
		return;
	}
	add_line(t, COLOUR_ERROR, false, "refd gives no state.");
	add_line(t, COLOUR_PLAIN, true, p->why[PAGE_STATUS].data);
	add_line(t, COLOUR_PLAIN, true,
	    "'systemctl status refd' and 'journalctl -u refd' tell why. "
	    "Updates that refd acknowledged as durable are kept, and the "
	    "daemon may be started at any time.");
}

/* ---- flushes and times ---- */

/* Where a time stands on the axis, which is straight within a decade. */
static unsigned place_of(uint64_t us)
{
	unsigned decades = 0;

	for (; us >= 100 && decades < 7; us /= 10)
		decades++;
	if (decades == 7)
		return AXIS;
	return decades * DECADE +
	    (us > 10 ? (unsigned)(us - 10) * DECADE / 90 : 0);
}

static void add_axis(struct text *t)
{
	static const char *const names[] = { "1 ms", "0.1 s", "10 s" };
	size_t i;

	text_adds(t, "<svg viewBox=\"0 0 400 30\" aria-hidden=\"true\">");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		text_addf(t,
		    "<text x=\"%zu\" y=\"24\" text-anchor=\"middle\">%s</text>",
		    2 * (i + 1) * DECADE, names[i]);
	text_adds(t, "</svg>");
}

/* The times of KEY, total_us or flush_us: a row of numbers, and below WHAT a
 * bar from the half to 99%, with a thin end up to the longest. */
static void add_times(struct text *t, const struct refd_answer *ans,
    const char *key, const char *what)
{
	static const char *const ends[] = { "p50", "p99", "max" };
	uint64_t us[3];
	unsigned x[3], i;
	char *name;

	for (i = 0; i < 3; i++) {
		name = xasprintf("%s_%s", key, ends[i]);
		us[i] = rows_number(ans, name);
		x[i] = place_of(us[i]);
		free(name);
	}
	text_addf(t,
	    "<tr><td>%s<svg viewBox=\"0 0 400 14\" aria-hidden=\"true\">",
	    what);
	for (i = 1; i < 7; i++)
		text_addf(t, "<line x1=\"%u\" x2=\"%u\" y2=\"14\"/>",
		    i * DECADE, i * DECADE);
	if (us[2])
		text_addf(t,
		    "<rect x=\"%u\" width=\"%u\" height=\"14\"/>"
		    "<rect class=\"slow\" x=\"%u\" y=\"5\" width=\"%u\" "
		    "height=\"4\"/>",
		    x[0], x[1] > x[0] ? x[1] - x[0] : 1, x[1],
		    x[2] > x[1] ? x[2] - x[1] : 1);
	text_adds(t, "</svg></td>");
	for (i = 0; i < 3; i++) {
		text_adds(t, "<td class=\"number\">");
		if (us[2])
			show_time(t, us[i]);
		text_adds(t, "</td>");
	}
	text_adds(t, "</tr>\n");
}

static void add_speed(struct text *t, const struct page *p)
{
	const struct refd_answer *now = &p->parts[PAGE_TOP];
	const struct refd_answer *all = &p->parts[PAGE_STATS];

	if (!add_heading(t, p, PAGE_STATS, "Flushes and times"))
		return;
	text_adds(t, "<p>Since the start: ");
	show_count(t, rows_number(all, "flushes"), "flush of the journal",
	    "flushes of the journal");
	text_adds(t, " for ");
	show_count(t, rows_number(all, "transactions"), "transaction",
	    "transactions");
	text_adds(t, " with ");
	show_count(t, rows_number(all, "refs_ok"), "ref that is ok",
	    "refs that are ok");
	text_adds(t, ".</p>\n<div><table>\n<tr><th>");
	add_axis(t);
	text_adds(t, "</th><th>half</th><th>99%</th><th>longest</th></tr>\n");
	if (!is_missing(p, PAGE_TOP))
		add_times(t, now, "total_us", "transactions, last seconds");
	add_times(t, all, "total_us", "transactions, since the start");
	if (!is_missing(p, PAGE_TOP))
		add_times(t, now, "flush_us", "flushes, last seconds");
	add_times(t, all, "flush_us", "flushes, since the start");
	text_adds(t,
	    "</table></div>\n<p>The daemon keeps no times in between. For a "
	    "curve over days, let Prometheus read its metrics.</p>\n");
}

/* ---- who changes refs ---- */

static int compare_users(const void *va, const void *vb)
{
	const struct page_user *a = va, *b = vb;

	if (a->nr != b->nr)
		return a->nr < b->nr ? 1 : -1;
	return strcmp(a->name, b->name);
}

/* The owner of a file that was found on disk need not have written the file. */
static struct page_user *find_user(struct page *p,
    const struct refd_record *record)
{
	struct text name = { 0 };
	size_t i;

	if (record->origin == REFD_ORIGIN_SEEN)
		text_adds(&name, "unknown (found on disk)");
	else
		lines_add_who(&name, record);
	for (i = 0; i < p->nr_users; i++)
		if (!strcmp(p->users[i].name, name.data))
			break;
	if (i == p->nr_users) {
		p->users =
		    xroom(p->users, i, &p->users_size, sizeof(*p->users));
		p->users[p->nr_users++] =
		    (struct page_user){ .name = xstrdup(name.data) };
	}
	text_done(&name);
	return &p->users[i];
}

void page_count(struct page *p, const struct refd_answer *ans)
{
	const struct refd_change *change;
	struct page_user *user;
	size_t i;

	for (i = 0; i < ans->nr_changes; i++) {
		change = &ans->changes[i];
		user = find_user(p, change->record);
		user->nr++;
		user->nr_rejected += change->status != REFD_OK;
		p->nr_changes++;
		p->since_ms = change->record->time_ms;
	}
	if (p->nr_users)
		qsort(p->users, p->nr_users, sizeof(*p->users), compare_users);
}

static void add_users(struct text *t, const struct page *p)
{
	const struct page_user *user;
	size_t i;

	if (!add_heading(t, p, PAGE_LOG, "Who changes refs"))
		return;
	text_adds(t, "<p>History, the newest part: ");
	show_count(t, p->nr_changes, "change", "changes");
	if (p->nr_changes) {
		text_adds(t, " since ");
		show_moment(t, p->since_ms);
	}
	text_adds(t,
	    ".</p>\n<div><table>\n<tr><th>user</th><th>changes</th>"
	    "<th>rejected</th></tr>\n");
	for (i = 0; i < p->nr_users && i < USERS_MAX; i++) {
		user = &p->users[i];
		text_adds(t, "<tr><td class=\"name\">");
		add_escaped(t, user->name);
		text_addf(t,
		    "<meter max=\"%" PRIu64 "\" value=\"%" PRIu64
		    "\"></meter></td><td>%" PRIu64 "</td><td>%" PRIu64
		    "</td></tr>\n",
		    p->users[0].nr, user->nr, user->nr, user->nr_rejected);
	}
	text_adds(t, "</table></div>\n");
	if (p->nr_users > USERS_MAX)
		text_addf(t, "<p>%zu users more.</p>\n",
		    p->nr_users - USERS_MAX);
}

/* ---- slow work ---- */

static void add_slow_row(struct text *t, const struct row *row)
{
	struct text user = { 0 };

	text_adds(t, "<tr><td>");
	show_moment(t, row_number(row, "time_ms"));
	text_adds(t, "</td><td class=\"number\">");
	show_time(t, row_number(row, "total_us"));
	text_adds(t, "</td><td>");
	slowlog_add_slowest(t, row);
	text_adds(t, "</td><td class=\"name\">");
	show_user(&user, row_number(row, "uid"));
	add_escaped(t, user.data ? user.data : "");
	text_done(&user);
	text_adds(t, ": ");
	add_escaped(t, row_value(row, "repo"));
	text_addc(t, ' ');
	add_escaped(t, row_value(row, "ref"));
	text_adds(t, row_number(row, "refs") > 1 ? " ...: " : ": ");
	add_escaped(t, row_value(row, "outcome"));
	text_adds(t, "</td></tr>\n");
}

static void add_slow(struct text *t, const struct page *p)
{
	const struct refd_answer *ans = &p->parts[PAGE_SLOW];
	struct row row = { 0 };
	size_t nr = 0;

	if (!add_heading(t, p, PAGE_SLOW, "Slow transactions"))
		return;
	if (!rows_number(ans, "limit_ms")) {
		text_adds(t, "<p>The slow log is off (daemon.slowLog).</p>\n");
		return;
	}
	text_adds(t, "<p>Since the start: ");
	show_count(t, rows_number(ans, "slow_transactions"), "transaction",
	    "transactions");
	text_adds(t, " longer than the limit, now ");
	show_time(t, rows_number(ans, "limit_ms") * 1000);
	text_adds(t,
	    ".</p>\n<div><table>\n<tr><th>when</th><th>time</th>"
	    "<th>slowest stage</th><th>what</th></tr>\n");
	while (nr++ < SLOW_MAX && row_next(ans, "slow", &row))
		add_slow_row(t, &row);
	text_adds(t, "</table></div>\n");
}

void page_render(const struct page *p, struct text *t)
{
	t->is_shown = true;
	text_adds(t, head);
	add_state(t, p);
	if (!is_missing(p, PAGE_STATUS)) {
		add_speed(t, p);
		add_users(t, p);
		add_slow(t, p);
	}
	text_adds(t, "</body>\n</html>\n");
}

/* ---- asking ---- */

/* An answer holds what fits into a turn of the daemon: a part of the changes,
 * or none while the index of history is in the making, or if this user may not
 * read the repositories of the newest rows. */
static int ask_history(struct page *p, struct refd *r, uint64_t deadline)
{
	struct refd_request req = { .select.reverse = true,
		.select.origin = true };
	struct refd_answer *ans = &p->parts[PAGE_LOG];
	int err;

	do {
		refd_answer_done(ans);
		req.select.limit = (uint32_t)(REFD_CHANGES_MAX - p->nr_changes);
		err = refd_log(r, &req, clock_left_ms(deadline), ans);
		if (err == 0)
			page_count(p, ans);
	} while (err == 0 && ans->more && p->nr_changes < REFD_CHANGES_MAX &&
	    clock_left_ms(deadline) > LAST_MS);
	return err;
}

static void ask(struct page *p, struct refd *r, enum page_part part,
    uint64_t deadline)
{
	static const enum refd_verb verbs[] = { REFD_VERB_STATUS,
		REFD_VERB_STATS, REFD_VERB_TOP, REFD_VERB_SLOW, REFD_VERB_LOG };
	struct refd_request req = { .verb = verbs[part] };
	bool is_log = part == PAGE_LOG;
	struct refd_answer *ans = &p->parts[part];
	int err;

	err = is_log ? ask_history(p, r, deadline) :
		       refd_call(r, &req, clock_left_ms(deadline), ans);
	/* The page says since when, so any part of history is right. */
	if (is_log && p->nr_changes)
		return;
	if (err < 0)
		text_adds(&p->why[part], refd_error(r));
	else if (ans->kind == REFD_ANSWER_REFUSED)
		text_adds(&p->why[part],
		    ans->text && *ans->text ? ans->text :
					      refd_status_text(ans->status));
	else if (ans->kind !=
	    (is_log ? REFD_ANSWER_RECORDS : REFD_ANSWER_PAIRS))
		text_adds(&p->why[part], "the answer is to another question");
	else if (ans->more)
		text_adds(&p->why[part], "refd was still reading history");
}

void page_ask(struct page *p, const char *socket)
{
	enum page_part part;
	uint64_t deadline;
	struct refd *r;

	memset(p, 0, sizeof(*p));
	p->now_ms = clock_wall_ms();
	if (gethostname(p->host, sizeof(p->host) - 1) < 0)
		p->host[0] = '\0';
	r = question_try(socket, &p->why[PAGE_STATUS]);
	deadline = clock_deadline_ms(QUESTION_MS);
	/* History may take all the time that is left, so history comes last. */
	for (part = PAGE_STATUS; part < PAGE_PARTS; part++)
		if (!is_missing(p, PAGE_STATUS))
			ask(p, r, part, deadline);
	refd_free(r);
}

void page_done(struct page *p)
{
	size_t i;

	for (i = 0; i < PAGE_PARTS; i++) {
		refd_answer_done(&p->parts[i]);
		text_done(&p->why[i]);
	}
	for (i = 0; i < p->nr_users; i++)
		free(p->users[i].name);
	free(p->users);
	memset(p, 0, sizeof(*p));
}
