#include "daemon/service/stall.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/flushing.h"
#include "daemon/base/time.h"
#include "proto/lib/print.h"

#define QUOTED 256

void stall_init(struct stall *stall, const struct sys *sys,
    const char *state_dir)
{
	*stall = (struct stall){ .sys = sys,
		.state_dir = state_dir,
		.begun_limit = { .burst = 10, .seconds = 60 },
		.over_limit = { .burst = 10, .seconds = 60 } };
}

/* ---- a flush ---- */

/* The kernel answers from memory, so this does not wait for the disk. */
static void note_path_of(struct stall *stall, int fd)
{
	if (SYS(stall->sys, fd_path, fd, stall->path, sizeof(stall->path)) < 0)
		strcpy(stall->path, "?");
}

/* Finds the flush that hangs for the longest time. Notes its path and its kind,
 * and returns the time of its begin; 0: no flush hangs. */
static int64_t find_hanging_flush(struct stall *stall, struct store *store,
    int64_t now_ns, int64_t limit_ns)
{
	int64_t journal_ns = store_stuck_ns(store);
	struct flushing oldest;

	stall->is_journal = journal_ns >= limit_ns;
	if (stall->is_journal) {
		snprintf(stall->path, sizeof(stall->path), "%s/journal.db",
		    stall->state_dir);
		return now_ns - journal_ns;
	}
	if (!flushing_oldest(&oldest) || now_ns - oldest.since_ns < limit_ns)
		return 0;
	if (stall->since_ns != oldest.since_ns)
		note_path_of(stall, oldest.fd);
	return oldest.since_ns;
}

static void log_flush(const struct stall *stall, int64_t now_ns,
    const char *event, const char *text)
{
	log_event(LOG_LEVEL_ERROR, event, LOG_STR("path", stall->path),
	    LOG_NUM("seconds", (now_ns - stall->since_ns) / NS_PER_S),
	    LOG_TEXT(text));
}

static void look_at_flushes(struct stall *stall, struct store *store,
    int64_t now_ns, int64_t limit_ns)
{
	struct stall before = *stall;

	stall->since_ns = find_hanging_flush(stall, store, now_ns, limit_ns);
	if (before.since_ns != 0 && stall->since_ns == 0)
		log_flush(&before, now_ns, "flush-back", "it has come back");
	if (stall->is_journal && !before.is_journal)
		log_flush(stall, now_ns, "journal-hangs",
		    "a commit has not come back, and nothing is answered "
		    "before: see what the kernel says of the disk; a "
		    "service manager's watchdog is not fed any more");
	else if (stall->since_ns != 0 && before.since_ns == 0)
		log_flush(stall, now_ns, "flush-hangs",
		    "it has not come back: see what the kernel says of the "
		    "disk; who needs it waits");
}

uint64_t stall_seconds(const struct stall *stall)
{
	int64_t ns = 0;

	if (stall->since_ns != 0)
		ns = SYS(stall->sys, now_mono) - stall->since_ns;
	return (uint64_t)(ns + NS_PER_S - 1) / NS_PER_S;
}

const char *stall_path(const struct stall *stall)
{
	return stall->since_ns != 0 ? stall->path : "";
}

/* ---- a stage ---- */

const char *stall_describe(char text[STALL_TEXT], enum store_stage stage,
    const struct store_progress *p, int64_t now_ns, bool shows_path)
{
	char path[QUOTED], where[QUOTED + 32] = "something";

	if (shows_path) {
		/* Single quotes, because the sentence is quoted in turn. */
		print_quoted(path, sizeof(path), p->path);
		path[0] = path[strlen(path) - 1] = '\'';
		snprintf(where, sizeof(where), "%s%s", path,
		    p->has_more ? " and others" : "");
	}
	snprintf(text, STALL_TEXT,
	    "%s has worked on %s for %lld s; %zu of its threads %s stuck",
	    store_stage_name(stage), where,
	    (long long)((now_ns - p->since_ns) / NS_PER_S), p->nr_stuck,
	    p->nr_stuck == 1 ? "is" : "are");
	return text;
}

static void log_stage_stalls(struct stall *stall, enum store_stage stage,
    const struct store_progress *p, int64_t now_ns)
{
	log_limited(&stall->begun_limit, LOG_LEVEL_WARNING, "stall",
	    LOG_WORD("stage", store_stage_name(stage)),
	    LOG_STR("path", p->path),
	    LOG_NUM("seconds", (now_ns - p->since_ns) / NS_PER_S),
	    LOG_NUM("stuck", p->nr_stuck), LOG_NUM("threads", p->nr_threads),
	    LOG_TEXT("a thread has not come back from there: see what the "
		     "kernel says of the disk; updates there wait"));
}

static void look_at_stage(struct stall *stall, enum store_stage stage,
    const struct store_progress *p, int64_t now_ns)
{
	int64_t *since_ns = &stall->stage_ns[stage];

	if (p->nr_stuck > 0) {
		if (*since_ns == 0)
			log_stage_stalls(stall, stage, p, now_ns);
		*since_ns = p->since_ns;
		stall_describe(stall->text, stage, p, now_ns, true);
		return;
	}
	if (*since_ns != 0)
		log_limited(&stall->over_limit, LOG_LEVEL_INFO, "stall-over",
		    LOG_WORD("stage", store_stage_name(stage)),
		    LOG_NUM("seconds", (now_ns - *since_ns) / NS_PER_S),
		    LOG_TEXT("all its threads have come back"));
	*since_ns = 0;
}

bool stall_stops_all(const struct store_progress progress[STORE_STAGES])
{
	static const enum store_stage passed_by_all[] = { STORE_STAGE_LOOKUP,
		STORE_STAGE_ADMISSION, STORE_STAGE_PREPARE,
		STORE_STAGE_COMMIT };
	const struct store_progress *p;
	size_t i;

	for (i = 0; i < sizeof(passed_by_all) / sizeof(passed_by_all[0]); i++) {
		p = &progress[passed_by_all[i]];
		if (p->nr_stuck >= p->nr_threads)
			return true;
	}
	return false;
}

static void look_at_stages(struct stall *stall, struct store *store,
    int64_t now_ns, int64_t limit_ns)
{
	struct store_progress progress[STORE_STAGES];
	bool stopped_all = stall->stops_all;
	size_t i;

	store_progress(store, limit_ns, progress);
	stall->text[0] = '\0';
	for (i = 0; i < STORE_STAGES; i++)
		look_at_stage(stall, i, &progress[i], now_ns);
	stall->stops_all = stall_stops_all(progress);
	if (stall->stops_all && !stopped_all)
		log_event(LOG_LEVEL_ERROR, "nobody-served",
		    LOG_TEXT("all threads of a stage are stuck, see the stalls "
			     "before this line; a service manager's watchdog "
			     "is not fed any more"));
	if (stopped_all && !stall->stops_all)
		log_event(LOG_LEVEL_INFO, "served-again",
		    LOG_TEXT("a thread has come back"));
}

/* ---- both ---- */

bool stall_look(struct stall *stall, struct store *store, int64_t limit_ns)
{
	int64_t now_ns = SYS(stall->sys, now_mono);

	look_at_flushes(stall, store, now_ns, limit_ns);
	look_at_stages(stall, store, now_ns, limit_ns);
	return stall->is_journal || stall->stops_all;
}

bool stall_is_on(const struct stall *stall)
{
	return stall->since_ns != 0 || stall->text[0] != '\0';
}
