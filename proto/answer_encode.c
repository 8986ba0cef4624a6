/* Encodes answers into packets. */
#include "proto/wire.h"

#include <assert.h>

static void put_result(const struct refd_result *res,
    enum refd_object_format format, struct pkt_buf *out)
{
	char hex[REFD_OID_MAX_HEX + 1] = "";
	const char *text = res->text != NULL ? res->text : "";

	assert(res->status != REFD_PENDING);
	if (res->has_found)
		refd_oid_hex(&res->found, format, hex);
	/* The text is cut at REFD_MESSAGE_MAX, which leaves room for the
	 * refname in the packet. So a failure can always be answered, however
	 * long the text is. */
	if (res->status == REFD_OK && *text == '\0')
		pkt_puts(out,
		    (const char *[]){ "ok", NULL, res->name, NULL, hex, NULL },
		    6);
	else if (res->status == REFD_OK)
		pkt_putf(out, "ok%c%s%c%s%c%.*s", 0, res->name, 0, hex, 0,
		    REFD_MESSAGE_MAX, text);
	else
		pkt_putf(out, "ng %s%c%s%c%s%c%.*s",
		    refd_status_name(res->status), 0, res->name, 0, hex, 0,
		    REFD_MESSAGE_MAX, text);
	refd_wire_put_text(out, text);
}

static void put_txid(const struct refd_txid *id, struct pkt_buf *out)
{
	char hex[REFD_TXID_HEX + 1];

	pkt_putf(out, "txid %s", refd_txid_hex(id, hex));
}

static void put_results(const struct refd_answer *ans, struct pkt_buf *out)
{
	size_t i;

	if (!ans->is_continued)
		put_txid(&ans->txid, out);
	for (i = 0; i < ans->nr_results; i++)
		put_result(&ans->results[i], ans->object_format, out);
}

static void put_outcome(const struct refd_answer *ans, struct pkt_buf *out)
{
	char token[REFD_TOKEN_MAX + 1];

	if (ans->kind == REFD_ANSWER_RESULTS && ans->lsn != 0)
		pkt_putf(out, "outcome %s %zu %s",
		    refd_outcome_name(ans->outcome), ans->nr_updates,
		    refd_token_text(ans->journal, ans->lsn, token));
	else if (ans->kind == REFD_ANSWER_RESULTS)
		pkt_putf(out, "outcome %s %zu", refd_outcome_name(ans->outcome),
		    ans->nr_updates);
	else if (ans->rewrites_packed)
		pkt_putf(out, "rewrites-packed");
}

static void put_refused(const struct refd_answer *ans, struct pkt_buf *out)
{
	if (!refd_txid_is_null(&ans->txid))
		put_txid(&ans->txid, out);
	pkt_putf(out, "status %s", refd_status_name(ans->status));
	if (ans->text != NULL)
		pkt_putf(out, "text %.*s", REFD_MESSAGE_MAX, ans->text);
	if (ans->status == REFD_BUSY && ans->retry_after_ms > 0)
		pkt_putf(out, "retry-after %u", (unsigned)ans->retry_after_ms);
}

void refd_answer_encode(const struct refd_answer *ans, struct pkt_buf *out)
{
	size_t i;

	if (!ans->is_continued)
		pkt_putf(out, "answer %u %s", (unsigned)ans->request_id,
		    refd_answer_kind_name(ans->kind));
	switch (ans->kind) {
	case REFD_ANSWER_RESULTS:
	case REFD_ANSWER_PREPARED:
		put_results(ans, out);
		if (ans->goes_on)
			return;
		put_outcome(ans, out);
		break;
	case REFD_ANSWER_PENDING:
	case REFD_ANSWER_NEVER_SEEN:
	case REFD_ANSWER_EXPIRED:
		put_txid(&ans->txid, out);
		break;
	case REFD_ANSWER_REFUSED:
		put_refused(ans, out);
		break;
	case REFD_ANSWER_PONG:
		break;
	case REFD_ANSWER_PAIRS:
		for (i = 0; i < ans->nr_pairs; i++)
			pkt_putf(out, "pair %s %s", ans->pairs[i].key,
			    ans->pairs[i].value);
		break;
	case REFD_ANSWER_RECORDS:
		refd_records_encode(ans, out);
		break;
	}
	pkt_flush(out);
}
