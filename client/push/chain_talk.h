/*
 * The dialogue with a proc-receive hook, from receive-pack's side.
 */
#ifndef CLIENT_PUSH_CHAIN_TALK_H
#define CLIENT_PUSH_CHAIN_TALK_H

#include "client/push/push.h"

/*
 * Runs the hook at PATH on the commands of PUSH that are chained, and calls
 * TAKE with each packet of its report. What it says on standard error goes to
 * ours. Blocks until it is gone, or the deadline; then it and what it started
 * are ended. Returns why there is no answer for a command that got none, in
 * git's words; static.
 */
const char *chain_talk(const char *path, const struct push *push,
    void (*take)(void *data, const struct pkt *pkt), void *data);

#endif
