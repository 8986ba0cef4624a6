#include "client/push/chain.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/hooks/gate_link.h"
#include "client/hooks/refpattern.h"
#include "client/push/chain_talk.h"

#define KEY "refd.chain"
/* The repository of the running hook. If the hook is refd itself, the recursion
 * would have no end without this variable. */
#define CALLED_ENV "REFD_CHAINED"

/* ---- which refs ---- */

static bool matches(const struct refpattern *p, const struct push_command *c)
{
	return refpattern_matches(p, c->name, refd_oid_is_null(&c->old_oid),
	    refd_oid_is_null(&c->new_oid));
}

bool chain_is_set(const struct gitconfig *config)
{
	return gitconfig_get(config, KEY) != NULL;
}

static bool any_matches(const struct gitconfig *config,
    const struct push_command *c)
{
	const char *key, *value;
	struct refpattern p;
	size_t at = 0;

	while (gitconfig_next(config, &at, &key, &value)) {
		if (strcmp(key, KEY))
			continue;
		refpattern_parse(&p, value);
		if (matches(&p, c))
			return true;
	}
	return false;
}

size_t chain_mark(const struct gitconfig *config, struct push *push)
{
	size_t i, marked = 0;

	if (!chain_is_set(config))
		return 0;
	for (i = 0; i < push->nr; i++) {
		struct push_command *c = &push->commands[i];

		c->is_chained = any_matches(config, c);
		marked += c->is_chained;
	}
	return marked;
}

/* ---- which hook ---- */

/* Returns NULL after reporting the reason. */
static char *find_hook(const struct gitconfig *config, const struct gitdir *gd)
{
	const char *set = gitconfig_get(config, "refd.chainhook");
	const char *called = getenv(CALLED_ENV);
	char *path = set && *set ?
	    xstrdup(set) :
	    xasprintf("%s/hooks/proc-receive", gd->common);

	if (gate_link_is_this_program(path) ||
	    (called && !strcmp(called, gd->common)))
		say_error("%s is refd itself, which " KEY " hands refs on "
			  "from: refd.chainHook can name another hook",
		    path);
	else if (access(path, X_OK) < 0)
		say_error("cannot find hook 'proc-receive' at %s, which " KEY
			  " hands refs to: refd.chainHook can name it",
		    path);
	else
		return path;
	free(path);
	return NULL;
}

/* ---- the report of the hook ---- */

struct report {
	struct push *push;
	struct push_command *last; /* has a report */
	bool takes_options;        /* the last status was ok */
	bool has_lone_option;
	/* A line each; said at the end, as by git, because the hook writes
	 * now. */
	struct text errors;
};

static bool is_named(const struct push_command *c, const char *name, size_t len)
{
	return strlen(c->name) == len && !memcmp(c->name, name, len);
}

static bool is_word(const struct pkt *pkt, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(pkt->data, word, len);
}

/* Searches from the last command found, because a name may occur twice, and
 * then everywhere. */
static struct push_command *find_command(const struct report *r,
    const char *name, size_t len)
{
	struct push_command *begin = r->push->commands;
	struct push_command *end = begin + r->push->nr, *c;

	for (c = r->last ? r->last : begin; c < end; c++)
		if (is_named(c, name, len))
			return c;
	for (c = begin; c < end; c++)
		if (is_named(c, name, len))
			return c;
	return NULL;
}

static void take_status(struct report *r, const struct pkt *pkt, size_t head)
{
	const char *name = pkt->data + head + 1;
	const char *end = pkt->data + pkt->len;
	const char *space = memchr(name, ' ', (size_t)(end - name));
	int len = (int)((space ? space : end) - name);
	bool is_ok = is_word(pkt, head, "ok");

	r->takes_options = false;
	if (!is_ok && !is_word(pkt, head, "ng")) {
		text_addf(&r->errors,
		    "proc-receive reported bad status '%.*s' on ref '%.*s'\n",
		    (int)head, pkt->data, len, name);
		return;
	}
	r->last = find_command(r, name, (size_t)len);
	if (r->last && r->last->is_chained) {
		pkt_put(&r->last->said, pkt->data, pkt->len);
		r->takes_options = is_ok;
	} else {
		text_addf(&r->errors,
		    "proc-receive reported status on %s ref: %.*s\n",
		    r->last ? "unexpected" : "unknown", len, name);
	}
}

static void take_option(struct report *r, const struct pkt *pkt)
{
	if (r->takes_options)
		pkt_put(&r->last->said, pkt->data, pkt->len);
	else if (!r->has_lone_option)
		text_adds(&r->errors,
		    "proc-receive reported 'option' without a matching "
		    "'ok/ng' directive\n");
	r->has_lone_option |= !r->takes_options;
}

/* Follows read_proc_receive_report() of git's builtin/receive-pack.c. */
static void take_line(void *data, const struct pkt *line)
{
	struct report *r = data;
	struct pkt pkt = *line;
	const char *space;
	size_t head;

	if (pkt.len && pkt.data[pkt.len - 1] == '\n')
		pkt.len--;
	space = memchr(pkt.data, ' ', pkt.len);
	head = space ? (size_t)(space - pkt.data) : pkt.len;
	if (!space)
		text_addf(&r->errors,
		    "proc-receive reported incomplete status line: '%.*s'\n",
		    (int)pkt.len, pkt.data);
	else if (is_word(&pkt, head, "option"))
		take_option(r, &pkt);
	else
		take_status(r, &pkt, head);
}

/* The commands without a report. */
static void refuse_rest(struct push *push, const char *why)
{
	size_t i;

	for (i = 0; i < push->nr; i++) {
		struct push_command *c = &push->commands[i];

		if (c->is_chained && !c->ng && !c->said.len)
			c->ng = xstrdup(why);
	}
}

void chain_run(const struct gitconfig *config, const struct gitdir *gd,
    struct push *push)
{
	struct report report = { .push = push };
	char *path = find_hook(config, gd);
	const char *why = "fail to run proc-receive hook";

	if (path) {
		if (setenv(CALLED_ENV, gd->common, 1) < 0)
			die("out of memory");
		why = chain_talk(path, push, take_line, &report);
	}
	if (report.errors.len) {
		report.errors.data[report.errors.len - 1] = '\0';
		say_error("%s", report.errors.data);
	}
	text_done(&report.errors);
	refuse_rest(push, why);
	free(path);
}
