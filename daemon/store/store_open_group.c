/*
 * Makes the parts of a node in a group: the link to refd-group, and the
 * follower.
 *
 * What fails: no memory; or the journal belongs to a node of a group, and the
 * configuration has none.
 */
#include <errno.h>

#include "daemon/store/repos/repo_id.h"
#include "daemon/store/store_internal.h"

static void fatal(void *store, const char *why)
{
	store_set_fatal(store, "%s", why);
}

static bool hold(void *store, struct txn *txn)
{
	struct store *s = store;

	txn_deny_unsupported(txn);
	return follower_take(s->follower, txn) || group_hold(s->group, txn);
}

int store_open_group(struct store *s, char **why)
{
	const struct group_config cfg = { .sys = s->sys,
		.node = s->cfg.node,
		.patience_ns = s->cfg.patience_ns,
		.log = s->log,
		.roots = (const char *const *)s->roots,
		.nr_roots = s->cfg.nr_roots,
		.completions = &s->completions,
		.fatal = fatal,
		.event = s->cfg.event,
		.arg = s };

	if (cfg.node == NULL && !s->cfg.is_offline &&
	    journal_is_in_group(s->journal)) {
		*why = repo_why("the journal in '%s' belongs to a node of a "
				"group: set group.name and group.node, or "
				"leave the group by 'refd recover --leave'",
		    s->state_dir);
		return -EINVAL;
	}
	if (cfg.node == NULL)
		return 0;
	s->group = group_new(&cfg);
	return s->group != NULL ? 0 : -ENOMEM;
}

int store_open_follower(struct store *s)
{
	const struct follower_config cfg = { .sys = s->sys,
		.group = s->group,
		.repos = &s->repos,
		.admissions = s->admissions,
		.pipeline = s->pipeline,
		.workers = s->workers,
		.patience_ns = s->cfg.patience_ns,
		.event = s->cfg.event };

	if (s->group == NULL)
		return 0;
	s->follower = follower_new(&cfg);
	if (s->follower == NULL)
		return -ENOMEM;
	s->completions.hold = hold;
	s->completions.hold_arg = s;
	return 0;
}

bool store_is_in_group(struct store *s, uint64_t *lsn)
{
	*lsn = journal_group_lsn(s->journal);
	return journal_is_in_group(s->journal);
}

int store_leave_group(struct store *s, uint8_t uuid[GROUP_UUID_BYTES])
{
	int r = journal_leave_group(s->journal);

	/* Before, a start in the group would miss the marks. */
	if (r == 0)
		r = repos_unmark_group(&s->repos);
	journal_group_uuid(s->journal, uuid);
	return r > 0 ? -EIO : r;
}

void store_set_group_socket(struct store *s, int fd)
{
	s->group_fd = fd;
}
