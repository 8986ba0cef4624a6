/*
 * What a request asks for, as one number, by which a transaction that is sent
 * again is known from another one under the same id. It is in the journal, so
 * it never changes.
 *
 * What, not how, when or by which way: a client that sends again after a crash
 * may have another clock in its committer line, another deadline, another view
 * of the mount. Pure; any thread.
 */
#ifndef PROTO_DIGEST_H
#define PROTO_DIGEST_H

#include "proto/message.h"

/* Of its headers; then, with each of its updates, as they come. */
uint64_t refd_digest_begin(const struct refd_request *req);
uint64_t refd_digest_update(uint64_t digest, enum refd_object_format format,
    const struct refd_update *u);

#endif
