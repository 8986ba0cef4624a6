/*
 * The packer: moves the loose refs of repositories into packed-refs, round by
 * round (pack_round.h). A client asks for it (`refd pack`), or a repository has
 * got as many new loose refs as the threshold.
 *
 *	packer_ask(), packer_synced() -> jobs -> a worker -> struct completions
 *
 * A worker does one round of a job. Then the job rests, so that writers,
 * batches and jobs of other repositories get their turn. One round at a time
 * runs on a file system, so a slow disk keeps one worker.
 *
 * Any thread may call each function, unless its comment says otherwise. The
 * mutex of the struct guards the jobs. Under it only locks inside other modules
 * are taken, and no callback is called.
 */
#ifndef STORE_PACKER_H
#define STORE_PACKER_H

#include "daemon/base/workers.h"
#include "daemon/store/completions.h"
#include "daemon/store/deferred/deferred.h"
#include "daemon/store/parts.h"
#include "daemon/store/pipeline/pipeline.h"
#include "daemon/store/repos/repo.h"

/* The maximum of rounds at a time, and the number of workers that other work
 * leaves to them. */
#define PACKER_WORKERS  2
#define PACKER_RESERVED 1

struct packer;

/* Before workers_start(). CFG is borrowed until packer_free(). NULL: out of
 * memory. */
struct packer *packer_new(const struct store_parts *cfg);
/* NULL is fine. After packer_allow(P, false) and workers_stop(). Drops
 * automatic jobs, if workers have never run. */
void packer_free(struct packer *p);

/* A repository with this many new loose refs is packed, or none if 0. */
void packer_set_threshold(struct packer *p, uint64_t refs);
/* Hands ASK over, with the reference to its repository. ASK comes back through
 * COMPLETIONS. */
void packer_ask(struct packer *p, struct store_question *ask);
/* To be called after each successful checkpoint of FS. Packs the open
 * repositories on FS that have reached the threshold. If another program has
 * replaced the packed-refs of a repository, the first such call after ten
 * seconds compares packed-refs with the records (returned.h), and reports the
 * findings. */
void packer_synced(struct packer *p, const struct fs *fs);
/* May rounds begin? If not, every ASK comes back at once, or at the end of its
 * round. */
void packer_allow(struct packer *p, bool allowed);

void packer_stats(struct packer *p, struct store_stats *stats);
/* Adds the rounds in work to PROGRESS (store_progress()). */
void packer_progress(struct packer *p, int64_t before_ns,
    struct store_progress *progress);

#endif
