#include "client/request/encodable.h"

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
	struct refd_update *encodable = xcalloc(all->nr, sizeof(*encodable));
	size_t i, nr = 0;

	for (i = 0; i < all->nr; i++)
		if (is_encodable(&all->updates[i]))
			encodable[nr++] = all->updates[i];
	if (nr < all->nr && atomic)
		nr = 0;
	req->updates = encodable;
	req->nr_updates = nr;
}

bool encodable_answer(const struct changes *all, bool atomic,
    const struct refd_request *req, const struct refd_answer *ans,
    struct refd_answer *whole)
{
	struct refd_result *results;
	size_t i, at = 0, ok = 0, unknown = 0;

	if (ans->nr_results != req->nr_updates)
		return false;
	results = xcalloc(all->nr, sizeof(*results));
	for (i = 0; i < all->nr; i++) {
		const struct refd_update *u = &all->updates[i];

		results[i].name = u->name;
		if (!is_encodable(u)) {
			results[i].status = REFD_BADNAME;
			results[i].text = "refname is too long";
		} else if (req->nr_updates < all->nr && atomic) {
			results[i].status = REFD_ABORTED;
		} else {
			results[i] = ans->results[at++];
		}
		ok += results[i].status == REFD_OK;
		unknown += results[i].status == REFD_UNKNOWN;
	}
	*whole = *ans;
	whole->arena = NULL;
	whole->results = results;
	whole->nr_results = whole->nr_updates = all->nr;
	if (req->nr_updates < all->nr)
		whole->outcome = refd_outcome_of(all->nr, ok, unknown);
	return true;
}
