/*
 * From an answer of the feed to rows of the outbox, within limits, because the
 * owner of one repository could otherwise fill the disk. A stream which is too
 * long gets a gap in the place of further changes, and a receiver which has too
 * much takes nothing until half is delivered. One thread; writes the outbox.
 */
#ifndef CLIENT_DELIVER_INTAKE_H
#define CLIENT_DELIVER_INTAKE_H

#include "client/deliver/streams.h"

/* Bodies of waiting changes. */
#define INTAKE_STREAM_BYTES   (256ULL << 20)
#define INTAKE_RECEIVER_BYTES (1ULL << 30)

/* Positions that are not known are the same. */
bool intake_is_same(const struct outbox_position *a,
    const struct outbox_position *b);
/* Adds the changes and gaps of ANS for all receivers that are not full and
 * have the position ASKED. Their position moves
 * behind ANS. Within a transaction of OUTBOX. */
void intake_take(struct outbox *outbox, struct receiver *receivers, size_t nr,
    const struct outbox_position *asked, const struct refd_answer *ans);
/* A full receiver that has delivered enough takes changes again. */
void intake_reopen(struct receiver *to);

#endif
