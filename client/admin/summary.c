#include "client/admin/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/admin/show.h"
#include "client/refd.h"
#include "client/request/rows.h"

#define REMEDY_INDENT 4
#define LOG_LINES     3
/* Older lines of the log are printed only with -v. */
#define LOG_AGE_MS (24 * 3600 * 1000ULL)

struct summary {
	const struct refd_answer *ans;
	summary_line_fn *put;
	void *arg;
	bool is_serving; /* without pause */
	size_t nr;       /* sentences about a problem so far */
};

/* Adds the sentence WHAT, which text_done() frees. The problems of a daemon
 * that serves begin with words of their own. A remedy follows. */
static void add_sentence(struct summary *s, enum colour colour,
    struct text *what)
{
	struct text all = { 0 };

	if (s->nr++ > 0)
		text_adds(&all, "Also, ");
	else if (s->is_serving)
		text_adds(&all, "refd serves, but ");
	text_adds(&all, what->data);
	text_addc(&all, '.');
	s->put(s->arg, colour, false, all.data);
	text_done(&all);
	text_done(what);
}

static void add_remedy(struct summary *s, const char *remedy)
{
	s->put(s->arg, COLOUR_PLAIN, true, remedy);
}

static void add_problem(struct summary *s, enum colour colour,
    struct text *what, const char *remedy)
{
	add_sentence(s, colour, what);
	add_remedy(s, remedy);
}

static uint64_t number(const struct summary *s, const char *key)
{
	return rows_number(s->ans, key);
}

static bool is_value(const struct summary *s, const char *key,
    const char *value)
{
	return !strcmp(rows_value(s->ans, key), value);
}

static bool is_state(const struct summary *s, enum refd_server_state state)
{
	return is_value(s, "state", refd_server_state_name(state));
}

/* ---- the state ---- */

static void add_waiting(struct text *what, uint64_t nr)
{
	text_adds(what, "; ");
	show_count(what, nr, "transaction waits", "transactions wait");
}

static void tell_recovery(struct summary *s)
{
	const char *of = strstr(rows_value(s->ans, "progress"), " of ");
	struct text what = { 0 };
	uint64_t total = of ? strtoull(of + 4, NULL, 10) : 0;

	text_adds(&what, "refd is recovering");
	if (total) {
		text_adds(&what, ": ");
		show_count(&what, number(s, "progress"), "of", "of");
		text_addc(&what, ' ');
		show_count(&what, total, "record", "records");
	}
	add_problem(s, COLOUR_WARNING, &what,
	    "Clients wait. 'refd ping --wait 600' shows the progress, and "
	    "returns when refd serves.");
}

static void tell_drain(struct summary *s)
{
	uint64_t left = number(s, "waiting") + number(s, "in_store");
	struct text what = { 0 };

	text_adds(&what, "refd is draining and accepts nothing new; ");
	show_count(&what, left, "transaction is left", "transactions are left");
	add_problem(s, COLOUR_WARNING, &what,
	    "After 'refd drain', 'refd resume' continues. A daemon that was "
	    "told to stop ends when nothing is left.");
}

static void tell_pause(struct summary *s)
{
	struct text what = { 0 };

	text_adds(&what, "refd has been paused for ");
	show_age(&what, number(s, "paused_s"));
	add_waiting(&what, number(s, "waiting"));
	add_problem(s, COLOUR_WARNING, &what,
	    "'refd resume' continues. Until then, updates wait for their "
	    "deadlines and then fail with 'busy'.");
}

static void tell_fatal(struct summary *s)
{
	struct text what = { 0 };

	text_addf(&what, "refd cannot go on: %s", rows_value(s->ans, "fatal"));
	add_problem(s, COLOUR_ERROR, &what,
	    "Look at the disk ('journalctl -k'), then 'systemctl restart "
	    "refd'. The restart finishes acknowledged updates.");
}

static void tell_state(struct summary *s)
{
	if (*rows_value(s->ans, "fatal"))
		tell_fatal(s);
	else if (is_state(s, REFD_RECOVERING))
		tell_recovery(s);
	else if (!is_state(s, REFD_SERVING))
		tell_drain(s);
	else if (is_value(s, "paused", "yes"))
		tell_pause(s);
	else
		s->is_serving = true;
}

/* ---- problems ---- */

static void tell_flush(struct summary *s)
{
	const char *place = rows_value(s->ans, "flush_hangs_on");
	struct text what = { 0 };

	if (number(s, "flush_hangs_s") == 0)
		return;
	text_adds(&what, "a flush of ");
	text_adds(&what, *place ? place : "a disk");
	text_adds(&what, " has hung for ");
	show_age(&what, number(s, "flush_hangs_s"));
	add_problem(s, COLOUR_ERROR, &what,
	    "Look at the disk: 'journalctl -k'. Updates of this disk wait, or "
	    "all updates if the disk has the journal.");
}

static void tell_stalls(struct summary *s)
{
	struct row row = { 0 };

	while (row_next(s->ans, "stall", &row)) {
		struct text what = { 0 };

		text_addf(&what, "the stage %s", row_value(&row, "text"));
		add_problem(s, COLOUR_ERROR, &what,
		    "Look at the disk: 'journalctl -k'. Updates there wait.");
	}
}

/* False: no ref failed for REASON. */
static bool tell_failed_refs(struct summary *s, const char *key,
    const char *reason)
{
	struct text what = { 0 };

	if (number(s, key) == 0)
		return false;
	show_count(&what, number(s, key), "ref", "refs");
	text_addf(&what, " failed in the last %" PRIu64 " s because %s",
	    number(s, "recent_ms") / 1000, reason);
	add_sentence(s, COLOUR_ERROR, &what);
	return true;
}

/* Most reasons name the ref. */
static void tell_causes(struct summary *s)
{
	struct row row = { 0 };

	while (row_next(s->ans, "failed", &row)) {
		const char *why = row_value(&row, "error");
		const char *ref = row_value(&row, "ref");
		struct text what = { 0 };

		text_addf(&what, "%s: ", row_value(&row, "repo"));
		if (!strstr(why, ref))
			text_addf(&what, "%s: ", ref);
		text_adds(&what, why);
		s->put(s->arg, COLOUR_PLAIN, true, what.data);
		text_done(&what);
	}
}

static void tell_disks(struct summary *s)
{
	struct text what = { 0 };

	if (tell_failed_refs(s, "recent_nospace", "a disk is full"))
		add_remedy(s,
		    "Look at the disks of the repositories and of the journal: "
		    "'df', 'df -i', and quotas.");
	if (number(s, "recent_disk_errors") > 0) {
		text_addf(&what,
		    "a disk reported errors in the last %" PRIu64 " s",
		    number(s, "recent_ms") / 1000);
		add_problem(s, COLOUR_ERROR, &what,
		    "Look at the disks of the repositories: 'journalctl -k'. A "
		    "disk that is mounted read-only counts, too.");
	}
	if (tell_failed_refs(s, "recent_io",
		"a file is missing, damaged or unreadable")) {
		tell_causes(s);
		add_remedy(s,
		    "'refd verify' of the repository tells more. The log of "
		    "refd has the repository and the cause of each "
		    "(update-failed).");
	}
}

static void tell_deferred(struct summary *s)
{
	struct text what = { 0 };

	if (number(s, "awaiting_repos") == 0)
		return;
	show_count(&what, number(s, "awaiting_repos"), "repository has",
	    "repositories have");
	text_adds(&what, " deferred records of ");
	show_count(&what, number(s, "awaiting_refs"), "ref", "refs");
	add_problem(s, COLOUR_WARNING, &what,
	    "Updates of these refs fail. The log names the refs and the reason "
	    "(recovery-found, repository-waits): a lock of another program, or "
	    "a repository or disk that is away. refd tries again by itself. "
	    "See operations.md, RefdAwaitsRecovery.");
}

static void tell_failed_syncs(struct summary *s)
{
	struct text what = { 0 };

	if (number(s, "doubted_filesystems") == 0)
		return;
	show_count(&what, number(s, "doubted_filesystems"), "file system",
	    "file systems");
	text_adds(&what, " failed to sync");
	add_problem(s, COLOUR_WARNING, &what,
	    "refd reads new objects there back from the disk. Look at the disk "
	    "('journalctl -k') and for free space ('df'), then mount the file "
	    "system again and restart refd.");
}

static void tell_damage(struct summary *s)
{
	struct text what = { 0 };

	if (number(s, "journal_damaged") == 0)
		return;
	text_adds(&what, "the journal is damaged");
	add_problem(s, COLOUR_ERROR, &what,
	    "Updates go on, but history ends at the place that the log names "
	    "(journal-damaged), and the journal grows. See operations.md, A "
	    "journal that is damaged.");
}

/* One of several nodes. */
static void tell_group(struct summary *s)
{
	uint64_t nr_waiting = number(s, "group_waiting_repos");
	struct text what = { 0 };

	if (!s->is_serving || !*rows_value(s->ans, "group_lag_ms") ||
	    is_value(s, "serves_reads", "yes"))
		return;
	if (is_value(s, "role", "waits"))
		text_adds(&what, "this node is not in touch with its group");
	else
		text_adds(&what, "this follower lacks rows of its group");
	text_adds(&what, "; it has not had every row for ");
	show_age(&what, number(s, "group_lag_ms") / 1000);
	if (nr_waiting > 0) {
		text_adds(&what, ", because ");
		show_count(&what, nr_waiting, "repository cannot",
		    "repositories cannot");
		text_adds(&what, " apply a row");
	}
	add_problem(s, COLOUR_WARNING, &what,
	    nr_waiting > 0 ?
		"The daemon's log names the repository and the cause "
		"(group-row-waits): remove the cause, and refd applies the row "
		"by itself." :
		"Look at 'systemctl status refd-group' and 'refd group "
		"status'.");
}

/* ---- a daemon without problems ---- */

static void add_roots(struct text *what, const struct summary *s)
{
	struct row row = { 0 };
	size_t nr = 0;

	while (row_next(s->ans, "root", &row))
		if (nr++ == 0)
			text_addf(what, " %s", row_value(&row, "path"));
	if (nr > 1) {
		text_adds(what, " and ");
		show_count(what, nr - 1, "more root", "more roots");
	}
}

static void add_durability(struct text *what, const struct summary *s)
{
	const char *mode = rows_value(s->ans, "durability_weakest");
	enum refd_durability weakest;

	if (refd_durability_from_name(mode, &weakest) == 0 &&
	    weakest >= REFD_DURABILITY_JOURNAL)
		text_adds(what, "all updates durable");
	else if (is_value(s, "durability", mode))
		text_addf(what, "updates not durable at once (mode %s)", mode);
	else
		text_addf(what, "some roots not durable at once (mode %s)",
		    mode);
}

static void tell_healthy(const struct summary *s)
{
	struct text what = { 0 };

	text_adds(&what, "refd serves");
	add_roots(&what, s);
	text_adds(&what, "; up ");
	show_age(&what, number(s, "uptime_s"));
	text_adds(&what, "; ");
	show_rate(&what, number(s, "recent_transactions"),
	    number(s, "recent_ms"));
	text_adds(&what, " transactions/s; ");
	add_durability(&what, s);
	text_addc(&what, '.');
	s->put(s->arg, COLOUR_OK, false, what.data);
	text_done(&what);
}

/* ---- the load and the log ---- */

static void tell_load(const struct summary *s)
{
	uint64_t ms = number(s, "recent_ms");
	struct text what = { 0 };

	if (ms == 0)
		return;
	text_addf(&what, "Last %" PRIu64 " s: ", ms / 1000);
	show_rate(&what, number(s, "recent_refs"), ms);
	text_adds(&what, " refs/s");
	if (number(s, "recent_flush_us_p99")) {
		text_adds(&what, "; a flush takes ");
		show_time(&what, number(s, "recent_flush_us_p50"));
		text_adds(&what, ", 99% take less than ");
		show_time(&what, number(s, "recent_flush_us_p99"));
	}
	text_addc(&what, '.');
	s->put(s->arg, COLOUR_PLAIN, false, what.data);
	text_clear(&what);
	text_adds(&what, "Now: ");
	show_count(&what, number(s, "connections"), "connection",
	    "connections");
	if (number(s, "waiting"))
		add_waiting(&what, number(s, "waiting"));
	if (number(s, "prepared")) {
		text_adds(&what, "; ");
		show_count(&what, number(s, "prepared"), "session holds locks",
		    "sessions hold locks");
	}
	text_addc(&what, '.');
	s->put(s->arg, COLOUR_PLAIN, false, what.data);
	text_done(&what);
}

static void tell_log_line(const struct summary *s, const struct row *row,
    uint64_t age_ms)
{
	const char *level = row_value(row, "level");
	struct text what = { 0 };

	show_age(&what, age_ms / 1000);
	text_addf(&what, " ago, %s: %s", level, row_value(row, "text"));
	s->put(s->arg, !strcmp(level, "error") ? COLOUR_ERROR : COLOUR_WARNING,
	    true, what.data);
	text_done(&what);
}

static void tell_log(const struct summary *s, uint64_t now_ms)
{
	struct row row = { 0 };
	uint64_t at_ms;
	size_t nr = 0;

	while (row_next(s->ans, "log", &row)) {
		at_ms = row_number(&row, "time_ms");
		if (at_ms > now_ms)
			at_ms = now_ms;
		if (now_ms - at_ms > LOG_AGE_MS)
			break;
		if (nr == 0)
			s->put(s->arg, COLOUR_HEADING, false,
			    "Last errors and warnings (all: refd status -v):");
		if (nr++ == LOG_LINES)
			break;
		tell_log_line(s, &row, now_ms - at_ms);
	}
}

void summary_each(const struct refd_answer *ans, uint64_t now_ms,
    summary_line_fn *put, void *arg)
{
	struct summary s = { .ans = ans, .put = put, .arg = arg };

	tell_state(&s);
	tell_flush(&s);
	tell_stalls(&s);
	tell_disks(&s);
	tell_deferred(&s);
	tell_failed_syncs(&s);
	tell_damage(&s);
	tell_group(&s);
	if (s.nr == 0)
		tell_healthy(&s);
	tell_load(&s);
	tell_log(&s, now_ms);
}

/* ---- on a terminal ---- */

struct shown_lines {
	struct text *to;
	size_t columns;
};

static void show_line(void *arg, enum colour colour, bool is_below,
    const char *line)
{
	const struct shown_lines *shown = arg;

	show_lines(shown->to, colour, line, is_below ? REMEDY_INDENT : 0,
	    shown->columns);
}

void summary_render(const struct refd_answer *ans, uint64_t now_ms,
    size_t columns, struct text *t)
{
	struct shown_lines shown = { .to = t, .columns = columns };

	summary_each(ans, now_ms, show_line, &shown);
}
