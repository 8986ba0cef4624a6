/* The report of refd recover on standard output: text or JSON. One thread. */
#ifndef ADMIN_REPORT_H
#define ADMIN_REPORT_H

#include "daemon/store/recovery/tally.h"

/* ERR: the errno that ended it, or 0. */
void report_text(const struct finding_tally *tally, uint64_t deferred);
void report_json(const struct finding_tally *tally, uint64_t deferred, int err);

#endif
