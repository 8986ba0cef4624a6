/* The header packets of a request: "key" or "key SP value". */
#include "proto/wire.h"

#include <string.h>

#include "proto/arena.h"
#include "proto/verb.h"

#define BAD(name, text)                                                        \
	static const struct refd_refusal name = { REFD_BADREQUEST, text }

static const char *const levels[] = {
	[REFD_LEVEL_LOCAL] = "local",
	[REFD_LEVEL_LOGGED] = "logged",
	[REFD_LEVEL_HELD] = "held",
	[REFD_LEVEL_APPLIED] = "applied",
};

/* Classes of verbs. */
#define TXN   (1u << REFD_CLASS_UPDATES)
#define BY_ID (1u << REFD_CLASS_END | 1u << REFD_CLASS_TXID)
#define REPO  (1u << REFD_CLASS_REPO)
#define LOG   (1u << REFD_CLASS_LOG)
#define WATCH (1u << REFD_CLASS_WATCH)

static bool is_in(const struct refd_request *req, unsigned classes)
{
	return (1u << refd_verbs[req->verb].class & classes) != 0;
}

const struct refd_refusal *refd_request_keep(struct refd_request *req,
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

	if (!refd_slice_txid(value, &req->txid))
		return &bad;
	/* To select any transaction, the client omits the header, so zeroes are
	 * malformed. */
	if (is_in(req, LOG) && refd_txid_is_null(&req->txid))
		return &bad;
	return NULL;
}

static const struct refd_refusal *set_git_dir(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "git-dir is not an absolute path");

	if (value.len == 0 || value.data[0] != '/')
		return &bad;
	return refd_request_keep(req, value, REFD_PATH_MAX - 1, &req->git_dir);
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
	/* A client that does not know the common dir omits the header, so
	 * zeroes are malformed. */
	if (is_in(req, LOG | WATCH) && req->common_dev == 0 &&
	    req->common_ino == 0)
		return &bad;
	return NULL;
}

static const struct refd_refusal *set_object_format(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "unknown object-format");
	char name[16];

	if (!refd_slice_word(value, name, sizeof(name)) ||
	    refd_object_format_from_name(name, &req->object_format) < 0)
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

static const char *const gates[] = { [REFD_GATE_PREPARED] = "prepared",
	[REFD_GATE_COMMITTED] = "committed",
	[REFD_GATE_ABORTED] = "aborted" };

static const struct refd_refusal *set_gate(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "malformed gate, or a gate with session, atomic or push");
	struct refd_slice phase;

	refd_slice_cut(&value, ' ', &phase);
	req->gate = REFD_GATE_ABORTED;
	while (!refd_slice_is(phase, gates[req->gate]))
		if (--req->gate == REFD_GATE_NONE)
			return &bad;
	if (value.data == NULL || !refd_slice_txid(value, &req->gate_key) ||
	    req->verb == REFD_VERB_SESSION || req->atomic || req->push)
		return &bad;
	return NULL;
}

static const struct refd_refusal *set_durability(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "unknown durability");
	char name[16];

	/* For the default, the client omits the header. */
	if (!refd_slice_word(value, name, sizeof(name)) ||
	    refd_durability_from_name(name, &req->durability) < 0 ||
	    req->durability == REFD_DURABILITY_DEFAULT)
		return &bad;
	return NULL;
}

/* "local", "logged", "held=<nodes>" or "applied=<nodes>" */
static const struct refd_refusal *set_level(struct refd_request *req,
    struct refd_slice value)
{
	BAD(bad, "unknown level");
	static const struct refd_refusal too_many = { REFD_LIMIT,
		"the level counts too many nodes" };
	struct refd_level *level = &req->level;
	struct refd_slice word;

	refd_slice_cut(&value, '=', &word);
	level->kind = REFD_LEVEL_APPLIED;
	while (!refd_slice_is(word, levels[level->kind]))
		if (--level->kind == REFD_LEVEL_DEFAULT)
			return &bad;
	if (level->kind < REFD_LEVEL_HELD)
		return value.data == NULL ? NULL : &bad;
	if (!refd_slice_u32(value, &level->nodes) || level->nodes == 0)
		return &bad;
	return level->nodes <= REFD_LEVEL_NODES_MAX ? NULL : &too_many;
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
	return refd_request_keep(req, value, REFD_MESSAGE_MAX, &req->message);
}

static const struct refd_refusal *set_committer(struct refd_request *req,
    struct refd_slice value)
{
	return refd_request_keep(req, value, REFD_IDENT_MAX, &req->committer);
}

static const struct refd_refusal *set_log_all(struct refd_request *req,
    struct refd_slice value)
{
	return refd_request_keep(req, value, REFD_IDENT_MAX,
	    &req->log_all_ref_updates);
}

static const struct refd_refusal *set_shared(struct refd_request *req,
    struct refd_slice value)
{
	return refd_request_keep(req, value, REFD_IDENT_MAX,
	    &req->shared_repository);
}

/* A lock can't be waited for longer than the answer, so the limit is that of a
 * deadline. */
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
	return refd_request_keep(req, value, REFD_IDENT_MAX, &req->trace2_sid);
}

static const struct refd_refusal *set_identity(struct refd_request *req,
    struct refd_slice value)
{
	return refd_identity_decode(req->arena, req->identities,
	    &req->nr_identities, value);
}

/* In the order in which they must come. */
static const struct header {
	const char *key;
	unsigned taken, required; /* classes of verbs */
	bool is_flag, may_repeat;
	refd_header_set *set;
} headers[] = {
	{ "txid", TXN | BY_ID | LOG, TXN | BY_ID, false, false, set_txid },
	{ "git-dir", TXN | LOG | WATCH | REPO, TXN | REPO, false, false,
	    set_git_dir },
	{ "common-dir", TXN | LOG | WATCH | REPO, TXN | REPO, false, false,
	    set_common_dir },
	{ "object-format", TXN, TXN, false, false, set_object_format },
	{ "atomic", TXN, 0, true, false, set_atomic },
	{ "create-reflog", TXN, 0, true, false, set_create_reflog },
	{ "push", TXN, 0, true, false, set_push },
	{ "gate", TXN, 0, false, false, set_gate },
	{ "durability", TXN, 0, false, false, set_durability },
	{ "level", TXN, 0, false, false, set_level },
	{ "deadline", TXN | WATCH, 0, false, false, set_deadline },
	/* Required, because with a default of 0 all users could write the
	 * files. */
	{ "umask", TXN, TXN, false, false, set_umask },
	{ "message", TXN, 0, false, false, set_message },
	{ "committer", TXN, 0, false, false, set_committer },
	{ "log-all-ref-updates", TXN, 0, false, false, set_log_all },
	{ "shared-repository", TXN, 0, false, false, set_shared },
	{ "ref-lock-timeout", TXN, 0, false, false, set_ref_timeout },
	{ "packed-refs-timeout", TXN, 0, false, false, set_packed_timeout },
	{ "trace2-sid", TXN, 0, false, false, set_trace2_sid },
	{ "identity", TXN, 0, false, true, set_identity },
	{ "ref", LOG | WATCH, 0, false, true, refd_selection_ref },
	{ "uid", LOG | WATCH, 0, false, false, refd_selection_uid },
	{ "user", LOG | WATCH, 0, false, false, refd_selection_user },
	{ "since", LOG, 0, false, false, refd_selection_since },
	{ "until", LOG, 0, false, false, refd_selection_until },
	{ "journal", LOG | WATCH, 0, false, false, refd_selection_journal },
	{ "after", LOG | WATCH, 0, false, false, refd_selection_after },
	{ "before", LOG, 0, false, false, refd_selection_before },
	{ "limit", LOG | WATCH, 0, false, false, refd_selection_limit },
	{ "reverse", LOG, 0, true, false, refd_selection_reverse },
	{ "all", WATCH, 0, true, false, refd_selection_all },
	{ "origin", LOG | WATCH, 0, true, false, refd_selection_origin },
};

#define NR_HEADERS     (sizeof(headers) / sizeof(headers[0]))
#define TXID_BIT       1u /* the first header */
#define GIT_DIR_BIT    2u
#define COMMON_DIR_BIT 4u
#define FORMAT_BIT     8u

/* Every key comes at most once or has its own limit, so the number of headers
 * is limited, too. */
_Static_assert(NR_HEADERS + REFD_IDENTITIES_MAX + REFD_PATTERNS_MAX <=
	REFD_HEADERS_MAX,
    "too many header keys");
_Static_assert(NR_HEADERS <= 8 * sizeof(unsigned), "no bit for each key");

const struct refd_refusal *refd_request_header_decode(struct refd_request *req,
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
	if (!is_in(req, h->taken))
		return &not_here;
	if (*seen >> i != (h->may_repeat ? *seen >> i & 1u : 0))
		return &order;
	if (h->is_flag != (packet.data == NULL))
		return &malformed;
	*seen |= 1u << i;
	return h->set(req, packet);
}

const struct refd_refusal *refd_request_headers_complete(
    const struct refd_request *req, unsigned seen)
{
	BAD(no_txid, "no txid");
	BAD(missing, "no git-dir, common-dir or umask");
	BAD(no_format,
	    "no object-format: the client has an older version of the "
	    "protocol than the daemon: install the same release of both");
	BAD(no_dir, "a common-dir without its git-dir");
	size_t i;

	if (is_in(req, TXN | BY_ID) && (seen & TXID_BIT) == 0)
		return &no_txid;
	if (is_in(req, TXN) && (seen & FORMAT_BIT) == 0)
		return &no_format;
	for (i = 0; i < NR_HEADERS; i++) {
		if (is_in(req, headers[i].required) && (seen & 1u << i) == 0)
			return &missing;
	}
	if ((seen & COMMON_DIR_BIT) != 0 && (seen & GIT_DIR_BIT) == 0)
		return &no_dir;
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

static void put_level(struct pkt_buf *out, const struct refd_level *level)
{
	if (level->kind >= REFD_LEVEL_HELD)
		pkt_putf(out, "level %s=%u", levels[level->kind],
		    (unsigned)level->nodes);
	else if (level->kind != REFD_LEVEL_DEFAULT)
		pkt_putf(out, "level %s", levels[level->kind]);
}

static void put_question(const struct refd_request *req, struct pkt_buf *out)
{
	put_string(out, "git-dir", req->git_dir);
	if (req->common_dev != 0 || req->common_ino != 0)
		pkt_putf(out, "common-dir %llu %llu",
		    (unsigned long long)req->common_dev,
		    (unsigned long long)req->common_ino);
	if (is_in(req, WATCH) && req->deadline_ms != 0)
		pkt_putf(out, "deadline %u", (unsigned)req->deadline_ms);
	refd_selection_encode(&req->select, out);
}

void refd_request_headers_encode(const struct refd_request *req,
    struct pkt_buf *out)
{
	char hex[REFD_TXID_HEX + 1];

	if (is_in(req, TXN | BY_ID) ||
	    (is_in(req, LOG) && !refd_txid_is_null(&req->txid)))
		pkt_putf(out, "txid %s", refd_txid_hex(&req->txid, hex));
	if (is_in(req, LOG | WATCH))
		put_question(req, out);
	if (!is_in(req, TXN | REPO))
		return;
	put_string(out, "git-dir", req->git_dir);
	pkt_putf(out, "common-dir %llu %llu",
	    (unsigned long long)req->common_dev,
	    (unsigned long long)req->common_ino);
	if (is_in(req, REPO))
		return;
	pkt_putf(out, "object-format %s",
	    refd_object_format_name(req->object_format));
	if (req->atomic)
		pkt_putf(out, "atomic");
	if (req->create_reflog)
		pkt_putf(out, "create-reflog");
	if (req->push)
		pkt_putf(out, "push");
	if (req->gate != REFD_GATE_NONE)
		pkt_putf(out, "gate %s %s", gates[req->gate],
		    refd_txid_hex(&req->gate_key, hex));
	if (req->durability != REFD_DURABILITY_DEFAULT)
		pkt_putf(out, "durability %s",
		    refd_durability_name(req->durability));
	put_level(out, &req->level);
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
	refd_identity_encode(req->identities, req->nr_identities, out);
}
