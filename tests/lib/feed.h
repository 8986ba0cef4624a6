/*
 * Requests, packet by packet, in the notation of tests: "|" stands for NUL,
 * DELIM for a delimiter, "" for a flush.
 */
#ifndef TESTS_LIB_FEED_H
#define TESTS_LIB_FEED_H

#include "proto/message.h"

#define DELIM  "--"
#define OID    "0123456789abcdef0123456789abcdef01234567"
#define TXID   "txid 0192f0c1d2e3000102030405060708ff"
#define OID256 OID "89abcdef0123456789abcdef"
#define FORMAT "object-format sha1"
#define REPO   TXID, "git-dir /r.git", "common-dir 1 2"
#define HEAD   "transaction 7", REPO, FORMAT
#define OPEN   HEAD, "umask 0022", DELIM
#define OPEN256                                                                \
	"transaction 7", REPO, "object-format sha256", "umask 0022", DELIM
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum refd_decoded feed(struct refd_request_decoder *dec, const char *packet,
    struct refd_request *req, enum refd_status *status, const char **why);
/* Returns the decoder's result for the whole request of PACKETS, up to NULL.
 * The flush is added. */
enum refd_decoded feed_all(struct refd_request_decoder *dec,
    const char *const *packets, struct refd_request *req,
    enum refd_status *status, const char **why);
/* Checks that a request is accepted, after any earlier input. */
void check_in_step(struct refd_request_decoder *dec);

#endif
