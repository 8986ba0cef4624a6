/*
 * What the decoders of proto/ share: slices of a packet, the strict spelling
 * of numbers and ids, and the two longer parts of a request. Private to
 * proto/.
 *
 * Everything has one spelling on the wire, so that the same message is
 * always the same bytes: what these accept is what the encoders write.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* Part of a packet; borrowed, not terminated. NULL data: nothing is left,
 * not even an empty field. */
struct refd_slice {
	const char *data;
	size_t len;
};

bool refd_slice_is(struct refd_slice s, const char *word);
bool refd_slice_has_nul(struct refd_slice s);
/* Moves what stands before the first SEPARATOR, or all of it, from *S to
 * *FIELD. False, with *FIELD as it was, when nothing was left. */
bool refd_slice_cut(struct refd_slice *s, char separator,
    struct refd_slice *field);
/* Copies S, terminated, into WORD. False if it does not fit. */
bool refd_slice_word(struct refd_slice s, char *word, size_t size);

/* Decimal digits without a sign or a leading zero. */
bool refd_slice_u64(struct refd_slice s, uint64_t *number);
bool refd_slice_u32(struct refd_slice s, uint32_t *number);
/* Exactly 40 and 32 lower-case hexadecimal digits. */
bool refd_slice_oid(struct refd_slice s, struct refd_oid *oid);
bool refd_slice_txid(struct refd_slice s, struct refd_txid *id);
bool refd_txid_is_null(const struct refd_txid *id);

/* "results", "pong", ... */
const char *refd_answer_kind_name(enum refd_answer_kind kind);
bool refd_slice_answer_kind(struct refd_slice s, enum refd_answer_kind *kind);

/* Why a request can't be taken. Static. */
struct refd_refusal {
	enum refd_status status;
	const char *why;
};

extern const struct refd_refusal refd_refusal_no_memory;

/*
 * One header packet into REQ, whose verb is known. *SEEN starts at 0 and is
 * theirs. NULL, or why not. complete() says after the last one whether the
 * verb has what it needs.
 */
const struct refd_refusal *refd_header_decode(struct refd_request *req,
    unsigned *seen, struct refd_slice packet);
const struct refd_refusal *refd_header_complete(const struct refd_request *req,
    unsigned seen);
void refd_header_encode(const struct refd_request *req, struct pkt_buf *out);
bool refd_verb_has_updates(enum refd_verb verb);

/* One update packet, appended to REQ's updates. NULL, or why not. */
const struct refd_refusal *refd_update_decode(struct refd_request *req,
    struct refd_slice packet, bool no_deref);
void refd_update_encode(const struct refd_update *update, struct pkt_buf *out);

#endif
