/*
 * Changes of a repository by writers who did not tell refd, as looks have found
 * them. Only the latest changes count: one answer of history.
 *
 * Failure modes: no daemon, or no right to read history: nothing is found. The
 * other checks tell the reason.
 */
#include <time.h>

#include "client/doctor/doctor_internal.h"
#include "client/refd.h"

#define ASK_MS 5000

static void count(struct doctor_repo *p, const struct refd_answer *ans)
{
	const struct refd_record *last = NULL;
	size_t i, nr = 0;
	char date[32];
	struct tm tm;
	time_t when;

	for (i = 0; i < ans->nr_changes; i++) {
		if (ans->changes[i].record->origin != REFD_ORIGIN_SEEN)
			continue;
		/* The newest change comes first. */
		if (!last)
			last = ans->changes[i].record;
		nr++;
	}
	if (!last)
		return;
	when = (time_t)(last->time_ms / 1000);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M", localtime_r(&when, &tm));
	doctor_found_in(p, FOUND_FOREIGN_WRITES,
	    "%zu of its last %zu changes are by writers who did not tell refd; "
	    "the latest was found on %s, in a file of user %u",
	    nr, ans->nr_changes, date, (unsigned)last->uid);
}

void doctor_check_foreign(struct doctor_repo *p,
    const struct daemon_socket *socket)
{
	struct refd_request req = { .git_dir = p->gd->common,
		.common_dev = p->gd->dev,
		.common_ino = p->gd->ino,
		.select = { .reverse = true, .origin = true } };
	struct refd *r = connect_new(socket);
	struct refd_answer ans;

	if (refd_connect(r, ASK_MS) == 0 &&
	    refd_log(r, &req, ASK_MS, &ans) == 0) {
		if (ans.kind == REFD_ANSWER_RECORDS)
			count(p, &ans);
		refd_answer_done(&ans);
	}
	refd_free(r);
}
