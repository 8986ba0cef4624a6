/*
 * Transactions for tests. They own their content, like transactions from the
 * wire.
 */
#ifndef TESTS_LIB_TXN_HELP_H
#define TESTS_LIB_TXN_HELP_H

#include "daemon/store/txn.h"

struct txn *txn_help_own(const struct refd_request *req);
/* REQ with the updates of SPEC, in the notation of world_apply(). */
struct txn *txn_help_of(const struct refd_request *req, const char *spec);

#endif
