#include <stdio.h>

#include "client/update/stdin.h"
#include "client/update/update.h"
#include "proto/lib/cli.h"

/* The state of a dialogue. */
struct dialogue {
	struct updater *up;
	struct stdin_parser parser;
	struct changes changes; /* of the open transaction */
	struct text input;      /* its commands, in case git has to do them */
};

static bool resolve(void *ctx, const char *name, struct refd_oid *oid)
{
	return update_resolve(ctx, name, oid);
}

/* A program may wait for the reply before its next command, so the reply is
 * flushed. */
static void reply(const struct updater *up, const char *command)
{
	if (up->opt->output == OUTPUT_GIT)
		print_line(stdout, "%s: ok", command);
	cli_flush();
}

/* Keeps the command for git. The transaction that git gets ends with the
 * current command, so git does not need "start", which was answered already. */
static void keep_input(struct dialogue *d)
{
	struct stdin_parser *p = &d->parser;

	if (p->update.name && p->update.no_deref && !p->no_deref)
		text_add(&d->input,
		    p->end ? "option no-deref\n" : "option no-deref\0",
		    sizeof("option no-deref"));
	text_add(&d->input, p->line.data, p->line.len);
}

static void forget(struct dialogue *d)
{
	changes_clear(&d->changes);
	text_clear(&d->input);
}

static int commit(struct dialogue *d)
{
	int rc = updater_commit(d->up, &d->changes);

	forget(d);
	return rc;
}

static void end_of_input(struct dialogue *d)
{
	switch (d->parser.state) {
	case STDIN_STARTED:
	case STDIN_PREPARED:
		updater_abort(d->up, &d->changes);
		break;
	case STDIN_OPEN:
	case STDIN_CLOSED:
		break;
	}
}

/* Executes one command. False if this was the last. */
static bool obey(struct dialogue *d, int *rc)
{
	enum stdin_event event = stdin_next(&d->parser);

	switch (event) {
	case STDIN_CHANGE:
		keep_input(d);
		changes_add(&d->changes, &d->parser.update);
		return true;
	case STDIN_START:
		reply(d->up, "start");
		return true;
	case STDIN_PREPARE:
		keep_input(d);
		d->up->doing = "prepare";
		*rc = updater_prepare(d->up, &d->changes);
		if (*rc == 0)
			reply(d->up, "prepare");
		return *rc == 0;
	case STDIN_COMMIT:
		keep_input(d);
		d->up->doing = "commit";
		*rc = commit(d);
		if (*rc == 0)
			reply(d->up, "commit");
		return *rc == 0;
	case STDIN_ABORT:
		updater_abort(d->up, &d->changes);
		forget(d);
		reply(d->up, "abort");
		return true;
	case STDIN_EOF_COMMIT:
		d->up->doing = NULL;
		*rc = commit(d);
		return false;
	case STDIN_EOF:
		end_of_input(d);
		return false;
	case STDIN_ERROR:
		updater_drop(d->up);
		die("%s", d->parser.error.data);
	}
	return false;
}

int update_stdin(struct updater *up)
{
	struct dialogue d = { .up = up,
		.parser = { .in = stdin,
		    .end = up->opt->end_null ? '\0' : '\n',
		    .no_deref = up->opt->no_deref,
		    .messages = up->opt->messages,
		    .resolve = resolve,
		    .ctx = &up->revs } };
	int rc = 0;

	up->input = &d.input;
	while (obey(&d, &rc))
		;
	up->input = NULL;
	changes_done(&d.changes);
	text_done(&d.input);
	stdin_done(&d.parser);
	return rc;
}
