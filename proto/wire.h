/*
 * Shared by the decoders of proto/: slices of a packet, the strict spelling of
 * numbers and ids, and the two longer parts of a request. Private to proto/.
 *
 * Every value has one spelling on the wire, because the decoders accept exactly
 * what the encoders write. So equal messages have equal bytes. Any thread;
 * nothing blocks.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* Part of a packet, borrowed and not terminated. If data is NULL, nothing is
 * left, not even an empty field. */
struct refd_slice {
	const char *data;
	size_t len;
};

bool refd_slice_is(struct refd_slice s, const char *word);
bool refd_slice_has_nul(struct refd_slice s);
/* Moves the bytes before the first SEPARATOR, or all bytes, from *S to *FIELD.
 * Returns false, with *FIELD unchanged, if nothing was left. */
bool refd_slice_cut(struct refd_slice *s, char separator,
    struct refd_slice *field);
/* Copies S, terminated, into WORD. False if S does not fit. */
bool refd_slice_word(struct refd_slice s, char *word, size_t size);

/* Decimal digits without a sign or a leading zero. */
bool refd_slice_u64(struct refd_slice s, uint64_t *number);
bool refd_slice_u32(struct refd_slice s, uint32_t *number);
/* Lower-case hexadecimal digits: exactly 40 or 64 for an oid of FORMAT, and 32
 * for a txid. */
bool refd_slice_oid(struct refd_slice s, enum refd_object_format format,
    struct refd_oid *oid);
/* An oid of either length. The first oid sets FORMAT, and all other oids must
 * have the same format. */
bool refd_slice_any_oid(struct refd_slice s, bool *has_format,
    enum refd_object_format *format, struct refd_oid *oid);
bool refd_slice_txid(struct refd_slice s, struct refd_txid *id);
/* "<lsn>" or "<lsn> <nr>" */
bool refd_slice_position(struct refd_slice s, struct refd_position *position);
void refd_position_put(struct pkt_buf *out, const char *key,
    const struct refd_position *position);
/* 32 lower-case digits. */
bool refd_slice_journal(struct refd_slice s, uint8_t id[REFD_JOURNAL_ID_BYTES]);
void refd_wire_put_journal(struct pkt_buf *out,
    const uint8_t id[REFD_JOURNAL_ID_BYTES]);
/* "<log id>:<lsn>"; the LSN is not 0. */
bool refd_slice_token(struct refd_slice s, uint8_t id[REFD_JOURNAL_ID_BYTES],
    uint64_t *lsn);
bool refd_txid_is_null(const struct refd_txid *id);

/* The text of a result or change, for people, or a detail (detail.h). For an
 * empty text, COPY stays unset. Returns NULL, or the reason for rejecting. */
const char *refd_slice_text(struct refd_slice s, struct refd_arena *arena,
    const char **copy);
/* OUT must end with TEXT, or with its first REFD_MESSAGE_MAX bytes. Changes
 * these bytes to the spelling of the wire. */
void refd_wire_put_text(struct pkt_buf *out, const char *text);

/* "results", "pong", ... */
const char *refd_answer_kind_name(enum refd_answer_kind kind);
bool refd_slice_answer_kind(struct refd_slice s, enum refd_answer_kind *kind);

/* Reason for refusing a request. Static. */
struct refd_refusal {
	enum refd_status status;
	const char *why;
};

extern const struct refd_refusal refd_refusal_no_memory;

/* Appends "<NAME>=<value>" to LIST, which has NR elements, and copies into
 * ARENA. */
const struct refd_refusal *refd_identity_decode(struct refd_arena *arena,
    struct refd_identity *list, size_t *nr, struct refd_slice s);
void refd_identity_encode(const struct refd_identity *list, size_t nr,
    struct pkt_buf *out);

/* Copies a header's value of at most MAX bytes. */
const struct refd_refusal *refd_request_keep(struct refd_request *req,
    struct refd_slice value, size_t max, const char **copy);
typedef const struct refd_refusal *refd_header_set(struct refd_request *req,
    struct refd_slice value);
/* request_select.c: the headers of requests for history. */
refd_header_set refd_selection_ref, refd_selection_uid, refd_selection_user,
    refd_selection_since, refd_selection_until, refd_selection_journal,
    refd_selection_after, refd_selection_before, refd_selection_limit,
    refd_selection_reverse, refd_selection_all, refd_selection_origin;
void refd_selection_encode(const struct refd_selection *select,
    struct pkt_buf *out);

/*
 * Decodes one header packet into REQ, whose verb is known. *SEEN starts at 0
 * and belongs to these functions. They return NULL, or the reason for refusing.
 * After the last header, complete() checks that all required headers are there.
 */
const struct refd_refusal *refd_request_header_decode(struct refd_request *req,
    unsigned *seen, struct refd_slice packet);
const struct refd_refusal *refd_request_headers_complete(
    const struct refd_request *req, unsigned seen);
void refd_request_headers_encode(const struct refd_request *req,
    struct pkt_buf *out);

/* Appends one update packet to REQ's updates. Returns NULL, or the reason for
 * refusing. */
const struct refd_refusal *refd_update_decode(struct refd_request *req,
    struct refd_slice packet, bool no_deref);
void refd_update_encode(const struct refd_update *update,
    enum refd_object_format format, struct pkt_buf *out);

/* The body of a RECORDS answer. */
struct refd_records_decoder {
	enum {
		REFD_RECORDS_BEGIN,  /* the journal must come */
		REFD_RECORDS_FIRST,  /* a gap, a record, or next */
		REFD_RECORDS_RECORD, /* packets of a record, then a change */
		REFD_RECORDS_CHANGES,
		REFD_RECORDS_NEXT, /* more, or the end */
		REFD_RECORDS_END
	} step;
	struct refd_record *record;
	unsigned seen;   /* of the record's packets */
	bool has_format; /* the record has an oid */
};
/* Decodes one packet of the body. Returns NULL, or the reason for rejecting. */
const char *refd_records_decode(struct refd_records_decoder *dec,
    struct refd_answer *ans, struct refd_slice packet);
bool refd_records_may_end(const struct refd_records_decoder *dec);
void refd_records_encode(const struct refd_answer *ans, struct pkt_buf *out);

#endif
