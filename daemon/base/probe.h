/*
 * Static probes for bpftrace, perf and gdb (USDT) of the provider refd. Without
 * a tracer, a probe costs a nop and the loads of its arguments. bpftrace reads
 * six arguments at most, so a probe has no more. "Tracing" in
 * docs/operations.md has examples.
 *
 * High and low are the halves of a transaction id: both in 16 hexadecimal
 * digits are the id in the log. Repository is the number of the repository in
 * the journal; 0: no repository was opened. Times are in nanoseconds, and an
 * error is 0 or a negative errno.
 *
 * probe		thread	arguments
 * admission_begin	worker	high low updates
 * admission_end	worker	high low repository updates status
 * barrier_begin	worker	high low repository
 * barrier_end		any	high low repository time error
 * lock			worker	high low repository transactions refs time
 * lock_wait		loop	high low repository path time
 * flush_begin		any	flush commits
 * flush_end		any	flush time success
 * publish		worker	high low repository transactions refs time
 * stages		loop	high low barrier lock flush publish
 * answer		loop	high low repository updates ok time
 *
 * admission_begin	the admission begins; again if the path has a different
 *			repository by then
 * admission_end	all checks are done; status 0, or the transaction is
 *			refused with this status of the protocol
 * barrier_begin, _end	the transaction waits until its objects are durable.
 *			The time is the sum of all waits. The loop ends the wait
 *			of a transaction that is given up
 * lock			a batch holds its locks; the time since its begin. The
 *			id is of its first transaction
 * lock_wait		an update found path.lock of a different writer; the
 *			time since the first try
 * flush_begin, _end	a flush of the journal, and the commits since the last;
 *			the time of the system call
 * publish		a batch has published its refs and released its locks;
 *			the time since the commit
 * stages		times of all batches of the transaction, before answer
 * answer		all updates are decided, of which some ok; the time
 *			since the arrival
 */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#if !__has_include(<sys/sdt.h>)
#error "the header sys/sdt.h is missing: run scripts/deps --build"
#endif

#include <endian.h>
#include <stdint.h>
#include <string.h>
#include <sys/sdt.h>

#include "proto/txid.h"

static inline uint64_t probe_high(const struct refd_txid *id)
{
	uint64_t half;

	memcpy(&half, id->bytes, sizeof(half));
	return be64toh(half);
}

static inline uint64_t probe_low(const struct refd_txid *id)
{
	uint64_t half;

	memcpy(&half, id->bytes + sizeof(half), sizeof(half));
	return be64toh(half);
}

#define PROBE_ADMISSION_BEGIN(id, updates)                                     \
	DTRACE_PROBE3(refd, admission_begin, probe_high(id), probe_low(id),    \
	    updates)
#define PROBE_ADMISSION_END(id, repository, updates, status)                   \
	DTRACE_PROBE5(refd, admission_end, probe_high(id), probe_low(id),      \
	    repository, updates, status)
#define PROBE_BARRIER_BEGIN(id, repository)                                    \
	DTRACE_PROBE3(refd, barrier_begin, probe_high(id), probe_low(id),      \
	    repository)
#define PROBE_BARRIER_END(id, repository, time, error)                         \
	DTRACE_PROBE5(refd, barrier_end, probe_high(id), probe_low(id),        \
	    repository, time, error)
#define PROBE_LOCK(id, repository, transactions, refs, time)                   \
	DTRACE_PROBE6(refd, lock, probe_high(id), probe_low(id), repository,   \
	    transactions, refs, time)
#define PROBE_LOCK_WAIT(id, repository, path, time)                            \
	DTRACE_PROBE5(refd, lock_wait, probe_high(id), probe_low(id),          \
	    repository, path, time)
#define PROBE_FLUSH_BEGIN(flush, commits)                                      \
	DTRACE_PROBE2(refd, flush_begin, flush, commits)
#define PROBE_FLUSH_END(flush, time, success)                                  \
	DTRACE_PROBE3(refd, flush_end, flush, time, success)
#define PROBE_PUBLISH(id, repository, transactions, refs, time)                \
	DTRACE_PROBE6(refd, publish, probe_high(id), probe_low(id),            \
	    repository, transactions, refs, time)
#define PROBE_STAGES(id, barrier, lock, flush, publish)                        \
	DTRACE_PROBE6(refd, stages, probe_high(id), probe_low(id), barrier,    \
	    lock, flush, publish)
#define PROBE_ANSWER(id, repository, updates, ok, time)                        \
	DTRACE_PROBE6(refd, answer, probe_high(id), probe_low(id), repository, \
	    updates, ok, time)

#endif
