/*
 * Digest of a request: one number that distinguishes a transaction sent again
 * from a different transaction under the same id. The digest is in the journal:
 * after a change of the algorithm, a transaction of before can't be sent again.
 *
 * The digest covers the requested changes and what the answer promises, and not
 * the time or the way of sending. A client that sends again after a crash may
 * have another time in its committer line, another deadline, or another view of
 * the mount. Pure; any thread.
 */
#ifndef PROTO_DIGEST_H
#define PROTO_DIGEST_H

#include "proto/message.h"

/* begin() covers the headers. update() then adds the updates in their order. */
uint64_t refd_digest_begin(const struct refd_request *req);
uint64_t refd_digest_update(uint64_t digest, enum refd_object_format format,
    const struct refd_update *u);

#endif
