/*
 * One machine: one ref in a file, the daemon, git, and a disk that loses what
 * was not synced. docs/recovery.md has the bounds, and what is left out.
 *
 * Checked:
 *	- an acknowledged value is never lost, unless git wrote later;
 *	- a refused value never appears;
 *	- the ref never goes back to an earlier value. Only a power loss itself
 *	  takes values, and the recovery after it may replace an absent or a
 *	  broken ref;
 *	- an update replaces the value that its check saw;
 *	- after a crash, an update that never happened is not "ok";
 *	- no lock of refd is left after recovery, and nobody removes git's lock.
 * Faults come at every step of recovery, too, so recovery can be repeated.
 *
 * Each writer takes a number when it has the lock of the ref. The numbers are
 * at once the values, their order, and the times of files and locks. Each name
 * of a fault in an #ifdef or #ifndef is a mutation which breaks one of these
 * (tests/long/model.sh). tests/unit/test_local_trace.c reads all lines with
 * STEP and ROUND, and compares the daemon with them.
 */
#define TXNS    2 /* updates by refd */
#define GITS    2 /* writes and deletions by git */
#define NUMBERS (TXNS + GITS) /* KNOWN has four, and a name three bits */
#ifndef PACKS
#define PACKS 1 /* git pack-refs */
#endif
#ifndef FAULTS
#define FAULTS 2 /* of all kinds together */
#endif
#ifndef PENDING
#define PENDING 8 /* states of the names that a power loss may leave */
#endif

/* The holder of a lock is the number of a batch, or: */
#define NOBODY   0
#define GIT      6
#define RECOVERY 7 /* refd's, by the token of a recovery */
#define DEAD     8 /* git's, from before the power loss */
#define OURS     (lock != NOBODY && lock != GIT && lock != DEAD)

mtype:daemon = { DOWN, IDLE, LOCKED, CHECKED, APPENDED, FLUSHED, PUBLISHED,
	UNLOCKED, DROPPED, REFUSED, OPENED, SWEPT, HELD, ALONE, RELOCKED,
	ABORTING, RETRACTING, UNSURE, TAKEN, JUDGED, CLEAN, SAFE };
mtype:round = { REST, COUNTED, SYNCED };
mtype:foreign = { AWAY, WRITING, PACKING, PRUNING };

/* ---- the names on the disk, as memory has them ---- */

unsigned token : 3;  /* in stage/: the number of its batch */
bool staged;         /* the value of the batch is in stage/ */
unsigned lock : 4;   /* <ref>.lock */
unsigned x : 3;      /* <ref>: its value; 0: absent */
unsigned x_time : 3;
bool broken;         /* <ref> lost its content */
unsigned packed : 3; /* the value in packed-refs; 0: none */
unsigned packed_time : 3;
unsigned gone : 3;   /* if the ref is absent: who deleted it */

/* What a power loss may leave: the names at the last sync, and after each
 * change since. When the list is full, the disk has written the oldest. */
int past[PENDING];
byte nr_past;

/* ---- the commit log: the row of each batch, and its abort record ---- */

#define NONE    0
#define WRITTEN 1
#define DURABLE 2
byte row[NUMBERS + 1], aborted[NUMBERS + 1];
byte before[NUMBERS + 1]; /* the value that the check saw */
bool aged[NUMBERS + 1];   /* from before a power loss */
byte forgot, forgot_disk; /* rows up to this one */

/* ---- the programs ---- */

mtype:daemon at = IDLE;
mtype:round round = REST;
mtype:foreign git = AWAY;
bool up = true;  /* recovery has ended */
bool lost;       /* a power loss, and recovery has not ended since */
byte id;         /* the batch, or the one that a client asks about */
byte old, last, ended, floor, git_id, git_read;
byte next = 1, txns, gits, packs, faults;
#define NOW (next - 1)

/* ---- what was promised ---- */

byte acked; /* the last value that was acknowledged */
bool refused[NUMBERS + 1], shown[NUMBERS + 1], by_git[NUMBERS + 1];
byte was;   /* SEEN before this change */

#define VALUE (x -> x : packed)
#define SEEN  (broken -> 0 : (VALUE -> VALUE : gone))

inline check() {
	assert(!refused[VALUE]);
	assert(!up || SEEN >= acked || (broken && by_git[x] && x > acked))
}

#define CODE (token | staged << 3 | lock << 4 | x << 8 | x_time << 11 |        \
	broken << 14 | packed << 15 | packed_time << 18 | gone << 21)

/* A name has changed. */
inline note() {
	assert(SEEN >= was);
	was = SEEN;
	if
	:: nr_past == PENDING - 1 ->
		for (k : 0 .. PENDING - 2) { past[k] = past[k + 1] }
		k = 0
	:: else -> nr_past++
	fi;
	past[nr_past] = CODE;
	if
	:: !broken -> shown[VALUE] = true
	:: else
	fi;
	check()
}

inline sync_all() {
	for (k : 1 .. PENDING - 1) { past[k] = 0 }
	k = 0; nr_past = 0;
	past[0] = CODE
}

inline flush() {
	for (k : 1 .. NUMBERS) {
		row[k] = (row[k] == WRITTEN -> DURABLE : row[k]);
		aborted[k] = (aborted[k] == WRITTEN -> DURABLE : aborted[k])
	}
	k = 0;
	forgot_disk = forgot
}

/* The staged value of NUMBER becomes the ref. */
inline place(number, its_time) {
	x = number; x_time = its_time;
	broken = false; staged = false; gone = 0;
	note()
}

#define STEP(from, name, to, when)  at == from && (when) -> at = to
#define ROUND(from, name, to, when) round == from && (when) -> round = to

/* ---- the daemon: batches, and the checkpoint beside them ---- */

active proctype refd() {
	byte k;

end:	do
	:: d_step { STEP(IDLE, lock, LOCKED, lock == NOBODY && !broken &&
		txns < TXNS);
		txns++; id = next; next++;
		token = id; staged = true; note();
		lock = id; note() }
#ifdef READ_FIRST
	:: d_step { at == IDLE && old != SEEN -> old = SEEN }
#endif
	:: d_step { STEP(LOCKED, check, CHECKED, true);
#ifndef READ_FIRST
		old = SEEN;
#endif
		}
	:: d_step { STEP(CHECKED, append, APPENDED, true);
#ifdef ANSWER_FIRST
		acked = id;
#endif
#ifdef PUBLISH_FIRST
		place(id, id);
#endif
		row[id] = WRITTEN; before[id] = old }
	:: d_step { STEP(APPENDED, flush, FLUSHED, true);
		flush();
#ifdef UNLOCK_FIRST
		lock = NOBODY; note();
#endif
		}
	/* The flush fails. The daemon opens the log again, and looks. */
	:: d_step { at == APPENDED && faults < FAULTS ->
		faults++; row[id] = NONE; at = REFUSED }
#ifdef TRUST_FAILED_FLUSH
	:: d_step { at == APPENDED && faults < FAULTS ->
		faults++; flush(); at = REFUSED }
#endif
	:: d_step { at == REFUSED ->
		refused[id] = true; id = 0; old = 0;
		lock = NOBODY; note();
		token = 0; staged = false; note(); at = IDLE }
	:: d_step { STEP(FLUSHED, publish, PUBLISHED, true);
#ifndef PUBLISH_FIRST
		assert(old == SEEN);
		place(id, id);
#endif
		}
	:: d_step { STEP(PUBLISHED, release, UNLOCKED, true);
#ifndef UNLOCK_FIRST
		lock = NOBODY; note();
#endif
		}
	:: d_step { STEP(UNLOCKED, drop, DROPPED, true);
		token = 0; note(); ended = id }
	:: d_step { STEP(DROPPED, answer, IDLE, true);
		acked = id; id = 0; old = 0; check() }

	:: d_step { ROUND(REST, count, COUNTED, up && ended > forgot);
		floor = ended;
#ifdef FORGET_OPEN
		floor = (id -> id : ended);
#endif
#ifdef FORGET_FIRST
		forgot = floor; forgot_disk = floor;
#endif
		}
	:: d_step { ROUND(COUNTED, sync, SYNCED, true); sync_all() }
	:: d_step { ROUND(SYNCED, forget, REST, true);
#ifdef COUNT_LATE
		floor = ended;
#endif
		forgot = floor; floor = 0 }
	/* No batch comes, so a commit of its own forgets. */
	:: d_step { up && at != APPENDED && forgot_disk < forgot -> flush() }
	od
}

/* ---- recovery ---- */

#ifdef TRUST_LOCK
#define CRASHED true
#else
#define CRASHED (!aged[last])
#endif

#ifdef REDO_PUBLISHED
#define IS_OPEN (CRASHED && (lock == last || (lock == NOBODY && token == 0)))
#else
#define IS_OPEN (CRASHED && lock == last)
#endif
#ifdef UNLOCKED_IS_DONE
#define IS_ALONE false
#else
#define IS_ALONE (CRASHED && lock != last && token == last)
#endif
#ifdef REDO_UNLOCKED
#define IS_AS_BEFORE true
#else
#define IS_AS_BEFORE (SEEN == before[last])
#endif

#define HAS_VALUE (x == last && !broken)
#define KNOWS(r)                                                               \
	(row[r] != NONE && r > forgot && (packed == r || packed == before[r]))
#define KNOWN (KNOWS(1) || KNOWS(2) || KNOWS(3) || KNOWS(4))
/* rule.h: an older, broken or absent value was lost. */
#ifdef KEEP_OLDER
#define OLDER false
#else
#define OLDER (x_time < last)
#endif
#ifdef KEEP_PACKED
#define PACKED_OLDER false
#else
#define PACKED_OLDER (packed_time < last || KNOWN)
#endif
#ifdef TAKE_BACK
#define IS_LOST (!HAS_VALUE)
#else
#define IS_LOST                                                                \
	(!HAS_VALUE && (broken || (x && OLDER) ||                              \
	    (!x && (!packed || (packed != last && PACKED_OLDER)))))
#endif
#ifdef CLEAR_LIVE
#define IS_DEAD (lock == DEAD || lock == GIT)
#else
#define IS_DEAD (lock == DEAD)
#endif
#ifdef LEAVE_ORPHANS
#define IS_KNOWN_OURS (OURS && token != 0)
#else
#define IS_KNOWN_OURS OURS
#endif

inline find_last() {
	last = 0;
	for (k : 1 .. NUMBERS) {
		last = (row[k] != NONE && aborted[k] == NONE && k > forgot ->
		    k : last)
	}
	k = 0
}

inline forget_all() {
	for (k : 1 .. NUMBERS) { forgot = (row[k] != NONE -> k : forgot) }
	k = 0;
	flush()
}

/* A client asks for the outcome of its last update by the id. */
inline ask() {
	if
	:: id && row[id] != NONE && aborted[id] == NONE ->
		assert(shown[id] || aged[id]);
		acked = id
	:: id && (row[id] == NONE || aborted[id] != NONE) -> refused[id] = true
	:: else
	fi;
	id = 0
}

/* A deletion by git leaves no evidence, so a power loss may take it. */
inline redo(number) {
	was = (VALUE -> was : 0);
	place(number, NOW)
}

active proctype recovery() {
	byte k;

end:	do
	:: d_step { STEP(DOWN, open, OPENED, true);
#ifndef READ_UNFLUSHED
		flush();
#endif
		find_last() }
	/* Locks that belong to no open row. */
	:: d_step { STEP(OPENED, sweep, SWEPT, true);
		if
		:: IS_KNOWN_OURS && !(lock == last && CRASHED) ->
			lock = NOBODY; note()
		:: else
		fi }

	/* After a crash the lock tells, and after a power loss the rule. */
	:: d_step { STEP(SWEPT, look, JUDGED, last == 0 ||
		(CRASHED && !IS_OPEN && !IS_ALONE)) }
	:: d_step { STEP(SWEPT, look, HELD, last != 0 && IS_OPEN) }
	:: d_step { STEP(SWEPT, look, ALONE, last != 0 && IS_ALONE) }
	:: d_step { STEP(SWEPT, look, UNSURE, last != 0 && !CRASHED) }

	:: d_step { STEP(HELD, look, JUDGED, HAS_VALUE) }
	:: d_step { STEP(HELD, publish, JUDGED, !HAS_VALUE);
		place(last, NOW) }

	/* Somebody removed the lock of a batch that did not end. */
	:: d_step { STEP(ALONE, look, ABORTING, staged &&
		(lock == GIT || lock == DEAD)) }
	:: d_step { STEP(ALONE, look, JUDGED, !staged &&
		(lock == GIT || lock == DEAD)) }
	:: d_step { STEP(ALONE, lock, RELOCKED, lock == NOBODY);
		lock = RECOVERY; note() }
	:: d_step { STEP(RELOCKED, look, JUDGED, HAS_VALUE || !staged) }
	:: d_step { STEP(RELOCKED, look, HELD, !HAS_VALUE && staged &&
		IS_AS_BEFORE) }
	:: d_step { STEP(RELOCKED, release, ABORTING, !HAS_VALUE && staged &&
		!IS_AS_BEFORE);
		lock = NOBODY; note() }
	/* The line in the log is taken back, under the lock. */
	:: d_step { STEP(ABORTING, lock, RETRACTING, lock == NOBODY);
		lock = RECOVERY; note() }
	:: d_step { STEP(RETRACTING, release, ABORTING, true);
		lock = NOBODY; note() }
	:: d_step { STEP(ABORTING, abort, JUDGED, true);
#ifndef ABORT_LATE
		aborted[last] = WRITTEN; flush();
#endif
		}

	/* A lock of a living git defers the row: here, recovery waits. */
	:: d_step { STEP(UNSURE, clear, UNSURE, IS_DEAD);
		lock = NOBODY; note() }
	:: d_step { STEP(UNSURE, lock, TAKEN, lock == NOBODY);
		lock = RECOVERY; note() }
	:: d_step { STEP(TAKEN, look, JUDGED, !IS_LOST) }
	:: d_step { STEP(TAKEN, publish, JUDGED, IS_LOST);
		redo(last) }
#ifdef REDO_EACH
	:: d_step { at == TAKEN && IS_LOST && KNOWS(1) && last > 1 ->
		redo(1) }
#endif

	:: d_step { STEP(JUDGED, clean, CLEAN, true);
#ifdef FORGET_UNSYNCED
		forget_all();
#endif
		if
		:: IS_KNOWN_OURS -> lock = NOBODY; note()
		:: else
		fi;
		token = 0; staged = false; note() }
	:: d_step { STEP(CLEAN, sync, SAFE, true); sync_all() }
	:: d_step { STEP(SAFE, forget, IDLE, true);
		forget_all();
		assert(!OURS);
		up = true; lost = false; last = 0;
		ask();
		check() }
	od
}

/* ---- git: no sync, except of the content of packed-refs ---- */

active proctype stock_git() {
	byte k;

end:	do
	:: d_step { git == AWAY && lock == NOBODY && gits < GITS ->
		git = WRITING; gits++; git_id = next; next++;
		by_git[git_id] = true;
		lock = GIT; note() }
	/* The rename of the lock, so one change of the names. */
	:: d_step { git == WRITING ->
		assert(lock == GIT);
		lock = NOBODY; x = git_id; x_time = git_id; broken = false;
		gone = 0; note(); git = AWAY; git_id = 0 }
	/* The hooks of refd keep git from a repository until recovery from a
	 * power loss has ended. A writer without hooks writes all the same. */
	:: d_step { git == WRITING && !lost && VALUE ->
		assert(lock == GIT);
		packed = 0; packed_time = 0;
		gone = (x -> 0 : git_id); note();
		x = 0; x_time = 0; broken = false; gone = git_id; note();
		lock = NOBODY; note(); git = AWAY; git_id = 0 }
	:: d_step { git == AWAY && !lost && x && !broken && packs < PACKS ->
		packs++; git = PACKING; git_read = x }
	:: d_step { git == PACKING ->
		git = PRUNING; packed = git_read; packed_time = NOW;
		note() }
	:: d_step { git == PRUNING ->
		if
		:: lock == NOBODY && x == git_read ->
			x = 0; x_time = 0; note()
		:: else
		fi;
		git = AWAY; git_read = 0 }
	/* kill -9 of git: its lock stays. */
	:: d_step { git != AWAY && faults < FAULTS ->
		faults++; git = AWAY; git_id = 0; git_read = 0 }
	od
}

/* ---- what happens to the daemon and to the machine ---- */

inline end_daemon() {
	faults++;
	at = DOWN; round = REST; up = false;
	old = 0; last = 0; ended = 0; floor = 0
}

inline kept_or_lost(record, found) {
	if
	:: record == WRITTEN -> record = NONE
	:: record == WRITTEN -> record = DURABLE
	:: record != WRITTEN
	fi;
	found = found || record != NONE
}

#define FIELD(code, shift, mask) ((code >> shift) & mask)

active proctype faulty_machine() {
	byte k, i;
	bool found;

end:	do
	/* kill -9. The note that rows are forgotten was written, or not. */
	:: d_step { at != DOWN && faults < FAULTS ->
		end_daemon(); forgot = forgot_disk;
#ifdef FORGET_BOOT
		for (k : 1 .. NUMBERS) { aged[k] = false }
		k = 0
#endif
		}
	:: d_step { at != DOWN && faults < FAULTS && forgot != forgot_disk ->
		end_daemon(); forgot_disk = forgot }
	/* Somebody removes a lock of refd, as git's message says. */
	:: d_step { at == DOWN && OURS && faults < FAULTS ->
		faults++; lock = NOBODY; note() }
	/* A power loss keeps the first changes of names. */
	:: atomic { faults < FAULTS ->
		end_daemon();
		i = 0;
		do
		:: i < nr_past -> i++
		:: break
		od;
		token = FIELD(past[i], 0, 7);
		staged = FIELD(past[i], 3, 1);
		lock = FIELD(past[i], 4, 15);
		x = FIELD(past[i], 8, 7);
		x_time = FIELD(past[i], 11, 7);
		broken = FIELD(past[i], 14, 1);
		packed = FIELD(past[i], 15, 7);
		packed_time = FIELD(past[i], 18, 7);
		gone = FIELD(past[i], 21, 7);
		lock = (lock == GIT -> DEAD : lock);
		if	/* The directories of lock and token differ. */
		:: token = 0
		:: true
		fi;
		if	/* The content was not synced. */
		:: x && (x != FIELD(past[0], 8, 7) ||
		    x_time != FIELD(past[0], 11, 7)) -> broken = true
		:: true
		fi;
#ifdef PACKED_UNSYNCED
		if
		:: packed != FIELD(past[0], 15, 7) -> packed = 0
		:: true
		fi;
#endif
		i = 1;
		do
		:: i <= NUMBERS ->
			found = false;
			kept_or_lost(row[i], found);
			aged[i] = found;
			kept_or_lost(aborted[i], found);
			i++
		:: i > NUMBERS -> break
		od;
		i = 0; found = false;
		if
		:: forgot = forgot_disk
		:: forgot_disk = forgot
		fi;
		lost = true; git = AWAY; git_id = 0; git_read = 0;
		was = SEEN;
		d_step { sync_all() } }
	od
}
