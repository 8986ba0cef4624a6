/*
 * The outcome of a transaction on standard output. One thread; nothing is
 * flushed.
 */
#ifndef CLIENT_REQUEST_OUTPUT_H
#define CLIENT_REQUEST_OUTPUT_H

#include "proto/lib/cli.h"
#include "proto/message.h"

/*
 * "ok <ref>" or "ng <ref> <code> <text>" in input order, then
 * "txn <id> <outcome>". The answer's kind is RESULTS. A program gets the bytes
 * of a valid name as they are, and people what a terminal shows.
 */
void output_results(const struct refd_answer *ans, bool for_people);
/* One JSON object, and a newline. */
void output_json(const struct refd_answer *ans);
/* "rejected <ref> <new> <old> <reason>" for one of update-ref's batch; NAME is
 * the ref. */
void output_rejected(const struct refd_update *u, const char *name,
    const struct refd_result *res, enum refd_object_format format);
/* {"key":"value","count":3,...} and a newline. Adjacent pairs "kind.key" become
 * an array "kind" of objects. The first key of the kind begins an object. */
void output_json_pairs(const struct refd_pair *pairs, size_t nr);

#endif
