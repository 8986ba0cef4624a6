/*
 * Decoded messages as JSON, for proto/vectors.json. Fields that were not sent
 * are absent. The names are those of PROTOCOL.md.
 */
#ifndef TESTS_LIB_MESSAGE_JSON_H
#define TESTS_LIB_MESSAGE_JSON_H

#include "proto/message.h"
#include "tests/lib/json_out.h"

void message_json_hello(struct json_out *j, const struct refd_hello *hello);
void message_json_request(struct json_out *j, const struct refd_request *req);
void message_json_answer(struct json_out *j, const struct refd_answer *ans);

#endif
