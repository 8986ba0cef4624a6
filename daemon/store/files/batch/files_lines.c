/*
 * Writes the log lines of published changes.
 *
 * The happy path:
 *	append	before the rename; the descriptor stays open
 *	rename	(files_publish.c)
 *	defer	close the descriptor, or sync it in the stronger modes
 *
 * What fails:
 *	a line can't be written		the line is deferred: the journal
 *					records the missing line
 *	the journal has no room for	the record and the locks stay, and
 *	that				recovery writes the line
 *	the rename			the line is removed through the
 *					descriptor that wrote it
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/files/batch/files.h"

static void append_line(struct change *c)
{
	if (c->log)
		c->lacks_line =
		    edit_append(&c->edit, &c->slice->plan, c->plan) < 0;
}

void change_append_lines(struct change *c)
{
	struct change *l;

	append_line(c);
	for (l = c->lines; l != NULL; l = l->next_line)
		append_line(l);
}

static void close_log(struct pass *p, struct change *c)
{
	if (!c->edit.has_log_fd)
		return;
	c->edit.has_log_fd = false;
	if (durability_wants_log(c))
		durability_log(p, c, c->edit.log_fd);
	else
		c->lacks_line = SYS(p->sys, close, c->edit.log_fd) < 0;
}

static int defer_line(struct pass *p, struct change *c)
{
	int r;

	close_log(p, c);
	if (!c->lacks_line)
		return 0;
	r = pass_defer_line(p, c);
	if (r == 0)
		p->ap->defer_line(p->ap->arg, c->slice->repo);
	return r == JOURNAL_UNKNOWN ? -EIO : r;
}

void change_close_logs(struct pass *p, struct change *c)
{
	struct change *l;

	close_log(p, c);
	for (l = c->lines; l != NULL; l = l->next_line)
		close_log(p, l);
}

int change_defer_lines(struct pass *p, struct change *c)
{
	struct change *l;
	int r = defer_line(p, c), err;

	for (l = c->lines; l != NULL; l = l->next_line) {
		err = defer_line(p, l);
		if (r == 0)
			r = err;
	}
	return r;
}

/* Removes the line through the descriptor that wrote the line. A repository
 * that was moved out of the roots can't be opened again. */
static int retract_line(struct change *c)
{
	return c->log ? edit_retract(&c->edit, &c->slice->plan, c->plan) : 0;
}

int change_retract_lines(struct change *c)
{
	struct change *l;
	int r = retract_line(c), err;

	for (l = c->lines; l != NULL; l = l->next_line) {
		err = retract_line(l);
		if (r == 0)
			r = err;
	}
	return r;
}
