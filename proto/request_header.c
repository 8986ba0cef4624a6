/* The header packets of a request: "key" or "key SP value". */
#include "proto/wire.h"

#include <string.h>

#include "proto/arena.h"

#define BAD(name, text)                                                        \
	static const struct refd_refusal name = { REFD_BADREQUEST, text }

typedef const struct refd_refusal *header_set(struct refd_request *req,
    struct refd_slice value);

bool refd_verb_has_updates(enum refd_verb verb)
{
	return verb == REFD_VERB_TRANSACTION || verb == REFD_VERB_SESSION;
}

static bool verb_has_txid(enum refd_verb verb)
{
	switch (verb) {
	case REFD_VERB_TRANSACTION:
	case REFD_VERB_SESSION:
	case REFD_VERB_COMMIT:
	case REFD_VERB_ABORT:
	case REFD_VERB_CANCEL:
	case REFD_VERB_QUERY:
		return true;
	case REFD_VERB_PING:
	case REFD_VERB_STATUS:
	case REFD_VERB_STATS:
	case REFD_VERB_CHECKPOINT:
		return false;
	}
	return false;
}

static const struct refd_refusal *keep(struct refd_request *req,
    struct refd_slice value, size_t max, const char **copy)
{
	static const struct refd_refusal too_long = { REFD_LIMIT,
		"a header is too long" };

	if (value.len > max)
		return &too_long;
	*copy = refd_arena_string(req->arena, value.data, value.len);
	return *copy != NULL ? NULL : &refd_refusal_no_memory;
}

static const struct refd_refusal *set_txid(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed txid");

	return refd_slice_txid(value, &req->txid) ? NULL : &bad;
}

static const struct refd_refusal *set_git_dir(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "git-dir is not an absolute path");

	if (value.len == 0 || value.data[0] != '/')
		return &bad;
	return keep(req, value, REFD_PATH_MAX - 1, &req->git_dir);
}

static const struct refd_refusal *set_common_dir(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed common-dir");
	struct refd_slice dev;

	refd_slice_cut(&value, ' ', &dev);
	if (value.data == NULL || !refd_slice_u64(dev, &req->common_dev) ||
	    !refd_slice_u64(value, &req->common_ino))
		return &bad;
	return NULL;
}

static const struct refd_refusal *set_atomic(struct refd_request *req,
    struct refd_slice value)
{
	(void)value;
	req->atomic = true;
	return NULL;
}

static const struct refd_refusal *set_create_reflog(struct refd_request *req,
    struct refd_slice value)
{
	(void)value;
	req->create_reflog = true;
	return NULL;
}

static const struct refd_refusal *set_push(struct refd_request *req,
    struct refd_slice value)
{
	(void)value;
	req->push = true;
	return NULL;
}

static const struct refd_refusal *set_durability(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "unknown durability");
	char name[16];

	/* The default is asked for by saying nothing. */
	if (!refd_slice_word(value, name, sizeof(name)) ||
	    refd_durability_from_name(name, &req->durability) < 0 ||
	    req->durability == REFD_DURABILITY_DEFAULT)
		return &bad;
	return NULL;
}

static const struct refd_refusal *set_deadline(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed deadline");
	static const struct refd_refusal too_long = { REFD_LIMIT,
		"the deadline is too long" };

	if (!refd_slice_u32(value, &req->deadline_ms) || req->deadline_ms == 0)
		return &bad;
	return req->deadline_ms <= REFD_DEADLINE_MAX_MS ? NULL : &too_long;
}

static const struct refd_refusal *set_umask(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed umask");
	size_t i;

	req->umask = 0;
	for (i = 0; i < value.len; i++) {
		if (value.data[i] < '0' || value.data[i] > '7')
			return &bad;
		req->umask = req->umask << 3 | (uint32_t)(value.data[i] - '0');
	}
	return value.len == 4 && req->umask <= 0777 ? NULL : &bad;
}

static const struct refd_refusal *set_message(struct refd_request *req,
    struct refd_slice value)
{
	return keep(req, value, REFD_MESSAGE_MAX, &req->message);
}

static const struct refd_refusal *set_committer(struct refd_request *req,
    struct refd_slice value)
{
	return keep(req, value, REFD_IDENT_MAX, &req->committer);
}

static const struct refd_refusal *set_log_all(struct refd_request *req,
    struct refd_slice value)
{
	return keep(req, value, REFD_IDENT_MAX, &req->log_all_ref_updates);
}

static const struct refd_refusal *set_shared(struct refd_request *req,
    struct refd_slice value)
{
	return keep(req, value, REFD_IDENT_MAX, &req->shared_repository);
}

/* Nobody waits longer for a lock than for the answer. */
static const struct refd_refusal *read_timeout(struct refd_slice value,
    bool *has, uint32_t *ms)
{
	BAD(bad, "malformed lock timeout");
	static const struct refd_refusal too_long = { REFD_LIMIT,
		"the lock timeout is too long" };

	if (!refd_slice_u32(value, ms))
		return &bad;
	*has = true;
	return *ms <= REFD_DEADLINE_MAX_MS ? NULL : &too_long;
}

static const struct refd_refusal *set_ref_timeout(struct refd_request *req,
    struct refd_slice value)
{
	return read_timeout(value, &req->has_ref_lock_timeout,
	    &req->ref_lock_timeout_ms);
}

static const struct refd_refusal *set_packed_timeout(struct refd_request *req,
    struct refd_slice value)
{
	return read_timeout(value, &req->has_packed_refs_timeout,
	    &req->packed_refs_timeout_ms);
}

static const struct refd_refusal *set_trace2_sid(struct refd_request *req,
    struct refd_slice value)
{
	return keep(req, value, REFD_IDENT_MAX, &req->trace2_sid);
}

/* In the order in which they must come. */
static const struct header {
	const char *key;
	bool is_flag, is_required;
	header_set *set;
} headers[] = {
	{ "txid", false, true, set_txid },
	{ "git-dir", false, true, set_git_dir },
	{ "common-dir", false, true, set_common_dir },
	{ "atomic", true, false, set_atomic },
	{ "create-reflog", true, false, set_create_reflog },
	{ "push", true, false, set_push },
	{ "durability", false, false, set_durability },
	{ "deadline", false, false, set_deadline },
	/* Left out it would mean 0, and files that anyone may write. */
	{ "umask", false, true, set_umask },
	{ "message", false, false, set_message },
	{ "committer", false, false, set_committer },
	{ "log-all-ref-updates", false, false, set_log_all },
	{ "shared-repository", false, false, set_shared },
	{ "ref-lock-timeout", false, false, set_ref_timeout },
	{ "packed-refs-timeout", false, false, set_packed_timeout },
	{ "trace2-sid", false, false, set_trace2_sid },
};

#define NR_HEADERS (sizeof(headers) / sizeof(headers[0]))
#define TXID_BIT   1u /* the first of them */

/* Each key comes at most once, so this is what limits their number. */
_Static_assert(NR_HEADERS <= REFD_HEADERS_MAX, "too many header keys");
_Static_assert(NR_HEADERS <= 8 * sizeof(unsigned), "no bit for each key");

const struct refd_refusal *refd_header_decode(struct refd_request *req,
    unsigned *seen, struct refd_slice packet)
{
	BAD(with_nul, "NUL in a header");
	BAD(unknown, "unknown header");
	BAD(not_here, "a header that the verb does not take");
	BAD(order, "a header is repeated or out of order");
	BAD(malformed, "malformed header");
	const struct header *h;
	struct refd_slice key;
	size_t i = 0;

	if (refd_slice_has_nul(packet))
		return &with_nul;
	refd_slice_cut(&packet, ' ', &key);
	while (i < NR_HEADERS && !refd_slice_is(key, headers[i].key))
		i++;
	if (i == NR_HEADERS)
		return &unknown;
	h = &headers[i];
	if (!verb_has_txid(req->verb) ||
	    (i > 0 && !refd_verb_has_updates(req->verb)))
		return &not_here;
	if (*seen >> i != 0)
		return &order;
	if (h->is_flag != (packet.data == NULL))
		return &malformed;
	*seen |= 1u << i;
	return h->set(req, packet);
}

const struct refd_refusal *refd_header_complete(const struct refd_request *req,
    unsigned seen)
{
	BAD(no_txid, "no txid");
	BAD(missing, "no git-dir, common-dir or umask");
	size_t i;

	if (!verb_has_txid(req->verb))
		return NULL;
	if ((seen & TXID_BIT) == 0)
		return &no_txid;
	if (!refd_verb_has_updates(req->verb))
		return NULL;
	for (i = 0; i < NR_HEADERS; i++) {
		if (headers[i].is_required && (seen & 1u << i) == 0)
			return &missing;
	}
	return NULL;
}

static void put_string(struct pkt_buf *out, const char *key, const char *value)
{
	if (value != NULL)
		pkt_putf(out, "%s %s", key, value);
}

static void put_timeout(struct pkt_buf *out, const char *key, bool has,
    uint32_t ms)
{
	if (has)
		pkt_putf(out, "%s %u", key, (unsigned)ms);
}

void refd_header_encode(const struct refd_request *req, struct pkt_buf *out)
{
	char hex[REFD_TXID_HEX + 1];

	if (verb_has_txid(req->verb))
		pkt_putf(out, "txid %s", refd_txid_hex(&req->txid, hex));
	if (!refd_verb_has_updates(req->verb))
		return;
	put_string(out, "git-dir", req->git_dir);
	pkt_putf(out, "common-dir %llu %llu",
	    (unsigned long long)req->common_dev,
	    (unsigned long long)req->common_ino);
	if (req->atomic)
		pkt_putf(out, "atomic");
	if (req->create_reflog)
		pkt_putf(out, "create-reflog");
	if (req->push)
		pkt_putf(out, "push");
	if (req->durability != REFD_DURABILITY_DEFAULT)
		pkt_putf(out, "durability %s",
		    refd_durability_name(req->durability));
	if (req->deadline_ms != 0)
		pkt_putf(out, "deadline %u", (unsigned)req->deadline_ms);
	pkt_putf(out, "umask %04o", (unsigned)req->umask & 0777);
	put_string(out, "message", req->message);
	put_string(out, "committer", req->committer);
	put_string(out, "log-all-ref-updates", req->log_all_ref_updates);
	put_string(out, "shared-repository", req->shared_repository);
	put_timeout(out, "ref-lock-timeout", req->has_ref_lock_timeout,
	    req->ref_lock_timeout_ms);
	put_timeout(out, "packed-refs-timeout", req->has_packed_refs_timeout,
	    req->packed_refs_timeout_ms);
	put_string(out, "trace2-sid", req->trace2_sid);
}
