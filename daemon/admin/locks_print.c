#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/admin/locks_internal.h"
#include "daemon/base/time.h"
#include "proto/lib/json.h"
#include "proto/lib/lock_pid.h"
#include "proto/lib/print.h"
#include "proto/lib/time_text.h"

static const char *fate_word(enum lock_fate fate)
{
	switch (fate) {
	case LOCK_DEAD:
		return "dead";
	case LOCK_REMOVED:
		return "removed";
	case LOCK_UNDECIDED:
	case LOCK_KEPT:
	case LOCK_FAILED:
		break;
	}
	return "kept";
}

static const char *failure(int err)
{
	switch (err) {
	case -ESTALE:
		return "another process has taken the lock meanwhile";
	case -EBUSY:
		return "another program removed the lock at the same moment; "
		       "the next lock is now the file " DEAD_LOCK_ASIDE;
	case -EINVAL:
		return "it is no regular file";
	case -EAGAIN:
		return "another process keeps a flock on the repository: run "
		       "the command again, or look for the process by "
		       "lslocks(8)";
	default:
		return strerror(-err);
	}
}

static void reason(const struct found_lock *f, char *text, size_t size)
{
	const struct process *p = f->holder;

	if (f->fate == LOCK_FAILED)
		snprintf(text, size, "%s", failure(f->err));
	else if (f->not_older == NULL)
		snprintf(text, size,
		    "it is older than this boot of the machine");
	else if (p == NULL)
		snprintf(text, size,
		    "all processes of its owner, uid %" PRIu32
		    ", that ran at the first look have ended",
		    f->lock.st.uid);
	else if (f->lock.st.uid == 0)
		snprintf(text, size,
		    "it belongs to root, and process %ld (%s) or %zu others "
		    "may hold it. Its age is no proof either, because %s",
		    p->pid, p->name, f->nr_holders - 1, f->not_older);
	else if (f->nr_holders == 1)
		snprintf(text, size,
		    "process %ld (%s) may hold it: end the process, and run "
		    "the command again",
		    p->pid, p->name);
	else
		snprintf(text, size,
		    "process %ld (%s) and %zu others may hold it: end them, "
		    "and run the command again",
		    p->pid, p->name, f->nr_holders - 1);
}

static void print_json(const struct found_lock *f, const char *repo,
    uint64_t age_s, const char *why)
{
	struct json j = { .to = stdout };

	json_begin(&j, NULL, '{');
	json_text(&j, "repo", repo);
	json_text(&j, "file", f->name);
	json_text(&j, "fate", fate_word(f->fate));
	if (f->lock.fd >= 0) {
		json_count(&j, "age_s", age_s);
		json_count(&j, "uid", f->lock.st.uid);
	}
	if (f->named != 0)
		json_count(&j, "named", (uint64_t)f->named);
	if (f->holder != NULL) {
		json_count(&j, "pid", (uint64_t)f->holder->pid);
		json_text(&j, "holder", f->holder->name);
		json_count(&j, "holders", f->nr_holders);
	}
	json_text(&j, "why", why);
	json_finish(&j, '}');
}

void locks_print(const struct found_lock *f, const char *repo, int64_t now_ns,
    bool as_json)
{
	const struct sys_stat *st = &f->lock.st;
	const uint64_t age_s =
	    lock_age_s(now_ns / NS_PER_S, st->ctime_ns / NS_PER_S);
	char why[400], age[TIME_TEXT_MAX];

	reason(f, why, sizeof(why));
	if (as_json) {
		print_json(f, repo, age_s, why);
		return;
	}
	print_part(stdout, "%s: %s", fate_word(f->fate), f->name);
	if (f->lock.fd >= 0)
		print_part(stdout, ", %s old",
		    time_text_age((int64_t)age_s, age));
	if (f->named != 0)
		print_part(stdout, ", git named process %ld", f->named);
	if (f->fate != LOCK_REMOVED)
		print_part(stdout, ": %s", why);
	print_lines(stdout, "\n");
}
