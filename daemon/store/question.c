/*
 * Happy path: the answer is filled in within the question, which has the room
 * for a few pairs, so that telling allocates nothing.
 *
 * Failure modes: a refusal has no text if there is no memory for the reason.
 */
#include "daemon/store/question.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct store_question *question_new(enum store_question_kind kind)
{
	struct store_question *q = calloc(1, sizeof(*q));

	if (q != NULL)
		q->kind = kind;
	return q;
}

void question_free(struct store_question *q)
{
	if (q == NULL)
		return;
	txn_free(q->txn);
	refd_request_done(&q->req);
	refd_answer_done(&q->answer);
	free(q->peer.gids);
	free(q->why);
	free(q);
}

void question_refuse(struct store_question *q, enum refd_status status,
    const char *text)
{
	refd_answer_done(&q->answer);
	q->answer = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
		.txid = q->req.txid,
		.status = status,
		.text = text };
}

void question_refuse_for(struct store_question *q, enum refd_status status,
    char *why)
{
	free(q->why);
	q->why = why;
	question_refuse(q, status, why);
}

void question_tell(struct store_question *q, const char *key, const char *value)
{
	q->answer.kind = REFD_ANSWER_PAIRS;
	q->answer.pairs = q->pairs;
	q->pairs[q->answer.nr_pairs++] = (struct refd_pair){ key, value };
}

void question_tell_number(struct store_question *q, const char *key,
    uint64_t number)
{
	char *text = q->numbers[q->answer.nr_pairs];

	snprintf(text, sizeof(q->numbers[0]), "%" PRIu64, number);
	question_tell(q, key, text);
}
