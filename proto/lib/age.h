/*
 * The age of a file in words. Coarse, so that findings of files of about the
 * same age are equal (finding.h).
 */
#ifndef PROTO_LIB_AGE_H
#define PROTO_LIB_AGE_H

#include <stdint.h>

#define AGE_MAX 32

/* "5 minutes", "3 hours", "2 days". Returns TEXT. */
const char *age_text(int64_t seconds, char text[AGE_MAX]);

#endif
