/*
 * Decodes answers, packet by packet. A client can't continue with a server that
 * it misunderstands, so every malformed answer is fatal.
 */
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

#include "proto/arena.h"

enum answer_state {
	BEGIN,
	TXID,    /* the txid must come next */
	RESULTS, /* any number of results, then the outcome */
	REFUSED, /* txid or status must come next */
	STATUS,
	TEXT,  /* text, retry-after, or the end */
	RETRY, /* retry-after, or the end */
	PAIRS, /* any number */
	RECORDS,
	PREPARED, /* results, any number, then perhaps the flag */
	END,      /* nothing but the flush may come */
	DEAD
};

struct refd_answer_decoder {
	enum answer_state state;
	struct refd_answer ans; /* as far as it came */
	struct refd_records_decoder records;
	bool has_format; /* the answer has an oid */
	size_t bytes;    /* of the packets so far */
	const char *why; /* DEAD */
};

static const char no_memory[] = "out of memory";
static const char malformed[] = "malformed answer";

struct refd_answer_decoder *refd_answer_decoder_new(void)
{
	return calloc(1, sizeof(struct refd_answer_decoder));
}

void refd_answer_decoder_free(struct refd_answer_decoder *dec)
{
	if (dec == NULL)
		return;
	refd_answer_done(&dec->ans);
	free(dec);
}

size_t refd_answer_bytes_max(size_t nr_updates)
{
	const size_t most = REFD_ANSWER_BYTES_MAX - REFD_ANSWER_BYTES;

	return nr_updates > most / REFD_RESULT_BYTES ?
	    REFD_ANSWER_BYTES_MAX :
	    REFD_ANSWER_BYTES + nr_updates * REFD_RESULT_BYTES;
}

size_t refd_answer_decoder_bytes(const struct refd_answer_decoder *dec,
    uint32_t *request_id)
{
	*request_id = dec->ans.request_id;
	return dec->bytes;
}

/* Copies S into the arena. A string would end at a NUL, so S with a NUL gives
 * NULL, and *WHY. */
static char *keep(struct refd_answer *ans, struct refd_slice s,
    const char **why)
{
	char *copy;

	*why = malformed;
	if (refd_slice_has_nul(s))
		return NULL;
	copy = refd_arena_string(ans->arena, s.data, s.len);
	if (copy == NULL)
		*why = no_memory;
	return copy;
}

/* The following functions return NULL, or the reason for rejecting the
 * answer. */

static enum answer_state body_of(enum refd_answer_kind kind)
{
	switch (kind) {
	case REFD_ANSWER_RESULTS:
		return RESULTS;
	case REFD_ANSWER_PREPARED:
		return PREPARED;
	case REFD_ANSWER_REFUSED:
		return REFUSED;
	case REFD_ANSWER_PAIRS:
		return PAIRS;
	case REFD_ANSWER_RECORDS:
		return RECORDS;
	case REFD_ANSWER_PENDING:
	case REFD_ANSWER_NEVER_SEEN:
	case REFD_ANSWER_EXPIRED:
	case REFD_ANSWER_PONG:
		return END;
	}
	return DEAD;
}

static bool kind_has_txid(enum refd_answer_kind kind)
{
	return kind == REFD_ANSWER_RESULTS || kind == REFD_ANSWER_PREPARED ||
	    kind == REFD_ANSWER_PENDING || kind == REFD_ANSWER_NEVER_SEEN ||
	    kind == REFD_ANSWER_EXPIRED;
}

static const char *read_begin(struct refd_answer_decoder *dec,
    struct refd_slice rest)
{
	struct refd_answer *ans = &dec->ans;
	struct refd_slice word, id;

	refd_slice_cut(&rest, ' ', &word);
	if (!refd_slice_is(word, "answer") ||
	    !refd_slice_cut(&rest, ' ', &id) || rest.data == NULL ||
	    !refd_slice_u32(id, &ans->request_id))
		return malformed;
	if (!refd_slice_answer_kind(rest, &ans->kind))
		return "an answer of an unknown kind";
	/* The server may be unable to read the id of a request, so REFUSED, and
	 * only REFUSED, may have the id 0. */
	if (ans->request_id == 0 && ans->kind != REFD_ANSWER_REFUSED)
		return malformed;
	ans->arena = refd_arena_new();
	if (ans->arena == NULL)
		return no_memory;
	dec->state = kind_has_txid(ans->kind) ? TXID : body_of(ans->kind);
	return NULL;
}

static const char *read_txid(struct refd_answer_decoder *dec,
    struct refd_slice value)
{
	if (!refd_slice_txid(value, &dec->ans.txid))
		return "malformed txid";
	/* An optional txid is either absent or not null. */
	if (dec->state == REFUSED && refd_txid_is_null(&dec->ans.txid))
		return "malformed txid";
	dec->state = dec->state == REFUSED ? STATUS : body_of(dec->ans.kind);
	return NULL;
}

static bool read_code(struct refd_slice head, enum refd_status *status)
{
	struct refd_slice word;
	char name[32];

	if (refd_slice_is(head, "ok")) {
		*status = REFD_OK;
		return true;
	}
	refd_slice_cut(&head, ' ', &word);
	return refd_slice_is(word, "ng") && head.data != NULL &&
	    refd_slice_word(head, name, sizeof(name)) &&
	    refd_status_from_name(name, status) == 0 && *status != REFD_OK;
}

static const char *read_result(struct refd_answer_decoder *dec,
    struct refd_slice rest)
{
	struct refd_answer *ans = &dec->ans;
	struct refd_slice head, name, found;
	struct refd_result res = { 0 }, *results;
	const char *why;

	refd_slice_cut(&rest, '\0', &head);
	if (!read_code(head, &res.status) ||
	    !refd_slice_cut(&rest, '\0', &name) ||
	    !refd_slice_cut(&rest, '\0', &found) || rest.data == NULL)
		return "malformed result";
	res.has_found = found.len > 0;
	if (res.has_found &&
	    !refd_slice_any_oid(found, &dec->has_format, &ans->object_format,
		&res.found))
		return "malformed result";
	if (ans->nr_results == REFD_UPDATES_MAX)
		return "more results than a transaction has updates";
	results =
	    refd_arena_array(ans->arena, ans->nr_results + 1, sizeof(*results));
	if (results == NULL)
		return no_memory;
	ans->results = results;
	res.name = keep(ans, name, &why);
	if (res.name == NULL)
		return why;
	why = refd_slice_text(rest, ans->arena, &res.text);
	if (why != NULL)
		return why;
	results[ans->nr_results++] = res;
	return NULL;
}

static const char *read_outcome(struct refd_answer_decoder *dec,
    struct refd_slice rest)
{
	struct refd_answer *ans = &dec->ans;
	struct refd_slice word, updates;
	uint32_t nr;
	char name[32];

	refd_slice_cut(&rest, ' ', &word);
	if (!refd_slice_word(word, name, sizeof(name)) ||
	    refd_outcome_from_name(name, &ans->outcome) < 0 ||
	    !refd_slice_cut(&rest, ' ', &updates) ||
	    !refd_slice_u32(updates, &nr))
		return "malformed outcome";
	/* The token is absent if nothing is recorded. */
	if (rest.data != NULL &&
	    !refd_slice_token(rest, ans->journal, &ans->lsn))
		return "malformed outcome";
	if (nr < ans->nr_results || nr > REFD_UPDATES_MAX)
		return "malformed outcome";
	ans->nr_updates = nr;
	dec->state = END;
	return NULL;
}

static const char *read_status(struct refd_answer_decoder *dec,
    struct refd_slice value)
{
	char name[32];

	if (!refd_slice_word(value, name, sizeof(name)) ||
	    refd_status_from_name(name, &dec->ans.status) < 0 ||
	    dec->ans.status == REFD_OK)
		return "a refusal with an unknown status";
	dec->state = TEXT;
	return NULL;
}

static const char *read_text(struct refd_answer_decoder *dec,
    struct refd_slice value)
{
	const char *why;

	dec->ans.text = keep(&dec->ans, value, &why);
	if (dec->ans.text == NULL)
		return why;
	dec->state = RETRY;
	return NULL;
}

static const char *read_retry(struct refd_answer_decoder *dec,
    struct refd_slice value)
{
	uint32_t ms;

	if (dec->ans.status != REFD_BUSY || !refd_slice_u32(value, &ms) ||
	    ms == 0 || ms > REFD_DEADLINE_MAX_MS)
		return "malformed time to retry";
	dec->ans.retry_after_ms = ms;
	dec->state = END;
	return NULL;
}

static const char *read_pair(struct refd_answer *ans, struct refd_slice rest)
{
	struct refd_slice key;
	struct refd_pair pair, *pairs;
	const char *why;

	refd_slice_cut(&rest, ' ', &key);
	if (rest.data == NULL || key.len == 0)
		return malformed;
	pairs = refd_arena_array(ans->arena, ans->nr_pairs + 1, sizeof(*pairs));
	if (pairs == NULL)
		return no_memory;
	ans->pairs = pairs;
	pair.key = keep(ans, key, &why);
	if (pair.key == NULL)
		return why;
	pair.value = keep(ans, rest, &why);
	if (pair.value == NULL)
		return why;
	pairs[ans->nr_pairs++] = pair;
	return NULL;
}

/* If S begins with WORD and a space, moves S behind both and returns true. */
static bool take_key(struct refd_slice *s, const char *word)
{
	struct refd_slice rest = *s, key;

	refd_slice_cut(&rest, ' ', &key);
	if (!refd_slice_is(key, word) || rest.data == NULL)
		return false;
	*s = rest;
	return true;
}

static const char *read_prepared(struct refd_answer_decoder *dec,
    struct refd_slice packet)
{
	if (!refd_slice_is(packet, "rewrites-packed"))
		return read_result(dec, packet);
	dec->ans.rewrites_packed = true;
	dec->state = END;
	return NULL;
}

static const char *read_data(struct refd_answer_decoder *dec,
    struct refd_slice packet)
{
	switch (dec->state) {
	case BEGIN:
		return read_begin(dec, packet);
	case TXID:
		if (take_key(&packet, "txid"))
			return read_txid(dec, packet);
		break;
	case RESULTS:
		if (take_key(&packet, "outcome"))
			return read_outcome(dec, packet);
		return read_result(dec, packet);
	case PREPARED:
		return read_prepared(dec, packet);
	case REFUSED:
		if (take_key(&packet, "txid"))
			return read_txid(dec, packet);
		if (take_key(&packet, "status"))
			return read_status(dec, packet);
		break;
	case STATUS:
		if (take_key(&packet, "status"))
			return read_status(dec, packet);
		break;
	case TEXT:
		if (take_key(&packet, "text"))
			return read_text(dec, packet);
		/* fall through */
	case RETRY:
		if (take_key(&packet, "retry-after"))
			return read_retry(dec, packet);
		break;
	case PAIRS:
		if (take_key(&packet, "pair"))
			return read_pair(&dec->ans, packet);
		break;
	case RECORDS:
		return refd_records_decode(&dec->records, &dec->ans, packet);
	case END:
	case DEAD:
		break;
	}
	return malformed;
}

static bool may_end(const struct refd_answer_decoder *dec)
{
	if (dec->state == RECORDS)
		return refd_records_may_end(&dec->records);
	return dec->state == END || dec->state == TEXT || dec->state == RETRY ||
	    dec->state == PAIRS || dec->state == PREPARED;
}

static const char *read_packet(struct refd_answer_decoder *dec,
    const struct pkt *pkt)
{
	struct refd_slice packet = { pkt->data, pkt->len };

	switch (pkt->kind) {
	case PKT_DATA:
		return read_data(dec, packet);
	case PKT_DELIM:
		return "unexpected delimiter";
	case PKT_FLUSH:
		return may_end(dec) ? NULL : "an answer ends early";
	}
	return malformed;
}

enum refd_decoded refd_answer_decode(struct refd_answer_decoder *dec,
    const struct pkt *pkt, struct refd_answer *ans, const char **why)
{
	dec->bytes += PKT_DIGITS + pkt->len;
	if (dec->state != DEAD) {
		dec->why = read_packet(dec, pkt);
		if (dec->why != NULL)
			dec->state = DEAD;
	}
	if (dec->state == DEAD) {
		*why = dec->why;
		return REFD_DECODE_FATAL;
	}
	if (pkt->kind != PKT_FLUSH)
		return REFD_DECODE_MORE;
	*ans = dec->ans;
	memset(dec, 0, sizeof(*dec));
	return REFD_DECODE_DONE;
}
