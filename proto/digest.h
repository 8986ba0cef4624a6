/*
 * Digest of a request: one number that distinguishes a transaction sent again
 * from a different transaction under the same id. The digest is in the journal,
 * so after a change of the algorithm no transaction from before the change can
 * be sent again.
 *
 * A client that sends again after a crash may have another time in its
 * committer line, another deadline, or another view of the mount. So the digest
 * covers the requested changes and what the answer promises, and not the time
 * or the way of sending. Pure; any thread.
 */
#ifndef PROTO_DIGEST_H
#define PROTO_DIGEST_H

#include "proto/message.h"

/* begin() covers the headers, and update() then adds the updates in their
 * order. */
uint64_t refd_digest_begin(const struct refd_request *req);
uint64_t refd_digest_update(uint64_t digest, enum refd_object_format format,
    const struct refd_update *u);

#endif
