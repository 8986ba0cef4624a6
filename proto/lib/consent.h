/* A question to the user before a dangerous step. Blocks; one thread. */
#ifndef PROTO_LIB_CONSENT_H
#define PROTO_LIB_CONSENT_H

enum consent {
	CONSENT_NOBODY, /* standard input or error is no terminal: not asked */
	CONSENT_NO,
	CONSENT_YES
};

/* Prints QUESTION and " [y/N] " to standard error and reads a line. */
enum consent consent_ask(const char *question);
/* From now on, ASK gets the questions, because this process has no terminal. */
void consent_relay(enum consent (*ask)(const char *question));

#endif
