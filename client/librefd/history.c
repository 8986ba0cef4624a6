/* Requests for history that continue behind the last answer. */
#include <errno.h>
#include <string.h>

#include "client/refd.h"

static void move_on(struct refd_selection *select,
    const struct refd_answer *ans)
{
	memcpy(select->journal, ans->journal, sizeof(select->journal));
	select->has_journal = true;
	if (select->reverse) {
		select->has_before = true;
		select->before = ans->next;
	} else {
		select->has_after = true;
		select->after = ans->next;
	}
}

static int ask(struct refd *r, struct refd_request *req, enum refd_verb verb,
    int timeout_ms, struct refd_answer *ans)
{
	int err;

	req->verb = verb;
	err = refd_call(r, req, timeout_ms, ans);
	if (err == 0 && ans->kind == REFD_ANSWER_RECORDS)
		move_on(&req->select, ans);
	return err;
}

int refd_log(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	return ask(r, req, REFD_VERB_LOG, timeout_ms, ans);
}

int refd_watch(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	return ask(r, req, REFD_VERB_WATCH, timeout_ms, ans);
}
