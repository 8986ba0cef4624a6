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

/* Findings that are logged one by one; all are counted. */
#define FOUND_LOGGED 100
/* How often the service manager is asked for patience, and for how much. */
#define PATIENCE_NS (5 * 1000000000LL)
#define PATIENCE    "EXTEND_TIMEOUT_USEC=60000000\n"

struct recovery {
	struct recovery_config cfg;
	pthread_t thread;
	atomic_bool over;
	int result;
	uint64_t parked;

	/* The thread's own. */
	uint64_t found[STORE_FAILED + 1], nr_found;
	int64_t told_ns;
};

/* ---- the thread ---- */

static void log_finding(enum store_finding finding, const char *repo,
    const char *ref, const char *text)
{
	const char *name = store_finding_name(finding);

	repo = repo != NULL ? repo : "";
	ref = ref != NULL ? ref : "";
	text = text != NULL ? text : "";
	switch (finding) {
	case STORE_REDONE:
	case STORE_ROLLED_FORWARD:
	case STORE_UNLOCKED:
	case STORE_LOG_REPAIRED:
		log_info("recovery: %s: %s %s %s", name, repo, ref, text);
		break;
	case STORE_LEFT:
	case STORE_PARKED:
	case STORE_REPO_MISSING:
	case STORE_OBJECT_MISSING:
		log_warning("recovery: %s: %s %s %s", name, repo, ref, text);
		break;
	case STORE_FAILED:
		log_error("recovery: %s: %s %s %s", name, repo, ref, text);
		break;
	}
}

static void recovery_found(void *arg, enum store_finding finding,
    const char *repo, const char *ref, const char *text)
{
	struct recovery *r = arg;

	r->found[finding]++;
	r->nr_found++;
	/* A failure keeps a whole repository from being served. */
	if (r->nr_found <= FOUND_LOGGED || finding == STORE_FAILED)
		log_finding(finding, repo, ref, text);
	else if (r->nr_found == FOUND_LOGGED + 1)
		log_info("recovery: further findings are only counted");
}

static void recovery_progressed(void *arg, uint64_t done, uint64_t total)
{
	struct recovery *r = arg;
	int64_t now_ns = SYS(r->cfg.sys, now_mono);
	char state[128];

	if (r->told_ns != 0 && now_ns - r->told_ns < PATIENCE_NS)
		return;
	r->told_ns = now_ns;
	snprintf(state, sizeof(state),
	    PATIENCE "STATUS=recovering: %" PRIu64 " of %" PRIu64 " records",
	    done, total);
	notify_manager(state);
}

static void log_summary(const struct recovery *r, int64_t took_ns)
{
	char text[512] = "";
	size_t len = 0;
	int i;

	for (i = 0; i <= STORE_FAILED; i++) {
		if (r->found[i] > 0 && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len,
			    ", %" PRIu64 " %s", r->found[i],
			    store_finding_name((enum store_finding)i));
	}
	log_info("recovered in %" PRId64 " ms%s; %" PRIu64 " records parked",
	    took_ns / 1000000, text, r->parked);
}

static int recover(struct recovery *r)
{
	const struct store_report report = { .found = recovery_found,
		.progress = recovery_progressed,
		.arg = r };
	int64_t began_ns = SYS(r->cfg.sys, now_mono);
	int err;

	err = store_recover(r->cfg.store, &report, &r->parked);
	if (err < 0) {
		log_error("recovery failed: %s; nothing is served, since an "
			  "acknowledged update might be missing",
		    strerror(-err));
		return err;
	}
	log_summary(r, SYS(r->cfg.sys, now_mono) - began_ns);
	err = store_start(r->cfg.store);
	if (err < 0) {
		log_error("the store cannot be started: %s", strerror(-err));
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
		log_error("cannot start the recovery's thread: %s",
		    strerror(err));
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

bool recovery_is_over(struct recovery *recovery, int *result, uint64_t *parked)
{
	if (!atomic_load(&recovery->over))
		return false;
	*result = recovery->result;
	*parked = recovery->parked;
	return true;
}

void recovery_free(struct recovery *recovery)
{
	if (recovery == NULL)
		return;
	pthread_join(recovery->thread, NULL);
	free(recovery);
}
