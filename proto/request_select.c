/* The headers of log and watch, which select a part of history. */
#include "proto/wire.h"

#include <string.h>

#define BAD(name, text)                                                        \
	static const struct refd_refusal name = { REFD_BADREQUEST, text }

const struct refd_refusal *refd_selection_ref(struct refd_request *req,
    struct refd_slice value)
{
	static const struct refd_refusal too_many = { REFD_LIMIT,
		"too many patterns" };
	struct refd_selection *select = &req->select;

	if (select->nr_patterns == REFD_PATTERNS_MAX)
		return &too_many;
	return refd_request_keep(req, value, REFD_REFNAME_MAX,
	    &select->patterns[select->nr_patterns++]);
}

const struct refd_refusal *refd_selection_uid(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed uid");

	req->select.has_uid = true;
	return refd_slice_u32(value, &req->select.uid) ? NULL : &bad;
}

const struct refd_refusal *refd_selection_user(struct refd_request *req,
    struct refd_slice value)
{
	return refd_request_keep(req, value, REFD_IDENT_MAX, &req->select.user);
}

/* For 0, the client omits the header. */
static const struct refd_refusal *read_time(struct refd_slice value,
    uint64_t *ms)
{
	BAD(bad, "malformed time");

	return refd_slice_u64(value, ms) && *ms != 0 ? NULL : &bad;
}

const struct refd_refusal *refd_selection_since(struct refd_request *req,
    struct refd_slice value)
{
	return read_time(value, &req->select.since_ms);
}

const struct refd_refusal *refd_selection_until(struct refd_request *req,
    struct refd_slice value)
{
	return read_time(value, &req->select.until_ms);
}

const struct refd_refusal *refd_selection_journal(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed journal id");

	req->select.has_journal = true;
	return refd_slice_journal(value, req->select.journal) ? NULL : &bad;
}

static const struct refd_refusal *read_position(struct refd_slice value,
    bool *has, struct refd_position *position)
{
	BAD(bad, "malformed position");

	*has = true;
	return refd_slice_position(value, position) ? NULL : &bad;
}

const struct refd_refusal *refd_selection_after(struct refd_request *req,
    struct refd_slice value)
{
	return read_position(value, &req->select.has_after, &req->select.after);
}

const struct refd_refusal *refd_selection_before(struct refd_request *req,
    struct refd_slice value)
{
	return read_position(value, &req->select.has_before,
	    &req->select.before);
}

const struct refd_refusal *refd_selection_limit(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed limit");
	static const struct refd_refusal too_many = { REFD_LIMIT,
		"more changes than an answer holds" };

	if (!refd_slice_u32(value, &req->select.limit) ||
	    req->select.limit == 0)
		return &bad;
	return req->select.limit <= REFD_CHANGES_MAX ? NULL : &too_many;
}

const struct refd_refusal *refd_selection_reverse(struct refd_request *req,
    struct refd_slice value)
{
	(void)value;
	req->select.reverse = true;
	return NULL;
}

const struct refd_refusal *refd_selection_all(struct refd_request *req,
    struct refd_slice value)
{
	(void)value;
	req->select.all = true;
	return NULL;
}

const struct refd_refusal *refd_selection_origin(struct refd_request *req,
    struct refd_slice value)
{
	(void)value;
	req->select.origin = true;
	return NULL;
}

static void put_time(struct pkt_buf *out, const char *key, uint64_t ms)
{
	if (ms != 0)
		pkt_putf(out, "%s %llu", key, (unsigned long long)ms);
}

void refd_selection_encode(const struct refd_selection *select,
    struct pkt_buf *out)
{
	size_t i;

	for (i = 0; i < select->nr_patterns; i++)
		pkt_putf(out, "ref %s", select->patterns[i]);
	if (select->has_uid)
		pkt_putf(out, "uid %u", (unsigned)select->uid);
	if (select->user != NULL)
		pkt_putf(out, "user %s", select->user);
	put_time(out, "since", select->since_ms);
	put_time(out, "until", select->until_ms);
	if (select->has_journal)
		refd_wire_put_journal(out, select->journal);
	if (select->has_after)
		refd_position_put(out, "after", &select->after);
	if (select->has_before)
		refd_position_put(out, "before", &select->before);
	if (select->limit != 0)
		pkt_putf(out, "limit %u", (unsigned)select->limit);
	if (select->reverse)
		pkt_putf(out, "reverse");
	if (select->all)
		pkt_putf(out, "all");
	if (select->origin)
		pkt_putf(out, "origin");
}
