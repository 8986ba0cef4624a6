/*
 * A thread that asks the daemon for the next changes. The owner of the reader
 * asks and takes the answer; between, only the thread touches the question.
 *
 *	reader_ask -> the thread waits for the daemon -> reader_take
 *
 * If the daemon is away or refuses, the thread tries again, and reports this
 * once a minute. All calls come from the thread of the owner and do not block,
 * except for reader_stop(), which waits for the thread, some seconds at most.
 */
#ifndef CLIENT_DELIVER_READER_H
#define CLIENT_DELIVER_READER_H

#include "client/deliver/outbox.h"
#include "client/refd.h"

struct reader;

/* WAKE is called by the thread when an answer is there. */
struct reader *reader_start(const char *socket, void (*wake)(void *arg),
    void *arg);
void reader_stop(struct reader *r);

/* Is a question under way, or an answer not taken yet? */
bool reader_is_busy(struct reader *r);
/* Asks for the changes behind AFTER, or from now on if it is not known, and
 * waits at most WAIT_MS for the first. The reader must not be busy. */
void reader_ask(struct reader *r, const struct outbox_position *after,
    uint32_t wait_ms);
/* Takes the answer, of kind RECORDS, which the caller frees. False: there is
 * none yet. */
bool reader_take(struct reader *r, struct refd_answer *ans);

#endif
