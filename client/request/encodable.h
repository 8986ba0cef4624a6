/*
 * Leaves out updates that the protocol cannot encode. The daemon would refuse
 * the whole request because of one long name. The client adds the refusal of
 * such an update to the answer. Pure.
 */
#ifndef CLIENT_REQUEST_ENCODABLE_H
#define CLIENT_REQUEST_ENCODABLE_H

#include "client/request/changes.h"

/* Sets the updates of REQ to the encodable updates of ALL. An ATOMIC request
 * is empty if any update is not encodable. REQ borrows from ALL, until
 * encodable_request_done(). */
void encodable_request(const struct changes *all, bool atomic,
    struct refd_request *req);
void encodable_request_done(const struct changes *all,
    struct refd_request *req);

/* Makes the answer to ALL from ANS (results or prepared), the answer to REQ.
 * WHOLE borrows from both, until encodable_answer_done(). False: ANS has
 * another number of results than REQ has updates. */
bool encodable_answer(const struct changes *all, bool atomic,
    const struct refd_request *req, const struct refd_answer *ans,
    struct refd_answer *whole);
void encodable_answer_done(const struct refd_answer *ans,
    struct refd_answer *whole);

#endif
