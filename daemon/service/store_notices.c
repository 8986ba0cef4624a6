#include "daemon/service/store_notices.h"

static enum log_level level_of(enum store_finding finding)
{
	switch (finding) {
	case STORE_REDONE:
	case STORE_ROLLED_FORWARD:
	case STORE_UNLOCKED:
	case STORE_LOG_REPAIRED:
	case STORE_OBJECTS_RESTORED:
		return LOG_LEVEL_INFO;
	case STORE_TABLE_MENDED:
	case STORE_LEFT:
	case STORE_DROPPED:
	case STORE_DEFERRED:
	case STORE_REPO_MISSING:
	case STORE_OBJECT_MISSING:
	case STORE_OBJECT_LACKING:
	case STORE_CORRUPT:
		return LOG_LEVEL_WARNING;
	case STORE_FAILED:
		break;
	}
	return LOG_LEVEL_ERROR;
}

void store_notices_finding(struct log_limit *limit,
    const struct store_found *found)
{
	const char *kept = found->evidence != NULL ? found->evidence : "";

	log_limited(limit, level_of(found->finding), "recovery-found",
	    LOG_STR("finding", store_finding_name(found->finding)),
	    LOG_STR("repo", found->repo), LOG_STR("ref", found->ref),
	    LOG_STR("evidence", kept), LOG_TEXT(found->text));
}

void store_notices_found(void *arg, const struct store_found *found)
{
	static struct log_limit limit = { .burst = 100, .seconds = 10 };

	(void)arg;
	store_notices_finding(&limit, found);
}

#define NO_LIMIT       { .burst = 0 }
#define IN_10_S(lines) { .burst = (lines), .seconds = 10 }

/* An event as a line of the log. An event without a cause has the cause "",
 * which the log leaves out. */
struct notice {
	enum log_level level;
	const char *name, *place_key, *why_key, *text;
	struct log_limit limit; /* of its own; burst 0: none */
};

static struct notice notices[] = {
	[STORE_FS_FAILED] = { LOG_LEVEL_ERROR, "fs-failed", "path", "error",
	    "this file system failed to sync, and nothing is acknowledged "
	    "there until its records are redone: see what the kernel says of "
	    "its disk, and mend or remount it",
	    NO_LIMIT },
	[STORE_FS_LET_GO] = { LOG_LEVEL_INFO, "fs-let-go", "path", "error",
	    "it can be unmounted: its records are kept, and it is tried again "
	    "with every checkpoint",
	    NO_LIMIT },
	[STORE_FS_OTHER] = { LOG_LEVEL_WARNING, "fs-remounted", "path", "error",
	    "it came back as another mount; what its disk lacks is redone",
	    NO_LIMIT },
	[STORE_UNMARKED] = { LOG_LEVEL_ERROR, "syncs-unwritten", "path",
	    "error",
	    "no file system is synced before a sync can be noted there: new "
	    "objects are refused, and no record is forgotten; make room, or "
	    "mend that disk",
	    NO_LIMIT },
	[STORE_REPO_REPLACED] = { LOG_LEVEL_WARNING, "repository-replaced",
	    "repo", "error",
	    "a new directory: if it is an older copy, 'refd checkpoint' keeps "
	    "later values out of it",
	    NO_LIMIT },
	[STORE_OBJECT_LOST] = { LOG_LEVEL_ERROR, "object-lost", "path", "error",
	    "its file system failed to sync: what names objects of its store "
	    "is refused until this one can be read from the disk, or is "
	    "removed and sent again",
	    IN_10_S(1000) },
	[STORE_REPO_WAITS] = { LOG_LEVEL_WARNING, "repository-waits", "repo",
	    "error",
	    "it can't be recovered, and nothing is written there before; it "
	    "is tried again with every checkpoint",
	    NO_LIMIT },
	[STORE_REPO_RECOVERED] = { LOG_LEVEL_INFO, "repository-back", "repo",
	    "found", "it is recovered and served again", NO_LIMIT },
	[STORE_REF_RETURNED] = { LOG_LEVEL_WARNING, "ref-returned", "repo",
	    "found",
	    "git pack-refs --auto does this, or somebody has written the "
	    "former value; refd-verify(8)",
	    IN_10_S(100) },
	[STORE_JOURNAL_DAMAGED] = { LOG_LEVEL_ERROR, "journal-damaged", "state",
	    "error",
	    "history ends there, and neither history nor ids are trimmed; "
	    "updates are recorded as before; operations.md, A journal that is "
	    "damaged",
	    NO_LIMIT },
	[STORE_CLOCK_AHEAD] = { LOG_LEVEL_WARNING, "clock-ahead", "state", "by",
	    "the clock shows more time than passed since the last record: old "
	    "history is deleted slowly, so that a wrong clock can be "
	    "corrected in time",
	    NO_LIMIT },
	[STORE_NODE_LEADS] = { LOG_LEVEL_INFO, "group-leads", "node", "leader",
	    "this node takes writes", NO_LIMIT },
	[STORE_NODE_FOLLOWS] = { LOG_LEVEL_INFO, "group-follows", "node",
	    "leader", "this node takes no writes", NO_LIMIT },
	[STORE_NODE_LOST] = { LOG_LEVEL_WARNING, "group-lost", "node", "error",
	    "the connection to refd-group is lost: this node takes no writes "
	    "until refd-group connects",
	    NO_LIMIT },
	[STORE_ROW_WAITS] = { LOG_LEVEL_WARNING, "group-row-waits", "repo",
	    "error",
	    "the repository gets no later row, and this node cannot lead: "
	    "remove the cause, and refd applies the row by itself",
	    NO_LIMIT },
	[STORE_REF_DIVERGED] = { LOG_LEVEL_WARNING, "group-ref-diverged",
	    "repo", "error",
	    "another program has written a ref of this node, or an older copy "
	    "has replaced the repository: writes belong to refd, at the "
	    "leader",
	    NO_LIMIT },
	[STORE_ROW_MOVED] = { LOG_LEVEL_INFO, "group-moved", "repo", "from",
	    "a row of the group has put the repository there, or made room "
	    "for its own",
	    NO_LIMIT },
};

void store_notices_event(enum store_event event, const char *place,
    const char *why)
{
	struct notice *n = &notices[event];

	if (event == STORE_UNMARKED && why[0] == '\0') {
		log_event(LOG_LEVEL_INFO, "syncs-written",
		    LOG_STR("path", place),
		    LOG_TEXT("file systems are synced again"));
		return;
	}
	log_limited(n->limit.burst == 0 ? NULL : &n->limit, n->level, n->name,
	    LOG_STR(n->place_key, place), LOG_STR(n->why_key, why),
	    LOG_TEXT(n->text));
}
