#include "daemon/net/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/net/notify.h"
#include "daemon/store/recovery/tally.h"

/* Lines of single findings in the log; all are counted. */
#define FOUND_LOGGED 100
/* How often the service manager is asked for patience, and for how much, and
 * the log says how far it is. */
#define PATIENCE_NS (5 * 1000000000LL)
#define PATIENCE    "EXTEND_TIMEOUT_USEC=60000000\n"

struct recovery {
	struct recovery_config cfg;
	pthread_t thread;
	atomic_bool over;
	atomic_uint_least64_t done, total;
	int result;
	uint64_t parked;

	/* The thread's own. */
	struct tally tally;
	int64_t told_ns;
};

/* ---- the thread ---- */

static enum log_level level_of(enum store_finding finding)
{
	switch (finding) {
	case STORE_REDONE:
	case STORE_ROLLED_FORWARD:
	case STORE_UNLOCKED:
	case STORE_LOG_REPAIRED:
		return LOG_LEVEL_INFO;
	case STORE_LEFT:
	case STORE_DROPPED:
	case STORE_PARKED:
	case STORE_REPO_MISSING:
	case STORE_OBJECT_MISSING:
	case STORE_CORRUPT:
		return LOG_LEVEL_WARNING;
	case STORE_FAILED:
		break;
	}
	return LOG_LEVEL_ERROR;
}

static void log_found(struct log_limit *limit, const struct store_found *found)
{
	const char *kept = found->evidence != NULL ? found->evidence : "";

	log_limited(limit, level_of(found->finding), "recovery-found",
	    LOG_STR("finding", store_finding_name(found->finding)),
	    LOG_STR("repo", found->repo), LOG_STR("ref", found->ref),
	    LOG_STR("evidence", kept), LOG_TEXT(found->text));
}

void recovery_log_found(void *arg, const struct store_found *found)
{
	static struct log_limit limit = { .burst = 100, .seconds = 10 };

	(void)arg;
	log_found(&limit, found);
}

static void recovery_found(void *arg, const struct store_found *found)
{
	struct recovery *r = arg;

	tally_add(&r->tally, found);
}

static void recovery_progressed(void *arg, uint64_t done, uint64_t total)
{
	struct recovery *r = arg;
	int64_t now_ns = SYS(r->cfg.sys, now_mono);
	char state[128];

	atomic_store(&r->total, total);
	atomic_store(&r->done, done);
	if (r->told_ns != 0 && now_ns - r->told_ns < PATIENCE_NS)
		return;
	snprintf(state, sizeof(state),
	    PATIENCE "STATUS=recovering %" PRIu64 " of %" PRIu64, done, total);
	notify_manager(state);
	/* A short one needs no line of its own. */
	if (r->told_ns != 0)
		log_event(LOG_LEVEL_INFO, "recovering", LOG_NUM("done", done),
		    LOG_NUM("total", total));
	r->told_ns = now_ns;
}

static void log_repo(const struct tally_repo *repo, size_t *lines)
{
	char words[TALLY_WORDS_MAX];
	struct store_found found;
	size_t i;

	tally_words(repo->counts, words);
	log_event(LOG_LEVEL_INFO, "repository-recovered",
	    LOG_STR("repo", repo->path), LOG_TEXT(words));
	for (i = 0; i < repo->nr; i++) {
		/* A failure keeps a whole repository from being served. */
		if (*lines >= FOUND_LOGGED &&
		    repo->items[i].finding != STORE_FAILED)
			continue;
		found = (struct store_found){ .finding = repo->items[i].finding,
			.repo = repo->path,
			.ref = repo->items[i].ref,
			.text = repo->items[i].text,
			.evidence = repo->items[i].evidence };
		log_found(NULL, &found);
		++*lines;
	}
}

/* By repository; what is said of the first ones need not be said of all. */
static void log_report(const struct tally *tally)
{
	const struct tally_repo *repo;
	size_t lines = 0;

	for (repo = tally->repos; repo != NULL; repo = repo->hh.next)
		if (lines < FOUND_LOGGED || repo->counts[STORE_FAILED] > 0)
			log_repo(repo, &lines);
	if (lines >= FOUND_LOGGED)
		log_event(LOG_LEVEL_INFO, "recovery-found",
		    LOG_TEXT("further findings are only counted"));
}

static void log_summary(const struct recovery *r, int64_t took_ns)
{
	char words[TALLY_WORDS_MAX];

	tally_words(r->tally.counts, words);
	log_event(LOG_LEVEL_INFO, "recovered",
	    LOG_NUM("took_ms", took_ns / 1000000),
	    LOG_NUM("records_parked", r->parked), LOG_TEXT(words));
}

static int recover(struct recovery *r)
{
	const struct store_report report = { .found = recovery_found,
		.progress = recovery_progressed,
		.arg = r };
	int64_t began_ns = SYS(r->cfg.sys, now_mono);
	char *damage;
	int err;

	notify_manager(PATIENCE "STATUS=recovering");
	err = store_recover(r->cfg.store, &report, &r->parked);
	log_report(&r->tally);
	if (err < 0) {
		damage = store_damage(r->cfg.store);
		log_event(LOG_LEVEL_ERROR, "recovery-failed",
		    LOG_STR("error", damage != NULL ? damage : strerror(-err)),
		    LOG_TEXT("nothing is served, since an acknowledged update "
			     "might be missing"));
		free(damage);
		return err;
	}
	log_summary(r, SYS(r->cfg.sys, now_mono) - began_ns);
	err = store_start(r->cfg.store);
	if (err < 0) {
		log_event(LOG_LEVEL_ERROR, "start-failed",
		    LOG_STR("error", strerror(-err)),
		    LOG_TEXT("the store cannot be started"));
		return err;
	}
	store_tell_awaiting(r->cfg.store);
	return 0;
}

static void *recovery_main(void *arg)
{
	struct recovery *r = arg;

	r->result = recover(r);
	atomic_store(&r->over, true);
	r->cfg.wake(r->cfg.wake_arg);
	return NULL;
}

/* ---- its owner's side ---- */

/* Signals are the loop's: this thread, and the store's that it starts, leave
 * them all alone. */
static int start_thread(struct recovery *r)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&r->thread, NULL, recovery_main, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err != 0)
		log_event(LOG_LEVEL_ERROR, "start-failed",
		    LOG_STR("error", strerror(err)),
		    LOG_TEXT("recovery gets no thread"));
	return -err;
}

int recovery_start(const struct recovery_config *cfg,
    struct recovery **recovery)
{
	struct recovery *r = calloc(1, sizeof(*r));
	int err;

	if (r == NULL)
		return -ENOMEM;
	r->cfg = *cfg;
	err = marker_remove(cfg->marker);
	if (err == 0)
		err = start_thread(r);
	if (err < 0) {
		free(r);
		return err;
	}
	*recovery = r;
	return 0;
}

bool recovery_is_over(struct recovery *recovery, int *result)
{
	if (!atomic_load(&recovery->over))
		return false;
	*result = recovery->result;
	return true;
}

void recovery_progress(struct recovery *recovery, uint64_t *done,
    uint64_t *total)
{
	*done = atomic_load(&recovery->done);
	*total = atomic_load(&recovery->total);
}

void recovery_event(enum store_event event, const char *place, const char *why)
{
	static struct log_limit objects = { .burst = 1000, .seconds = 10 };

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
	case STORE_JOURNAL_DAMAGED:
		log_event(LOG_LEVEL_ERROR, "journal-damaged",
		    LOG_STR("state", place), LOG_STR("error", why),
		    LOG_TEXT("history ends before that record, and neither "
			     "history nor ids are trimmed; updates are "
			     "recorded as before"));
		break;
	}
}

void recovery_free(struct recovery *recovery)
{
	if (recovery == NULL)
		return;
	pthread_join(recovery->thread, NULL);
	tally_done(&recovery->tally);
	free(recovery);
}
