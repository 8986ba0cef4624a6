#include "daemon/service/recovery_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/service/notify.h"
#include "daemon/service/store_notices.h"
#include "daemon/store/recovery/tally.h"

/* So many findings get a line in the log. The summary counts all. */
#define FOUND_LOGGED 100
/* The service manager is asked for more time, and the log reports the
 * progress, in this interval. */
#define PATIENCE_NS (5 * 1000000000LL)
#define PATIENCE    "EXTEND_TIMEOUT_USEC=60000000\n"

struct recovery_thread {
	struct recovery_thread_config cfg;
	pthread_t thread;
	atomic_bool over;
	atomic_uint_least64_t done, total;
	/* Written by the thread before OVER. */
	int result;
	uint64_t deferred;

	/* Only the thread uses the fields below. */
	struct finding_tally tally;
	int64_t told_ns; /* last report of the progress; 0: none yet */
};

/* ---- the thread ---- */

static void add_finding(void *arg, const struct store_found *found)
{
	struct recovery_thread *r = arg;

	tally_add(&r->tally, found);
}

static void tell_progress(void *arg, uint64_t done, uint64_t total)
{
	struct recovery_thread *r = arg;
	int64_t now_ns = SYS(r->cfg.sys, now_mono);
	char state[128];

	atomic_store(&r->total, total);
	atomic_store(&r->done, done);
	if (r->told_ns != 0 && now_ns - r->told_ns < PATIENCE_NS)
		return;
	snprintf(state, sizeof(state),
	    PATIENCE "STATUS=recovering %" PRIu64 " of %" PRIu64, done, total);
	notify_manager(state);
	/* A short recovery needs no line about its progress, so the first
	 * report writes none. */
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
		/* Failures are always logged, because refd does not serve such
		 * a repository. */
		if (*lines >= FOUND_LOGGED &&
		    repo->items[i].finding != STORE_FAILED)
			continue;
		found = (struct store_found){ .finding = repo->items[i].finding,
			.repo = repo->path,
			.ref = repo->items[i].ref,
			.text = repo->items[i].text,
			.evidence = repo->items[i].evidence };
		store_notices_finding(NULL, &found);
		++*lines;
	}
}

/* Logs the findings by repository. Repositories behind the limit are logged
 * only if recovery failed there. */
static void log_report(const struct finding_tally *tally)
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

static void log_summary(const struct recovery_thread *r, int64_t took_ns)
{
	char words[TALLY_WORDS_MAX];

	tally_words(r->tally.counts, words);
	log_event(LOG_LEVEL_INFO, "recovered",
	    LOG_NUM("took_ms", took_ns / 1000000),
	    LOG_NUM("records_deferred", r->deferred), LOG_TEXT(words));
}

static int recover_and_start(struct recovery_thread *r)
{
	const struct store_report report = { .found = add_finding,
		.progress = tell_progress,
		.arg = r };
	int64_t began_ns = SYS(r->cfg.sys, now_mono);
	char *why;
	int err;

	notify_manager(PATIENCE "STATUS=recovering");
	err = store_recover(r->cfg.store, &report, &r->deferred);
	log_report(&r->tally);
	if (err < 0) {
		why = store_recover_why(r->cfg.store);
		log_event(LOG_LEVEL_ERROR, "recovery-failed",
		    LOG_STR("error", why != NULL ? why : strerror(-err)),
		    LOG_TEXT("nothing is served, since an acknowledged update "
			     "might be missing"));
		free(why);
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

static void *recovery_thread_main(void *arg)
{
	struct recovery_thread *r = arg;

	r->result = recover_and_start(r);
	atomic_store(&r->over, true);
	r->cfg.wake(r->cfg.wake_arg);
	return NULL;
}

/* ---- the loop's side ---- */

/* The loop handles signals, so this thread, and the threads that the store
 * starts from here, inherit a mask that blocks all of them. */
static int recovery_create_thread(struct recovery_thread *r)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&r->thread, NULL, recovery_thread_main, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err != 0)
		log_event(LOG_LEVEL_ERROR, "start-failed",
		    LOG_STR("error", strerror(err)),
		    LOG_TEXT("recovery gets no thread"));
	return -err;
}

int recovery_thread_start(const struct recovery_thread_config *cfg,
    struct recovery_thread **recovery)
{
	struct recovery_thread *r = calloc(1, sizeof(*r));
	int err;

	if (r == NULL)
		return -ENOMEM;
	r->cfg = *cfg;
	err = marker_remove(cfg->marker);
	if (err == 0)
		err = recovery_create_thread(r);
	if (err < 0) {
		free(r);
		return err;
	}
	*recovery = r;
	return 0;
}

bool recovery_thread_is_over(struct recovery_thread *recovery, int *result)
{
	if (!atomic_load(&recovery->over))
		return false;
	*result = recovery->result;
	return true;
}

void recovery_thread_progress(struct recovery_thread *recovery, uint64_t *done,
    uint64_t *total)
{
	*done = atomic_load(&recovery->done);
	*total = atomic_load(&recovery->total);
}

void recovery_thread_free(struct recovery_thread *recovery)
{
	if (recovery == NULL)
		return;
	pthread_join(recovery->thread, NULL);
	tally_done(&recovery->tally);
	free(recovery);
}
