/*
 * The changes that enable makes in a repository. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_ENABLE_PLAN_H
#define CLIENT_ENABLE_ENABLE_PLAN_H

#include "client/enable/enable.h"

/* The first three are set by the caller; enable_plan_done() takes the site
 * too. */
struct enable_plan {
	const struct wishes *w;
	const struct gitdir *gd;
	struct site site;
	struct gitconfig own,
	    all;            /* its file alone; as git resolves it there */
	char *hooks;        /* where git finds hooks */
	bool hooks_are_set; /* by core.hooksPath */
	bool by_system;     /* enabled, but not by the own file */
	bool changes;       /* anything is to be done */
	bool makes_hook;    /* proc-receive, in site.hooks */
	bool makes_gate;    /* reference-transaction, likewise */
};

/* Runs as the owner. False: not possible; an error was printed. */
bool enable_plan_make(struct enable_plan *p);
void enable_plan_done(struct enable_plan *p);

/* ---- the wishes of every site ---- */

/* False: another value of KEY in OWN, which is the configuration itself, would
 * overrule VALUE; an error was printed. */
bool enable_wish(struct site *site, const struct gitconfig *own,
    const char *key, const char *value);
/* enable_fsync and enable_no_packing, where SET has no value, and a note if
 * refd will make the configuration. */
void enable_wish_defaults(struct site *site, const struct gitconfig *set);

#endif
