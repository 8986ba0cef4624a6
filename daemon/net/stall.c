#include "daemon/net/stall.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/flushing.h"
#include "daemon/base/quote.h"

#define NS_PER_S 1000000000LL
#define QUOTED   256

/* ---- a flush ---- */

/* The kernel knows the path without asking the disk. */
static void note_place(struct net *net, int fd)
{
	struct stall *stall = &net->stall;

	if (SYS(net->cfg.sys, fd_path, fd, stall->path, sizeof(stall->path)) <
	    0)
		strcpy(stall->path, "?");
}

/* Since when, and where; 0: nothing hangs. */
static int64_t look(struct net *net, int64_t now_ns, int64_t limit_ns)
{
	int64_t journal_ns = store_stuck_ns(net->store);
	struct stall *stall = &net->stall;
	struct flushing oldest;

	stall->is_journal = journal_ns >= limit_ns;
	if (stall->is_journal) {
		snprintf(stall->path, sizeof(stall->path), "%s/journal.db",
		    net->cfg.state_dir);
		return now_ns - journal_ns;
	}
	if (!flushing_oldest(&oldest) || now_ns - oldest.since_ns < limit_ns)
		return 0;
	if (stall->since_ns != oldest.since_ns)
		note_place(net, oldest.fd);
	return oldest.since_ns;
}

static void say(const struct stall *stall, int64_t now_ns, const char *event,
    const char *text)
{
	log_event(LOG_LEVEL_ERROR, event, LOG_STR("path", stall->path),
	    LOG_NUM("seconds", (now_ns - stall->since_ns) / NS_PER_S),
	    LOG_TEXT(text));
}

static void look_at_flushes(struct net *net, int64_t now_ns, int64_t limit_ns)
{
	struct stall *stall = &net->stall, before = *stall;

	stall->since_ns = look(net, now_ns, limit_ns);
	if (before.since_ns != 0 && stall->since_ns == 0)
		say(&before, now_ns, "flush-back", "it has come back");
	if (stall->is_journal && !before.is_journal)
		say(stall, now_ns, "journal-hangs",
		    "a commit has not come back, and nothing is answered "
		    "before: see what the kernel says of the disk; a "
		    "service manager's watchdog is not fed any more");
	else if (stall->since_ns != 0 && before.since_ns == 0)
		say(stall, now_ns, "flush-hangs",
		    "it has not come back: see what the kernel says of the "
		    "disk; who needs it waits");
}

static int64_t stall_ns(const struct net *net)
{
	if (net->stall.since_ns == 0)
		return 0;
	return SYS(net->cfg.sys, now_mono) - net->stall.since_ns;
}

uint64_t stall_seconds(const struct net *net)
{
	return (uint64_t)(stall_ns(net) + NS_PER_S - 1) / NS_PER_S;
}

const char *stall_path(const struct net *net)
{
	return net->stall.since_ns != 0 ? net->stall.path : "";
}

/* ---- a stage ---- */

/* A sentence about P, which is STAGE's. */
static const char *describe(char text[STALL_TEXT], enum store_stage stage,
    const struct store_progress *p, int64_t now_ns, bool shows_path)
{
	char path[QUOTED], where[QUOTED + 32] = "something";

	if (shows_path) {
		/* In a sentence that is quoted itself. */
		quote(path, sizeof(path), p->path);
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

static void say_stage(struct net *net, enum store_stage stage,
    const struct store_progress *p, int64_t now_ns)
{
	log_limited(&net->stall_limit, LOG_LEVEL_WARNING, "stall",
	    LOG_WORD("stage", store_stage_name(stage)),
	    LOG_STR("path", p->path),
	    LOG_NUM("seconds", (now_ns - p->since_ns) / NS_PER_S),
	    LOG_NUM("stuck", p->nr_stuck), LOG_NUM("threads", p->nr_threads),
	    LOG_TEXT("a thread has not come back from there: see what the "
		     "kernel says of the disk; updates there wait"));
}

static void look_at_stage(struct net *net, enum store_stage stage,
    const struct store_progress *p, int64_t now_ns)
{
	struct stall *stall = &net->stall;
	int64_t *since_ns = &stall->stage_ns[stage];

	if (p->nr_stuck > 0) {
		if (*since_ns == 0)
			say_stage(net, stage, p, now_ns);
		*since_ns = p->since_ns;
		describe(stall->text, stage, p, now_ns, true);
		return;
	}
	if (*since_ns != 0)
		log_limited(&net->stall_over_limit, LOG_LEVEL_INFO,
		    "stall-over", LOG_WORD("stage", store_stage_name(stage)),
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

static void look_at_stages(struct net *net, int64_t now_ns, int64_t limit_ns)
{
	struct store_progress progress[STORE_STAGES];
	struct stall *stall = &net->stall;
	bool stopped_all = stall->stops_all;
	size_t i;

	store_progress(net->store, limit_ns, progress);
	stall->text[0] = '\0';
	for (i = 0; i < STORE_STAGES; i++)
		look_at_stage(net, i, &progress[i], now_ns);
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

bool stall_look(struct net *net, int64_t limit_ns)
{
	int64_t now_ns = SYS(net->cfg.sys, now_mono);

	look_at_flushes(net, now_ns, limit_ns);
	look_at_stages(net, now_ns, limit_ns);
	return net->stall.is_journal || net->stall.stops_all;
}

void stall_count(struct net *net, uint64_t seconds[STORE_STAGES],
    uint64_t stuck[STORE_STAGES])
{
	struct store_progress progress[STORE_STAGES];
	int64_t now_ns;
	size_t i;

	memset(seconds, 0, STORE_STAGES * sizeof(*seconds));
	memset(stuck, 0, STORE_STAGES * sizeof(*stuck));
	if (net->scheduler == NULL)
		return;
	store_progress(net->store, STALL_TOLD_NS, progress);
	now_ns = SYS(net->cfg.sys, now_mono);
	for (i = 0; i < STORE_STAGES; i++) {
		if (progress[i].since_ns != 0)
			seconds[i] = (uint64_t)(now_ns - progress[i].since_ns) /
			    NS_PER_S;
		stuck[i] = progress[i].nr_stuck;
	}
}

void stall_pairs(struct net *net, struct key_values *kv, bool shows_paths)
{
	int64_t now_ns = SYS(net->cfg.sys, now_mono);
	struct store_progress progress[STORE_STAGES], *p;
	char text[STALL_TEXT];
	size_t i;

	if (net->scheduler == NULL)
		return;
	store_progress(net->store, STALL_TOLD_NS, progress);
	for (i = 0; i < STORE_STAGES; i++) {
		p = &progress[i];
		if (p->nr_stuck == 0)
			continue;
		key_values_add(kv, "stall.stage", store_stage_name(i));
		key_values_add_number(kv, "stall.seconds",
		    (uint64_t)(now_ns - p->since_ns) / NS_PER_S);
		key_values_add_number(kv, "stall.stuck", p->nr_stuck);
		key_values_add_number(kv, "stall.threads", p->nr_threads);
		key_values_add(kv, "stall.text",
		    describe(text, i, p, now_ns, shows_paths));
	}
}
