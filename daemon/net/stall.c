#include "daemon/net/stall.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/flushing.h"

#define NS_PER_S 1000000000LL

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

bool stall_look(struct net *net, int64_t limit_ns)
{
	int64_t now_ns = SYS(net->cfg.sys, now_mono);
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
	return stall->is_journal;
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
