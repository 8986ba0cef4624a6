/*
 * The progress of a command: one line on standard error, if standard error is a
 * terminal. One thread.
 */
#ifndef PROTO_LIB_PROGRESS_H
#define PROTO_LIB_PROGRESS_H

/* Zero-initialised: nothing was shown. */
struct progress_line {
	long second; /* of the last line, or of the first call */
	int columns; /* of the line that stands; 0: there is none */
};

/* Replaces the line, at most once a second, and not in the first second. */
void progress_show(struct progress_line *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Removes the line, so that other output can follow. */
void progress_clear(struct progress_line *p);

#endif
