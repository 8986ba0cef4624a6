/*
 * Reports the outcome of a transaction in the form of refd update's options.
 * Functions return the exit status: 0, or the status with which the program
 * ends.
 */
#ifndef CLIENT_UPDATE_UPDATE_REPORT_H
#define CLIENT_UPDATE_UPDATE_REPORT_H

#include "client/request/changes.h"
#include "client/update/update.h"

/* ANS is RESULTS, with a result for each of CHANGES. */
int report_results(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans);
/* Reports the updates of a batch with bad values, which git rejects first. For
 * a prepared batch, report_results() does not repeat them. */
void report_bad_values(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans);
/* ANS is REFUSED. The refusal is reported for each ref. */
int report_refused(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans);
/* With --verbose. */
void report_timing(const struct refd_answer *ans, uint64_t begun_ms);

#endif
