/*
 * The outcome of a transaction, told as the options of refd update want it.
 * Functions return the exit status: 0, or what the program ends with.
 */
#ifndef CLIENT_UPDATE_UPDATE_REPORT_H
#define CLIENT_UPDATE_UPDATE_REPORT_H

#include "client/request/changes.h"
#include "client/update/update.h"

/* ANS is RESULTS with one for each of CHANGES. */
int report_results(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans);
/* Of a batch, what git rejects before it looks at any ref; report_results()
 * does not say it again when the batch was prepared. */
void report_bad_values(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans);
/* ANS is REFUSED: the whole request, spelled out for each ref. */
int report_refused(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans);
/* With --verbose. */
void report_timing(const struct refd_answer *ans, uint64_t begun_ms);

#endif
