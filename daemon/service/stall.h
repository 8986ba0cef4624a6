/*
 * Detects work that hangs: a flush that has not returned for some time, and a
 * stage of the store with a thread that has not returned from a repository, a
 * file system or a file. The log, the status and the metrics report a stall and
 * its end. A new start ends some stalls and makes others worse, so this file
 * also decides whether the service manager should end the daemon:
 *
 *	flush of the journal	Yes. No update is answered until the flush
 *				returns. The next start finishes acknowledged
 *				updates.
 *	all threads of a stage	Yes, if every update passes that stage: the
 *				daemon serves nobody.
 *	any other stall		No. Clients of other disks, and clients without
 *				new objects, are served. A restarted daemon
 *				would wait for the same disk, and then nobody
 *				is served. Besides, a slow flush, such as a
 *				syncfs behind gigabytes of another program's
 *				data, looks the same as a flush that hangs.
 *
 * Loop thread; nothing blocks.
 */
#ifndef SERVICE_STALL_H
#define SERVICE_STALL_H

#include "daemon/base/log.h"
#include "daemon/store/store.h"

/* The status and the metrics report a thread after this time. */
#define STALL_TOLD_NS (5 * 1000000000LL)
/* Bytes of a sentence about a stall. */
#define STALL_TEXT 512

struct stall {
	const struct sys *sys;
	const char *state_dir; /* borrowed */
	struct log_limit begun_limit, over_limit;

	/* Results of the last stall_look(). */
	int64_t since_ns; /* start of the flush that hangs; 0: none hangs */
	bool is_journal;  /* the flush that hangs is the journal's */
	char path[REFD_PATH_MAX];
	int64_t stage_ns[STORE_STAGES]; /* start of each stall; 0: none */
	char text[STALL_TEXT];          /* about a stage that stalls, or "" */
	bool stops_all;                 /* the stages serve nobody */
};

void stall_init(struct stall *stall, const struct sys *sys,
    const char *state_dir);
/* Looks at the running STORE. LIMIT_NS: the time that a flush, or a thread's
 * work, may take. True: the daemon serves nobody. */
bool stall_look(struct stall *stall, struct store *store, int64_t limit_ns);
/* True: so many threads are stuck that the stages serve nobody. */
bool stall_stops_all(const struct store_progress progress[STORE_STAGES]);

/* Did the last look find a flush or a stage that stalls? */
bool stall_is_on(const struct stall *stall);
/* Age of the hanging flush that the last look found, in seconds, rounded up;
 * 0: none. */
uint64_t stall_seconds(const struct stall *stall);
/* Path of that flush; "": none. */
const char *stall_path(const struct stall *stall);
/* Writes a sentence about P, the progress of STAGE, to TEXT, and returns TEXT.
 * SHOWS_PATH: the reader may know paths of all repositories. */
const char *stall_describe(char text[STALL_TEXT], enum store_stage stage,
    const struct store_progress *p, int64_t now_ns, bool shows_path);

#endif
