/*
 * What the decoders of proto/ share: slices of a packet, the strict spelling
 * of numbers and ids, and the two longer parts of a request. Private to
 * proto/.
 *
 * Everything has one spelling on the wire, so that the same message is
 * always the same bytes: what these accept is what the encoders write. Any
 * thread; nothing blocks.
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
/* Lower-case hexadecimal digits: exactly 40 or 64 of an oid, as FORMAT has
 * them, and 32 of a txid. */
bool refd_slice_oid(struct refd_slice s, enum refd_object_format format,
    struct refd_oid *oid);
/* An oid of either length. The first one says which FORMAT all have. */
bool refd_slice_any_oid(struct refd_slice s, bool *has_format,
    enum refd_object_format *format, struct refd_oid *oid);
bool refd_slice_txid(struct refd_slice s, struct refd_txid *id);
/* "<lsn>" or "<lsn> <nr>" */
bool refd_slice_position(struct refd_slice s, struct refd_position *position);
void refd_position_put(struct pkt_buf *out, const char *key,
    const struct refd_position *position);
/* 32 lower-case digits. */
bool refd_slice_journal(struct refd_slice s, uint8_t id[REFD_JOURNAL_ID_BYTES]);
void refd_journal_put(struct pkt_buf *out,
    const uint8_t id[REFD_JOURNAL_ID_BYTES]);
/* "<log id>:<lsn>", and no LSN of 0. */
bool refd_slice_token(struct refd_slice s, uint8_t id[REFD_JOURNAL_ID_BYTES],
    uint64_t *lsn);
bool refd_txid_is_null(const struct refd_txid *id);

/* A result's or change's text: for people, or a detail (detail.h). An empty one
 * is no COPY. NULL, or why it is not understood. */
const char *refd_slice_text(struct refd_slice s, struct refd_arena *arena,
    const char **copy);
/* OUT ends with TEXT, or with its first REFD_MESSAGE_MAX bytes, which are now
 * as the wire has them. */
void refd_text_put_last(struct pkt_buf *out, const char *text);

/* "results", "pong", ... */
const char *refd_answer_kind_name(enum refd_answer_kind kind);
bool refd_slice_answer_kind(struct refd_slice s, enum refd_answer_kind *kind);

/* Why a request can't be taken. Static. */
struct refd_refusal {
	enum refd_status status;
	const char *why;
};

extern const struct refd_refusal refd_refusal_no_memory;

/* "<NAME>=<value>" behind the NR in LIST; copied into ARENA. */
const struct refd_refusal *refd_identity_decode(struct refd_arena *arena,
    struct refd_identity *list, size_t *nr, struct refd_slice s);
void refd_identity_encode(const struct refd_identity *list, size_t nr,
    struct pkt_buf *out);

/* A header's value of at most MAX bytes, copied. */
const struct refd_refusal *refd_header_keep(struct refd_request *req,
    struct refd_slice value, size_t max, const char **copy);
typedef const struct refd_refusal *refd_header_set(struct refd_request *req,
    struct refd_slice value);
/* request_select.c: what a question about history has of its own. */
refd_header_set refd_select_ref, refd_select_uid, refd_select_user,
    refd_select_since, refd_select_until, refd_select_journal,
    refd_select_after, refd_select_before, refd_select_limit,
    refd_select_reverse, refd_select_all;
void refd_select_encode(const struct refd_selection *select,
    struct pkt_buf *out);

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
void refd_update_encode(const struct refd_update *update,
    enum refd_object_format format, struct pkt_buf *out);

/* The body of a RECORDS answer. */
struct refd_records_decoder {
	enum {
		REFD_RECORDS_BEGIN,  /* the journal comes */
		REFD_RECORDS_FIRST,  /* a gap, a record, or next */
		REFD_RECORDS_RECORD, /* its lines, and a change at least */
		REFD_RECORDS_CHANGES,
		REFD_RECORDS_NEXT, /* more, or the end */
		REFD_RECORDS_END
	} step;
	struct refd_record *record;
	unsigned seen;   /* of its lines */
	bool has_format; /* one of its oids was there */
};
/* One packet of it. NULL, or why it is not understood. */
const char *refd_records_decode(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice packet);
bool refd_records_may_end(const struct refd_records_decoder *dec);
void refd_records_encode(const struct refd_answer *ans, struct pkt_buf *out);

#endif
