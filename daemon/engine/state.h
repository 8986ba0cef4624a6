/*
 * The engine's inside, as engine.c, arrive.c, back.c and decide.c share it.
 * Private to them; loop thread only.
 */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include "daemon/engine/answer.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/names.h"
#include "daemon/engine/notes.h"
#include "daemon/engine/table.h"
#include "daemon/engine/turns.h"

struct engine {
	struct engine_config cfg;
	struct engine_store store;

	struct table table;
	struct askers askers;
	struct turns turns;
	struct names names;
	struct heap deadlines; /* of entries that WAIT */
	struct notes notes;
	struct entry *decided; /* to be answered */

	uint64_t arrivals;
	size_t held_bytes;  /* of requests in the table */
	size_t window_refs; /* the present limit, see back.c */
	size_t nr_windows, nr_admitting, nr_lookups; /* in the store's hands */

	int64_t wall_ms, wall_at_ns; /* what engine_run was told last */
	bool is_draining, is_hurrying, is_running;
	struct engine_stats stats;
};

/* ---- decide.c: what the engine decides by itself, and answers ---- */

/* One undecided update that no window holds. */
void decide(struct engine *e, struct txn_update *u, enum refd_status status,
    const char *text, int64_t now_ns);
/* U, which no window holds, found its lock held for too long. */
void decide_locked(struct engine *e, struct txn_update *u, int64_t now_ns);
/* U and OTHER of one atomic transaction are related; it is over. */
void decide_clash(struct engine *e, struct txn_update *u,
    const struct txn_update *other, int64_t now_ns);
/* U has just got its status; its entry's counts follow. */
void decide_count(struct txn_update *u);
/* All undecided ones of ENT, which isn't lent. */
void decide_rest(struct engine *e, struct entry *ent, enum refd_status status,
    const char *text, int64_t now_ns);
/* They wait no longer. Those that found a lock held get LOCKED, the others
 * DEADLINE, or ABORTED when they are siblings of such a one. */
void decide_late(struct engine *e, struct entry *ent, int64_t now_ns);
/* Has an update of ENT failed? An atomic one's siblings are aborted then. */
bool decide_siblings(struct engine *e, struct entry *ent, int64_t now_ns);
/* A WAITING (or ADMITTING) entry without undecided updates is DECIDED. */
void decide_finish(struct engine *e, struct entry *ent);
/* For those of TXN's results that have none of their own, or NULL. */
const char *decide_shared_text(const struct txn *txn);
/* Answers those that are, and keeps them for their notes or lets them go. */
void decide_answer_all(struct engine *e);
/* Out of table and memory. */
void decide_forget(struct engine *e, struct entry *ent);

/* ---- arrive.c: from admission to the names' queues ---- */

void arrive_admit(struct engine *e, struct entry *ent);
void arrive_admitted(struct engine *e, struct txn *txn, int64_t now_ns);
/* The repository at its path is another: admits ENT, which WAITs, again. */
void arrive_again(struct engine *e, struct entry *ent, int64_t now_ns);
/* Queues some updates of those that arrived; true: there are more. */
bool arrive_some(struct engine *e, int64_t now_ns);
/* ENT counts against its deadline; or not any more. */
void arrive_time(struct engine *e, struct entry *ent, bool timed);

/* ---- back.c: what the store gives back ---- */

void back_window(struct engine *e, struct window *w, int64_t now_ns);

#endif
