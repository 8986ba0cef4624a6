/*
 * The dialogue with a proc-receive hook, from receive-pack's side.
 */
#ifndef CLIENT_PUSH_CHAIN_TALK_H
#define CLIENT_PUSH_CHAIN_TALK_H

#include "client/push/push.h"

/*
 * Runs the hook at PATH on the chained commands of PUSH, and calls TAKE with
 * each packet of the report. Copies the hook's standard error to the standard
 * error of this program. Blocks until the hook ends, or until the deadline:
 * then the hook and all children of the hook are killed. Returns the reason for
 * commands without an answer, in git's words; static.
 */
const char *chain_talk(const char *path, const struct push *push,
    void (*take)(void *data, const struct pkt *pkt), void *data);

#endif
