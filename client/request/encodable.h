/*
 * What the protocol can carry of a transaction. A name that is too long for
 * it would have the whole request refused, so it is not sent, and its refusal
 * is put among the answers. Pure.
 */
#ifndef CLIENT_REQUEST_ENCODABLE_H
#define CLIENT_REQUEST_ENCODABLE_H

#include "client/request/changes.h"

/* What is asked for: all but those; of what is all or nothing (ATOMIC) nothing
 * then. Owned array, borrowed strings: free(req->updates). */
void encodable_request(const struct changes *all, bool atomic,
    struct refd_request *req);

/* The answer as if all had been sent, from ANS, results or prepared, to the
 * request that encodable_request() made. It borrows from both, but for its own array:
 * free(whole->results). False: ANS has another number of results. */
bool encodable_answer(const struct changes *all, bool atomic,
    const struct refd_request *req, const struct refd_answer *ans,
    struct refd_answer *whole);

#endif
