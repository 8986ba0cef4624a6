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

/* False: EVENT is not about a group. */
static bool group_event(enum store_event event, const char *place,
    const char *why)
{
	switch (event) {
	case STORE_GROUP_LEADS:
		log_event(LOG_LEVEL_INFO, "group-leads", LOG_STR("node", place),
		    LOG_TEXT("this node takes writes"));
		break;
	case STORE_GROUP_FOLLOWS:
		log_event(LOG_LEVEL_INFO, "group-follows",
		    LOG_STR("node", place), LOG_STR("leader", why),
		    LOG_TEXT("this node takes no writes"));
		break;
	case STORE_GROUP_LOST:
		log_event(LOG_LEVEL_WARNING, "group-lost",
		    LOG_STR("node", place),
		    LOG_TEXT("the connection to refd-group is lost: this node "
			     "takes no writes until refd-group connects"));
		break;
	case STORE_GROUP_WAITS:
		log_event(LOG_LEVEL_WARNING, "group-row-waits",
		    LOG_STR("repo", place), LOG_STR("error", why),
		    LOG_TEXT("the repository gets no later row, and this node "
			     "cannot lead: remove the cause, and refd applies "
			     "the row by itself"));
		break;
	case STORE_GROUP_DIVERGED:
		log_event(LOG_LEVEL_WARNING, "group-ref-diverged",
		    LOG_STR("repo", place), LOG_STR("error", why),
		    LOG_TEXT("another program has written a ref of this node, "
			     "or an older copy has replaced the repository: "
			     "writes belong to refd, at the leader"));
		break;
	case STORE_GROUP_MOVED:
		log_event(LOG_LEVEL_INFO, "group-moved", LOG_STR("repo", place),
		    LOG_STR("from", why),
		    LOG_TEXT("a row of the group has put the repository "
			     "there, or made room for its own"));
		break;
	default:
		return false;
	}
	return true;
}

/* False: EVENT is not about a single repository. */
static bool repo_event(enum store_event event, const char *place,
    const char *why)
{
	static struct log_limit returned = { .burst = 100, .seconds = 10 };

	switch (event) {
	case STORE_REPO_REPLACED:
		log_event(LOG_LEVEL_WARNING, "repository-replaced",
		    LOG_STR("repo", place),
		    LOG_TEXT("a new directory: if it is an older copy, 'refd "
			     "checkpoint' keeps later values out of it"));
		break;
	case STORE_REPO_WAITS:
		log_event(LOG_LEVEL_WARNING, "repository-waits",
		    LOG_STR("repo", place), LOG_STR("error", why),
		    LOG_TEXT("it can't be recovered, and nothing is written "
			     "there before; it is tried again with every "
			     "checkpoint"));
		break;
	case STORE_REPO_RECOVERED:
		log_event(LOG_LEVEL_INFO, "repository-back",
		    LOG_STR("repo", place), LOG_STR("found", why),
		    LOG_TEXT("it is recovered and served again"));
		break;
	case STORE_REF_RETURNED:
		log_limited(&returned, LOG_LEVEL_WARNING, "ref-returned",
		    LOG_STR("repo", place), LOG_STR("found", why),
		    LOG_TEXT("git pack-refs --auto does this, or somebody has "
			     "written the former value; refd-verify(8)"));
		break;
	default:
		return false;
	}
	return true;
}

void store_notices_event(enum store_event event, const char *place,
    const char *why)
{
	static struct log_limit objects = { .burst = 1000, .seconds = 10 };

	if (group_event(event, place, why) || repo_event(event, place, why))
		return;
	switch (event) {
	case STORE_FS_FAILED:
		log_event(LOG_LEVEL_ERROR, "fs-failed", LOG_STR("path", place),
		    LOG_STR("error", why),
		    LOG_TEXT("this file system failed to sync, and nothing is "
			     "acknowledged there until its records are "
			     "redone: see what the kernel says of its disk, "
			     "and mend or remount it"));
		break;
	case STORE_FS_LET_GO:
		log_event(LOG_LEVEL_INFO, "fs-let-go", LOG_STR("path", place),
		    LOG_TEXT("it can be unmounted: its records are kept, and "
			     "it is tried again with every checkpoint"));
		break;
	case STORE_FS_OTHER:
		log_event(LOG_LEVEL_WARNING, "fs-remounted",
		    LOG_STR("path", place),
		    LOG_TEXT("it came back as another mount; what its disk "
			     "lacks is redone"));
		break;
	case STORE_UNMARKED:
		if (why[0] == '\0')
			log_event(LOG_LEVEL_INFO, "syncs-written",
			    LOG_STR("path", place),
			    LOG_TEXT("file systems are synced again"));
		else
			log_event(LOG_LEVEL_ERROR, "syncs-unwritten",
			    LOG_STR("path", place), LOG_STR("error", why),
			    LOG_TEXT("no file system is synced before a sync "
				     "can be noted there: new objects are "
				     "refused, and no record is forgotten; "
				     "make room, or mend that disk"));
		break;
	case STORE_OBJECT_LOST:
		log_limited(&objects, LOG_LEVEL_ERROR, "object-lost",
		    LOG_STR("path", place), LOG_STR("error", why),
		    LOG_TEXT("its file system failed to sync: what names "
			     "objects of its store is refused until this one "
			     "can be read from the disk, or is removed and "
			     "sent again"));
		break;
	case STORE_JOURNAL_DAMAGED:
		log_event(LOG_LEVEL_ERROR, "journal-damaged",
		    LOG_STR("state", place), LOG_STR("error", why),
		    LOG_TEXT("history ends before that record, and neither "
			     "history nor ids are trimmed; updates are "
			     "recorded as before"));
		break;
	case STORE_CLOCK_AHEAD:
		log_event(LOG_LEVEL_WARNING, "clock-ahead",
		    LOG_STR("state", place), LOG_STR("by", why),
		    LOG_TEXT("the clock shows more time than passed since the "
			     "last record: old history is deleted slowly, so "
			     "that a wrong clock can be corrected in time"));
		break;
	default:
		break;
	}
}
