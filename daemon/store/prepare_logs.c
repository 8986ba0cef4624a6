/*
 * The log files that lines will be appended to, and HEAD's lock where the
 * branch is the one HEAD points to.
 *
 * What fails: the update, or its atomic transaction; a HEAD that somebody
 * else locks gives it back.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/store/batch.h"

void change_log_path(const struct change *c, char path[REFD_PATH_MAX])
{
	strcpy(path, "logs/");
	strcpy(path + 5, c->name);
}

/* The branch that the HEAD of the client's worktree points to, or "". */
static const char *head_target(struct batch *b, struct share *s)
{
	struct loose_value value;

	if (!s->head_looked) {
		s->head_looked = true;
		if (loose_read(b->sys, s->git_fd, "HEAD", &value) == 0) {
			if (value.kind == LOOSE_SYMREF) {
				s->head = value.target;
				value.target = NULL;
			}
			loose_value_done(&value);
		}
	}
	return s->head != NULL ? s->head : "";
}

static void prepare_head(struct batch *b, struct change *c)
{
	struct share *s = c->share;
	int r;

	if (strcmp(head_target(b, s), c->name) != 0)
		return;
	r = reflog_prepare(b->sys, s->git_fd, "logs/HEAD",
	    reflog_policy_creates(s->log_policy, "HEAD"), s->file_mode,
	    s->dir_mode, &c->log_head);
	if (r < 0) {
		change_fail_errno(c, r, "can't prepare the log of HEAD");
		return;
	}
	if (!c->log_head)
		return;
	r = token_lock(&c->group->token, s->git_fd, "HEAD", s->dir_mode);
	if (r < 0) {
		change_lock_failed(b, c, r);
		return;
	}
	c->head_locked = true;
	/* It may have moved until we had its lock. */
	s->head_looked = false;
	free(s->head);
	s->head = NULL;
	c->log_head = strcmp(head_target(b, s), c->name) == 0;
}

void batch_prepare_logs(struct batch *b)
{
	char path[REFD_PATH_MAX];
	struct change *c;
	size_t i;
	int r;

	for (i = 0; i < b->nr_changes; i++) {
		c = &b->changes[i];
		if (!change_is_live(c) || c->action == CHANGE_NOTHING)
			continue;
		if (c->action == CHANGE_WRITE) {
			change_log_path(c, path);
			r = reflog_prepare(b->sys, c->dirfd, path,
			    c->share->txn->req.create_reflog ||
				reflog_policy_creates(c->share->log_policy,
				    c->name),
			    c->share->file_mode, c->share->dir_mode, &c->log);
			if (r < 0) {
				change_fail_errno(c, r,
				    "can't prepare the reflog");
				continue;
			}
		}
		if (strncmp(c->name, "refs/heads/", 11) == 0 &&
		    (c->action == CHANGE_WRITE || c->exists))
			prepare_head(b, c);
	}
}
