/* UTF-8, and the characters that a terminal would obey. Pure. */
#ifndef PROTO_LIB_UTF8_H
#define PROTO_LIB_UTF8_H

#include <stddef.h>

/* The length of the sequence at S, which ends with a NUL; 0: not UTF-8. */
size_t utf8_len(const char *s);
/* The control character at S: below a blank, DEL, or U+0080 to U+009F; 0: none
 * there. */
unsigned utf8_control(const char *s);
/* Replaces control characters by "?", except tabs and newlines. For messages;
 * git does the same. */
void utf8_hide_controls(char *s);

#endif
