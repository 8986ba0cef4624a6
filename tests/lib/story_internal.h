/*
 * Shared by the files of stories; no other file includes this header.
 *
 *	story.c		reads a story, and runs it beside a fault
 *	story_steps.c	what the words of a story do
 *	story_world.c	the repository, the other git, and looks
 *	story_rules.c	the rules that hold after any fault
 */
#ifndef TESTS_LIB_STORY_INTERNAL_H
#define TESTS_LIB_STORY_INTERNAL_H

#include "tests/lib/story.h"
#include "tests/lib/world.h"

#define STORY_UPDATES 8
#define STORY_EVENTS  32

struct acting;

struct story_verb {
	const char *name;
	void (*act)(struct acting *a, char *args);
	/* The daemon has to run; or this is an expectation. */
	bool needs_daemon, is_look;
	size_t nr_words; /* after it */
};
#define STORY_ANY_WORDS 99
/* NULL: no such word. */
const struct story_verb *story_verb(const char *name);

struct story_step {
	unsigned line;
	const struct story_verb *verb;
	char *text, *args;
};

struct story {
	char *path;
	bool is_of[2]; /* files, reftables */
	struct story_step steps[64];
	size_t nr;
};

/* What the client was told of an update. After a kill it was told nothing. */
enum story_told { TOLD_NOTHING, TOLD_OK, TOLD_NO };

/* What a client asked for. The journal cannot vouch for itself, so the rules
 * compare the ref NAME with this value. */
struct story_update {
	char name[64], value;
	bool is_direct; /* NAME itself changes, and not the end of a chain */
	bool is_pruned;
	enum story_told told;
};

/* A transaction of the daemon, or a write by another program: NAME then has
 * VALUE, or with '*' any value. */
struct story_event {
	char name[64]; /* "": a transaction */
	char value;
	/* The write came before recovery, which cannot tell lines apart that
	 * git appended to a torn line, or over a removed lock. */
	bool is_early;
	char id[16];
	struct refd_txid txid;
	bool atomic;
	size_t nr_asked, nr; /* NR: with an answer */
	struct story_update updates[STORY_UPDATES];
};

/* A story that is being acted out. */
struct acting {
	const struct story_step *step;
	const struct story *story;
	struct story_run *run;
	struct world *w;
	struct story_event events[STORY_EVENTS];
	size_t nr_events;
	struct txn *session;
	struct story_event *of_session;
	/* The fault is still to come. The counters at the first step. */
	bool is_armed;
	unsigned long calls, changes;
	/* For the next step: its failing call, and the git beside it. */
	bool is_failing;
	char *beside;
	bool is_beside, git_waits;
	bool is_away;
	/* After a power loss recovery cannot tell equal lines apart. */
	bool has_equal_lines, may_lack_lines;
	char locks[512]; /* of git, by the names of their refs */
	char hit[400];   /* where the fault came */
};

/* ---- story.c ---- */

/* Notes the first finding. */
void story_fail(struct acting *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void story_expect(struct acting *a, const char *want, const char *have);
/* The next word of *AT, or NULL. */
char *story_word(char **at);
/* Has the fault stopped the process, or the machine? */
bool story_is_stopped(struct acting *a);
/* If the fault has come: notes this, and a stopped daemon is down. */
void story_end_fault(struct acting *a);
/* The process ends, and after LOSS the machine, too. */
void story_down(struct acting *a, const struct memfs_choice *loss);
/* A start of the daemon, which only a fault may fail. */
void story_start(struct acting *a);

/* ---- story_steps.c ---- */

/* The repository comes back, and a person removes what dead gits left. */
void story_settle(struct acting *a);

/* ---- story_world.c ---- */

/* The path of NAME in the repository. Static. */
const char *story_path(const char *name);
void story_set_up(struct acting *a);
/* As world_ref(). */
char story_ref(struct acting *a, const char *name);
/* The lines of the log of NAME as "0>1 1>2"; "": none; "torn". Static. */
const char *story_log(struct acting *a, const char *name);
/* The path of the lock that protects NAME. Static. */
const char *story_lock(struct acting *a, const char *name);
/* Another git acts: "NAME = VALUE", "delete NAME", "pack", "lock NAME", "unlock
 * NAME", or several of these, with commas. False: a lock is in the way. */
bool story_git(struct acting *a, const char *args);

/* ---- story_rules.c ---- */

/* Another program has written NAME. */
void story_note(struct acting *a, const char *name, char value);
/* The answers for the id of TXN as "ok, stale"; "nothing". Static. */
const char *story_answer(struct acting *a, const struct story_event *txn);
/* After the last start. */
void story_rules(struct acting *a);

#endif
