/*
 * librefd: ref transactions over refd's socket.
 *
 * Blocking; links libc only. A struct refd belongs to one thread at a time;
 * different ones are independent. It never writes to standard output or
 * error, never exits, and ignores SIGPIPE by MSG_NOSIGNAL. Functions return 0
 * or a negative errno, and then refd_error() has a sentence for people.
 *
 *	struct refd *r = refd_new(socket_path);
 *	refd_connect(r, 1000);
 *	refd_submit(r, &txn);		several may be in flight
 *	refd_wait(r, &txn.id, -1, &ans);
 *	...
 *	refd_answer_done(&ans);
 *	refd_free(r);
 *
 * Connection lost in mid-transaction: refd_wait() connects again, waits while
 * the daemon recovers, asks by transaction id, and sends again only after
 * "never-seen" (the one answer that says nothing happened). Where the truth
 * can't be had before the deadline the answer's outcome is "unknown": never
 * taken for a failure.
 *
 * A session holds its locks between two requests:
 *
 *	session.verb = REFD_VERB_SESSION; ...
 *	refd_call(r, &session, 1000, &ans);	PREPARED: all locks are held
 *	end = session;
 *	end.verb = REFD_VERB_COMMIT;		or REFD_VERB_ABORT
 *	refd_call(r, &end, 1000, &ans);		RESULTS
 *
 * It lives no longer than its connection (and the daemon's limit for such
 * ones): its locks go, and nothing was done. That is answered by REFUSED with
 * REFD_ABORTED, when the session's own answer is waited for, or its end. A
 * session is never sent again, nor a commit on another connection. Lost after
 * all of a commit was sent, its outcome is asked for by id like a
 * transaction's; never-seen is REFD_ABORTED, too. Only the txid of a commit or
 * abort is sent; the updates of the copy are there so that each gets its
 * result.
 */
#ifndef CLIENT_REFD_H
#define CLIENT_REFD_H

#include "proto/detail.h"
#include "proto/message.h"

struct refd;

/* PATH is copied. NULL only when out of memory. */
struct refd *refd_new(const char *socket_path);
void refd_free(struct refd *r);
/* About the last call that failed; owned by R, valid until its next call. */
const char *refd_error(const struct refd *r);

/* Connects and reads hello. -ENOENT, -ECONNREFUSED: no daemon there.
 * -ETIMEDOUT. -EPROTO: not a refd, or one of another version. -EACCES: the
 * socket may not be opened. -EPERM: the daemon denies this peer. -EBUSY: it
 * turned the connection away, and may take a later one. -EHOSTDOWN: the daemon
 * cannot start, and refd_error() has its reason. Calling it when
 * connected does nothing, unless the last hello said that the daemon does not
 * serve (see refd_hello()): then it connects anew. timeout_ms < 0: for ever. */
int refd_connect(struct refd *r, int timeout_ms);
/* The last hello; NULL before the first. Its state is the caller's to look at:
 * what is submitted to a daemon that recovers or drains is refused by it. */
const struct refd_hello *refd_hello(const struct refd *r);

/* A transaction, or any other request. REQ is borrowed until its answer was
 * waited for (it may have to be sent again), or until refd_free().
 * request_id is set here; a txid of zeroes is made here. -EBUSY:
 * REFD_REQUESTS_MAX in flight. -EINVAL: does not fit the protocol. */
int refd_submit(struct refd *r, struct refd_request *req);

/*
 * Waits for REQ's answer, at most TIMEOUT_MS (< 0: for ever); others may come
 * first and are kept. On 0 *ANS is filled in (refd_answer_done() it).
 * -ETIMEDOUT: connected, and not yet; wait again, or ask by id another time.
 * Where this user, or the repository, has more at the daemon than its share, a
 * transaction or session is put off and sent again when the daemon said, until
 * its deadline: then REFUSED with REFD_BUSY.
 * When the daemon went and did not come back in time a transaction or commit
 * gets the answer of refd_answer_unknown() (without updates: REFUSED with
 * REFD_UNKNOWN), or, when the daemon can't have seen it, REFUSED with
 * REFD_BUSY; any other request -ECONNRESET. Where the daemon
 * denies this peer it is REFD_DENIED, and -EPERM, at once. -EPROTO: the
 * daemon said what this side does not understand; for a transaction the
 * outcome is unknown. -EINVAL: REQ is not in flight.
 */
int refd_wait(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);

/* Submit and wait. */
int refd_call(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);

/*
 * History, an answer at a time. REQ says what is asked for (git_dir, txid,
 * select; its verb is set here); on 0 *ANS has some of it, RECORDS with
 * perhaps no changes, or REFUSED, and REQ has moved behind that, so that the
 * same call again goes on:
 *
 *	struct refd_request req = { .git_dir = dir };
 *	do {
 *		r = refd_log(r, &req, -1, &ans);
 *		... ans.changes ... ; refd_answer_done(&ans);
 *	} while (r == 0 && more);		ans.more, as it was
 *
 * refd_watch() waits until there is something, as long as the request's
 * deadline says, and is to be called again whatever it answered. To go on
 * another time, with another REFD or after the daemon was started anew: keep
 * req.select.after and req.select.journal (has_journal is set). What was told
 * may be told again, nothing is left out but for what ans.has_gap says.
 * Errors as of refd_call(); REQ is where it was then.
 */
int refd_log(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);
int refd_watch(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);

/* The answer of one who can't wait any longer: every ref of the transaction
 * REQ is REFD_UNKNOWN. 0 or -ENOMEM. */
int refd_answer_unknown(const struct refd_request *req,
    struct refd_answer *ans);

#endif
