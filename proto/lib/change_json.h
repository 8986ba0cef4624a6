/*
 * Changes of history as JSON objects (refd-json(5)), without a newline. One
 * thread; writes to the stream alone, and the caller checks the stream.
 */
#ifndef PROTO_LIB_CHANGE_JSON_H
#define PROTO_LIB_CHANGE_JSON_H

#include <stdio.h>

#include "proto/message.h"

/* "<journal>:<lsn>.<nr>", or "<journal>:<lsn>" behind the record if NR is 0.
 * The journal is the journal of ANS. Returns TEXT. */
#define CHANGE_JSON_POSITION_MAX (REFD_TOKEN_MAX + 11)
char *change_json_position(const struct refd_answer *ans, uint64_t lsn,
    uint32_t nr, char text[CHANGE_JSON_POSITION_MAX + 1]);

/* C is a change of ANS. TEXT: why the change was rejected, as a sentence; NULL:
 * none. */
void change_json(FILE *to, const struct refd_answer *ans,
    const struct refd_change *c, const char *text);
/* The gap of ANS, which has one. */
void change_json_gap(FILE *to, const struct refd_answer *ans);

#endif
