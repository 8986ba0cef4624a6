#include "daemon/server/reply.h"

#include "daemon/base/busy_cause.h"

void reply_key_values(struct key_values *kv, struct conn *conn,
    uint32_t request_id)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.request_id = request_id,
		.pairs = kv->list,
		.nr_pairs = kv->nr };

	if (kv->failed)
		ans = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
			.request_id = request_id,
			.status = busy_cause_count(BUSY_MEMORY),
			.text = busy_cause_text(BUSY_MEMORY) };
	conn_answer(conn, &ans);
	key_values_done(kv);
}

void reply_refused(struct conn *conn, const struct refd_request *req,
    enum refd_status status, const char *why)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.request_id = req->request_id,
		.txid = req->txid,
		.status = status,
		.text = why };

	conn_answer(conn, &ans);
}

void reply_from_scheduler(void *conn, const struct refd_answer *ans)
{
	conn_answer(conn, ans);
}
