/* Times and ages for people. Any thread. */
#ifndef PROTO_LIB_TIME_TEXT_H
#define PROTO_LIB_TIME_TEXT_H

#include <stdint.h>

#define TIME_TEXT_MAX 64

/* All return TEXT, or "?". MS is the time since 1970. */

/* "2026-08-01T14:00:00.000+0200", in local time. */
const char *time_text_local(uint64_t ms, char text[TIME_TEXT_MAX]);
/* "2026-08-01T12:00:00.000Z". */
const char *time_text_utc(uint64_t ms, char text[TIME_TEXT_MAX]);
/* "5 minutes", "3 hours", "2 days". Coarse, so that findings of files of about
 * the same age are equal (finding.h). */
const char *time_text_age(int64_t seconds, char text[TIME_TEXT_MAX]);

#endif
