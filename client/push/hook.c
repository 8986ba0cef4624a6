/*
 * "refd hook proc-receive", which receive-pack runs for a push.
 *
 *	greeting, all commands
 *	-> commands of another hook are set apart (refd.chain)
 *	-> a push that refd cannot do is left to git, as a whole, but not while
 *	   refs may await recovery
 *	-> the rules of receive-pack are checked for each command, then one
 *	   transaction (push_send.h: with hooks, several); atomic if the
 *	   push is
 *	-> the other hook
 *	-> a verdict for each command, in order
 *
 * The daemon may do a request that was sent, so the push is then never left to
 * git: the verdict is the daemon's answer or "unknown".
 */
#include "client/push/hook.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/push/chain.h"
#include "client/push/push.h"
#include "client/push/push_fallback.h"
#include "client/push/push_send.h"
#include "client/push/rules.h"
#include "client/request/connect.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"

struct hook {
	struct push push;
	struct gitdir gd;
	struct gitconfig config;
};

static void write_all(struct pkt_buf *out)
{
	size_t at = 0;
	ssize_t n;

	if (pkt_buf_failed(out))
		die("cannot put the report into packets");
	while (at < out->len) {
		n = write(1, out->data + at, out->len - at);
		if (n < 0 && errno != EINTR)
			die("receive-pack does not listen: %s",
			    strerror(errno));
		if (n > 0)
			at += (size_t)n;
	}
	pkt_buf_done(out);
}

/* Push options are requested only if a hook reads them. */
static void read_push(struct hook *h)
{
	struct push_reader in = { .fd = 0 };
	struct push *push = &h->push;
	struct pkt_buf out = { 0 };
	const char *why;

	if (!push_read_version(&in, push, &why))
		die("%s", why);
	push->has_options = push->has_options && chain_is_set(&h->config);
	push_put_version(push->has_options, &out);
	write_all(&out);
	if (!push_read_commands(&in, push, &why) ||
	    (push->has_options && !push_read_options(&in, push, &why)))
		die("%s", why);
	push_reader_done(&in);
	push_set_namespace(push, getenv("GIT_NAMESPACE"));
}

/* ---- refd's own ---- */

static void refuse(struct hook *h, const char *why)
{
	char *reason = xasprintf("failed to update ref: refd: %s", why);
	size_t i;

	for (i = 0; i < h->push.nr; i++)
		if (!h->push.commands[i].is_chained && !h->push.commands[i].ng)
			h->push.commands[i].ng = xstrdup(reason);
	free(reason);
}

/* Tells the pusher, because these refs have git's durability. WHY is NULL if
 * the pusher was told before. */
static void leave_to_git(struct hook *h, const char *why)
{
	struct text not = { 0 };
	size_t i;

	if (connect_may_leave(NULL, &h->config, &h->gd,
		clock_deadline_ms(PUSH_CONNECT_MS),
		why ? why : "the daemon is away", &not) != CONNECT_USE_GIT) {
		refuse(h, not.data);
		text_done(&not);
		return;
	}
	if (why)
		say("%s; git updates the refs itself", why);
	for (i = 0; i < h->push.nr; i++) {
		struct push_command *c = &h->push.commands[i];

		if (c->is_chained)
			continue;
		free(c->ng);
		c->ng = NULL;
		c->is_gits = true;
	}
}

static void apply_rules(struct rules *rules, struct push *push,
    struct push_command *const *commands, size_t nr)
{
	const char *why;
	size_t i;

	for (i = 0; i < nr; i++) {
		why = commands[i]->ng ? NULL : rules_refuse(rules, commands[i]);
		if (!why)
			continue;
		commands[i]->ng = xstrdup(why);
		if (push->atomic) {
			push_refuse(push, "atomic push failure");
			return;
		}
	}
}

static bool put_batches(struct hook *h, struct push_send *d,
    struct rules *rules)
{
	while (push_send_next(d)) {
		apply_rules(rules, &h->push, d->commands + d->at, d->nr_batch);
		if (!push_send_put(d))
			return false;
	}
	return true;
}

/* If git does the push, git checks the rules, and the pusher must not get their
 * messages twice. So the connection comes before the check of the rules. */
static void serve(struct hook *h)
{
	struct push_send d = { 0 };
	struct rules rules;
	const char *why;
	bool is_gits;

	rules_load(&rules, &h->gd, &h->config);
	why = push_fallback_reason(&h->push, &h->config, &h->gd, &rules);
	is_gits = why != NULL;
	if (!is_gits)
		switch (push_send_open(&d, &h->push, &h->gd, &h->config,
		    rules.update.exists, &why)) {
		case PUSH_BY_DAEMON:
			is_gits = !put_batches(h, &d, &rules);
			if (is_gits)
				why = d.unserved;
			break;
		case PUSH_BY_GIT:
			is_gits = true;
			break;
		case PUSH_BY_NOBODY:
			break;
		}
	if (is_gits)
		leave_to_git(h, why);
	push_send_close(&d);
	rules_done(&rules);
}

/* ---- all of it ---- */

static void decide(struct hook *h)
{
	size_t chained = chain_mark(&h->config, &h->push);

	if (chained && chained < h->push.nr && h->push.atomic) {
		push_refuse(&h->push,
		    "refd: an atomic push can't go both to refd and to the "
		    "hook of refd.chain");
		return;
	}
	if (chained < h->push.nr)
		serve(h);
	if (chained)
		chain_run(&h->config, &h->gd, &h->push);
}

int hook_proc_receive(void)
{
	struct hook h = { 0 };
	struct pkt_buf out = { 0 };

	/* Without receive-pack git tells the pusher that nothing happened, so
	 * nobody may wait: then the daemon drops what has not begun. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	gitdir_require(&h.gd, getenv("GIT_DIR"));
	gitconfig_load(&h.config, &h.gd);
	h.gd.is_reftable = gitconfig_is_reftable(&h.config);
	read_push(&h);
	decide(&h);
	push_put_report(&h.push, &out);
	write_all(&out);
	push_done(&h.push);
	gitconfig_done(&h.config);
	gitdir_done(&h.gd);
	return EXIT_DONE;
}
