/*
 * The log lines of what is published.
 *
 * The happy path:
 *	append	before the rename; the descriptor stays open
 *	rename	(publish.c)
 *	park	closes it, or has it synced in the modes that do
 *
 * What fails:
 *	a line can't be written		it is owed: parked in the journal
 *	the rename			the line is taken back, through the
 *					descriptor that wrote it
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/window/batch.h"

static void append_line(struct batch *b, struct change *c)
{
	char path[REFD_PATH_MAX];
	size_t len;
	char *line;
	int r;

	if (!c->log)
		return;
	change_log_path(c, path);
	line = change_log_line(c, &len);
	if (line == NULL)
		r = -ENOMEM;
	else
		r = reflog_append(b->sys, c->dirfd, path, line, len);
	free(line);
	c->owed = r < 0;
	c->log_fd = r;
	c->has_log_fd = r >= 0;
}

void change_append_lines(struct batch *b, struct change *c)
{
	struct change *l;

	append_line(b, c);
	for (l = c->lines; l != NULL; l = l->next_line)
		append_line(b, l);
}

static void close_log(struct batch *b, struct change *c)
{
	if (!c->has_log_fd)
		return;
	c->has_log_fd = false;
	if (batch_stand_wants_log(c))
		batch_stand_log(b, c, c->log_fd);
	else
		c->owed = SYS(b->sys, close, c->log_fd) < 0;
}

static void park_line(struct batch *b, struct change *c)
{
	close_log(b, c);
	if (!c->owed)
		return;
	if (batch_park_line(b, c) == 0)
		b->ap->owe(b->ap->arg, c->share->repo);
	else if (b->ap->keep != NULL)
		b->ap->keep(b->ap->arg, c->share->lsn);
}

void change_close_logs(struct batch *b, struct change *c)
{
	struct change *l;

	close_log(b, c);
	for (l = c->lines; l != NULL; l = l->next_line)
		close_log(b, l);
}

void change_park_lines(struct batch *b, struct change *c)
{
	struct change *l;

	park_line(b, c);
	for (l = c->lines; l != NULL; l = l->next_line)
		park_line(b, l);
}

/* Through the descriptor that wrote it: a repository that was moved out of
 * the roots meanwhile can't be opened any more. */
static int retract_line(struct batch *b, struct change *c)
{
	size_t len;
	char *line;
	int r;

	if (!c->has_log_fd)
		return 0;
	c->has_log_fd = false;
	line = change_log_line(c, &len);
	r = line == NULL ? -ENOMEM :
			   reflog_retract_open(b->sys, c->log_fd, line, len);
	free(line);
	SYS(b->sys, close, c->log_fd);
	return r < 0 ? r : 0;
}

int change_retract_lines(struct batch *b, struct change *c)
{
	struct change *l;
	int r = retract_line(b, c), err;

	for (l = c->lines; l != NULL; l = l->next_line) {
		err = retract_line(b, l);
		if (r == 0)
			r = err;
	}
	return r;
}
