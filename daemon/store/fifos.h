/*
 * Queues between the threads of the store. They have no lock, because the mutex
 * of the owner of a queue protects it.
 */
#ifndef STORE_FIFOS_H
#define STORE_FIFOS_H

#include "daemon/store/store.h"
#include "daemon/store/txn.h"

/* First in, first out. The elements are linked through their member "next", so
 * a hand-over allocates nothing and cannot fail. Empty if zero-initialised. */
#define STORE_FIFO(fifo, type)                                                 \
	struct fifo {                                                          \
		struct type *head, *last;                                      \
	};                                                                     \
	static inline void fifo##_put(struct fifo *f, struct type *thing)      \
	{                                                                      \
		thing->next = NULL;                                            \
		if (f->head == NULL)                                           \
			f->head = thing;                                       \
		else                                                           \
			f->last->next = thing;                                 \
		f->last = thing;                                               \
	}                                                                      \
	static inline struct type *fifo##_take(struct fifo *f)                 \
	{                                                                      \
		struct type *thing = f->head;                                  \
		if (thing != NULL)                                             \
			f->head = thing->next;                                 \
		return thing;                                                  \
	}                                                                      \
	/* Appends all of MORE. MORE is empty then. */                         \
	static inline void fifo##_move(struct fifo *f, struct fifo *more)      \
	{                                                                      \
		if (more->head == NULL)                                        \
			return;                                                \
		if (f->head == NULL)                                           \
			f->head = more->head;                                  \
		else                                                           \
			f->last->next = more->head;                            \
		f->last = more->last;                                          \
		more->head = NULL;                                             \
	}

STORE_FIFO(txn_fifo, txn)
STORE_FIFO(batch_fifo, batch)
STORE_FIFO(question_fifo, store_question)

#endif
