/* Encodes requests, and decodes them packet by packet. */
#include "proto/wire.h"

#include <stdlib.h>
#include <string.h>

#include "proto/arena.h"
#include "proto/digest.h"
#include "proto/verb.h"

#define BAD(name, text)                                                        \
	static const struct refd_refusal name = { REFD_BADREQUEST, text }

void refd_request_encode(const struct refd_request *req, struct pkt_buf *out)
{
	size_t i;

	pkt_putf(out, "%s %u", refd_verbs[req->verb].word,
	    (unsigned)req->request_id);
	refd_request_headers_encode(req, out);
	if (refd_verb_has_updates(req->verb)) {
		pkt_delim(out);
		for (i = 0; i < req->nr_updates; i++)
			refd_update_encode(&req->updates[i], req->object_format,
			    out);
	}
	pkt_flush(out);
}

enum request_state {
	BEGIN, /* the verb comes next */
	HEADERS,
	UPDATES,
	SKIP, /* refused; skips packets up to the flush */
	DEAD  /* out of step with the client */
};

struct refd_request_decoder {
	enum request_state state;
	struct refd_request req; /* the part received so far */
	size_t payload;          /* bytes of all packets; REFD_TXN_BYTES_MAX */
	unsigned headers_seen;
	bool no_deref;                      /* for the next update */
	const struct refd_refusal *refusal; /* SKIP */
};

struct refd_request_decoder *refd_request_decoder_new(void)
{
	return calloc(1, sizeof(struct refd_request_decoder));
}

void refd_request_decoder_free(struct refd_request_decoder *dec)
{
	if (dec == NULL)
		return;
	refd_request_done(&dec->req);
	free(dec);
}

size_t refd_request_decoder_bytes(const struct refd_request_decoder *dec)
{
	if (dec == NULL)
		return 0;
	return sizeof(*dec) + refd_arena_bytes(dec->req.arena);
}

/* Back to the beginning. The caller has taken the request, or it is freed. */
static void start_over(struct refd_request_decoder *dec)
{
	memset(dec, 0, sizeof(*dec));
}

static const struct refd_refusal *read_verb(struct refd_request_decoder *dec,
    struct refd_slice packet)
{
	BAD(unknown, "unknown verb");
	BAD(malformed, "malformed request id");
	struct refd_slice verb;
	size_t i = 0;

	refd_slice_cut(&packet, ' ', &verb);
	if (packet.data == NULL ||
	    !refd_slice_u32(packet, &dec->req.request_id) ||
	    dec->req.request_id == 0)
		return &malformed;
	while (i < REFD_VERBS && !refd_slice_is(verb, refd_verbs[i].word))
		i++;
	if (i == REFD_VERBS)
		return &unknown;
	dec->req.verb = (enum refd_verb)i;
	dec->req.arena = refd_arena_new();
	if (dec->req.arena == NULL)
		return &refd_refusal_no_memory;
	dec->state = HEADERS;
	return NULL;
}

static const struct refd_refusal *read_update(struct refd_request_decoder *dec,
    struct refd_slice packet)
{
	BAD(twice, "an option is repeated");
	const struct refd_refusal *refusal;

	if (refd_slice_is(packet, "option no-deref")) {
		if (dec->no_deref)
			return &twice;
		dec->no_deref = true;
		return NULL;
	}
	refusal = refd_update_decode(&dec->req, packet, dec->no_deref);
	dec->no_deref = false;
	/* Hashed here, so that a large transaction needs no second pass. */
	if (refusal == NULL)
		dec->req.digest =
		    refd_digest_update(dec->req.digest, dec->req.object_format,
			&dec->req.updates[dec->req.nr_updates - 1]);
	return refusal;
}

static const struct refd_refusal *read_data(struct refd_request_decoder *dec,
    struct refd_slice packet)
{
	static const struct refd_refusal too_large = { REFD_LIMIT,
		"the transaction is too large" };

	if (packet.len > REFD_TXN_BYTES_MAX - dec->payload)
		return &too_large;
	dec->payload += packet.len;
	switch (dec->state) {
	case BEGIN:
		return read_verb(dec, packet);
	case HEADERS:
		return refd_request_header_decode(&dec->req, &dec->headers_seen,
		    packet);
	case UPDATES:
		return read_update(dec, packet);
	case SKIP:
	case DEAD:
		break;
	}
	return NULL;
}

static const struct refd_refusal *read_delim(struct refd_request_decoder *dec)
{
	BAD(unexpected, "unexpected delimiter");

	if (dec->state != HEADERS || !refd_verb_has_updates(dec->req.verb))
		return &unexpected;
	dec->state = UPDATES;
	dec->req.digest = refd_digest_begin(&dec->req);
	return refd_request_headers_complete(&dec->req, dec->headers_seen);
}

static const struct refd_refusal *read_flush(struct refd_request_decoder *dec)
{
	BAD(no_delim, "no delimiter before the updates");
	BAD(option_last, "an option without an update");

	if (dec->state == UPDATES)
		return dec->no_deref ? &option_last : NULL;
	if (refd_verb_has_updates(dec->req.verb))
		return &no_delim;
	return refd_request_headers_complete(&dec->req, dec->headers_seen);
}

/* The rest of a refused request is skipped, so the request is freed at once,
 * and only its ids stay. */
static void refuse(struct refd_request_decoder *dec,
    const struct refd_refusal *refusal)
{
	struct refd_request named = {
		.request_id = dec->req.request_id,
		.txid = dec->req.txid,
	};

	refd_request_done(&dec->req);
	dec->req = named;
	dec->refusal = refusal;
	dec->state = SKIP;
}

static const struct refd_refusal *read_packet(struct refd_request_decoder *dec,
    const struct pkt *pkt)
{
	struct refd_slice packet = { pkt->data, pkt->len };

	switch (pkt->kind) {
	case PKT_DATA:
		return read_data(dec, packet);
	case PKT_DELIM:
		return read_delim(dec);
	case PKT_FLUSH:
		return read_flush(dec);
	}
	return NULL;
}

enum refd_decoded refd_request_decode(struct refd_request_decoder *dec,
    const struct pkt *pkt, struct refd_request *req, enum refd_status *status,
    const char **why)
{
	const struct refd_refusal *refusal;

	/* The flush belongs to an unknown request, so the next packet can't be
	 * interpreted either. */
	if (dec->state == BEGIN && pkt->kind != PKT_DATA)
		dec->state = DEAD;
	if (dec->state == DEAD) {
		*why = "a request does not begin with its verb";
		return REFD_DECODE_FATAL;
	}
	if (dec->state != SKIP) {
		refusal = read_packet(dec, pkt);
		if (refusal != NULL)
			refuse(dec, refusal);
	}
	if (pkt->kind != PKT_FLUSH)
		return REFD_DECODE_MORE;
	dec->req.bytes = refd_arena_bytes(dec->req.arena);
	*req = dec->req;
	refusal = dec->refusal;
	start_over(dec);
	if (refusal == NULL)
		return REFD_DECODE_DONE;
	*status = refusal->status;
	*why = refusal->why;
	return REFD_DECODE_REFUSED;
}
