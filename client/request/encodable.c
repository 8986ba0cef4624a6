#include "client/request/encodable.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"

static bool fits(const char *name)
{
	return !name || strlen(name) <= REFD_REFNAME_MAX;
}

static bool is_encodable(const struct refd_update *u)
{
	return fits(u->name) && fits(u->target) && fits(u->old_target);
}

void encodable_request(const struct changes *all, bool atomic,
    struct refd_request *req)
{
	size_t i, nr = 0;

	for (i = 0; i < all->nr; i++)
		nr += is_encodable(&all->updates[i]);
	req->updates = all->updates;
	req->nr_updates = nr;
	if (nr == all->nr)
		return;
	if (atomic) {
		req->nr_updates = 0;
		return;
	}
	req->updates = xcalloc(nr, sizeof(*req->updates));
	nr = 0;
	for (i = 0; i < all->nr; i++)
		if (is_encodable(&all->updates[i]))
			req->updates[nr++] = all->updates[i];
}

void encodable_request_done(const struct changes *all, struct refd_request *req)
{
	if (req->updates != all->updates)
		free(req->updates);
	req->updates = NULL;
}

bool encodable_answer(const struct changes *all, bool atomic,
    const struct refd_request *req, const struct refd_answer *ans,
    struct refd_answer *whole)
{
	struct refd_result *results;
	size_t i, at = 0, ok = 0, unknown = 0;

	if (ans->nr_results != req->nr_updates)
		return false;
	*whole = *ans;
	whole->arena = NULL;
	if (req->nr_updates == all->nr)
		return true;
	results = xcalloc(all->nr, sizeof(*results));
	for (i = 0; i < all->nr; i++) {
		const struct refd_update *u = &all->updates[i];

		results[i].name = u->name;
		if (!is_encodable(u)) {
			results[i].status = REFD_BADNAME;
			results[i].text = "refname is too long";
		} else if (atomic) {
			results[i].status = REFD_ABORTED;
		} else {
			results[i] = ans->results[at++];
		}
		ok += results[i].status == REFD_OK;
		unknown += results[i].status == REFD_UNKNOWN;
	}
	whole->results = results;
	whole->nr_results = whole->nr_updates = all->nr;
	whole->outcome = refd_outcome_of(all->nr, ok, unknown);
	return true;
}

void encodable_answer_done(const struct refd_answer *ans,
    struct refd_answer *whole)
{
	if (whole->results != ans->results)
		free(whole->results);
	whole->results = NULL;
}
