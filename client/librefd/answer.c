#include "client/librefd/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/refd.h"

/*
 * Only a decoder makes an answer that owns its content. So an answer of
 * borrowed strings is encoded and decoded.
 */
static int own(const struct refd_answer *borrowed, struct refd_answer *ans)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	enum refd_decoded state = REFD_DECODE_MORE;
	struct pkt_buf buf = { 0 };
	const char *why;
	struct pkt pkt;
	size_t at = 0;
	long taken;

	refd_answer_encode(borrowed, &buf);
	if (dec && !pkt_buf_failed(&buf))
		while (state == REFD_DECODE_MORE && at < buf.len &&
		    (taken = pkt_parse(buf.data + at, buf.len - at, &pkt)) >
			0) {
			state = refd_answer_decode(dec, &pkt, ans, &why);
			at += (size_t)taken;
		}
	refd_answer_decoder_free(dec);
	pkt_buf_done(&buf);
	return state == REFD_DECODE_DONE ? 0 : -ENOMEM;
}

int refd_answer_refusal(const struct refd_request *req, enum refd_status status,
    const char *text, struct refd_answer *ans)
{
	struct refd_answer borrowed = { .kind = REFD_ANSWER_REFUSED,
		.request_id = req->request_id,
		.txid = req->txid,
		.status = status,
		.text = text };

	return own(&borrowed, ans);
}

static size_t count(const struct refd_result *results, size_t nr,
    enum refd_status status)
{
	size_t i, n = 0;

	for (i = 0; i < nr; i++)
		n += results[i].status == status;
	return n;
}

/* PART: the known results and the outcome, or NULL. */
static int own_results(const struct refd_request *req,
    struct refd_result *results, const struct refd_answer *part,
    struct refd_answer *ans)
{
	size_t nr = req->nr_updates;
	struct refd_answer borrowed = { .kind = REFD_ANSWER_RESULTS,
		.request_id = req->request_id,
		.txid = req->txid,
		.results = results,
		.nr_results = nr,
		.nr_updates = nr,
		.outcome = part ? part->outcome : REFD_OUTCOME_UNKNOWN,
		.lsn = part ? part->lsn : 0 };

	if (part) {
		borrowed.object_format = part->object_format;
		memcpy(borrowed.journal, part->journal,
		    sizeof(borrowed.journal));
	}
	return own(&borrowed, ans);
}

int refd_answer_unknown(const struct refd_request *req, struct refd_answer *ans)
{
	struct refd_result *results;
	size_t i;
	int err;

	results = calloc(req->nr_updates + 1, sizeof(*results));
	if (!results)
		return -ENOMEM;
	for (i = 0; i < req->nr_updates; i++) {
		results[i].name = req->updates[i].name;
		results[i].status = REFD_UNKNOWN;
	}
	err = own_results(req, results, NULL, ans);
	free(results);
	return err;
}

int refd_answer_set_outcome(struct refd_answer *ans)
{
	const enum refd_outcome outcome = refd_outcome_of(ans->nr_updates,
	    count(ans->results, ans->nr_results, REFD_OK),
	    count(ans->results, ans->nr_results, REFD_UNKNOWN));

	/* No result tells whether a session without refs was committed. */
	if (ans->nr_updates == 0)
		return 0;
	if ((outcome == REFD_COMMITTED) != (ans->outcome == REFD_COMMITTED) ||
	    (ans->outcome == REFD_OUTCOME_UNKNOWN && outcome != ans->outcome))
		return -EPROTO;
	ans->outcome = outcome;
	return 0;
}

bool refd_answer_is_complete(const struct refd_request *req,
    const struct refd_answer *ans)
{
	size_t i;

	if (ans->nr_results != req->nr_updates)
		return false;
	for (i = 0; i < req->nr_updates; i++)
		if (strcmp(ans->results[i].name, req->updates[i].name) != 0)
			return false;
	return true;
}

int refd_answer_complete(const struct refd_request *req,
    struct refd_answer *ans)
{
	struct refd_answer whole;
	struct refd_result *results;
	size_t i, taken = 0;
	int err;

	if (refd_answer_is_complete(req, ans))
		return 0;
	results = calloc(req->nr_updates + 1, sizeof(*results));
	if (!results)
		return -ENOMEM;
	for (i = 0; i < req->nr_updates; i++) {
		const char *name = req->updates[i].name;

		if (taken < ans->nr_results &&
		    !strcmp(ans->results[taken].name, name)) {
			results[i] = ans->results[taken++];
			continue;
		}
		results[i].name = name;
		results[i].status = REFD_ABORTED;
		results[i].text = "the daemon stopped before its turn";
	}
	err = taken == ans->nr_results ?
	    own_results(req, results, ans, &whole) :
	    -EPROTO;
	free(results);
	if (err < 0)
		return err;
	refd_answer_done(ans);
	*ans = whole;
	return 0;
}
