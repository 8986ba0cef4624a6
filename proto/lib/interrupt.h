/*
 * Control-C in a command that then prints its results so far. A second
 * Control-C ends the program at once.
 */
#ifndef PROTO_LIB_INTERRUPT_H
#define PROTO_LIB_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* As of a shell, for a command that SIGINT ended. */
#define INTERRUPT_STATUS (128 + SIGINT)

/* From now on, the first SIGINT only sets a mark. If SIGINT was ignored, SIGINT
 * stays ignored. */
void interrupt_catch(void);
/* Was there a SIGINT? Any thread. */
bool interrupt_came(void);

#endif
