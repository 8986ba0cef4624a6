/*
 * librefd: ref transactions over refd's socket.
 *
 * Blocking; links libc only. A struct refd belongs to one thread at a time;
 * several of them are independent. The library never writes to standard output
 * or error, never exits, and avoids SIGPIPE by MSG_NOSIGNAL. Functions return 0
 * or a negative errno; refd_error() then has a sentence for people.
 *
 *	struct refd *r = refd_new(socket_path);
 *	refd_connect(r, 1000);
 *	refd_submit(r, &txn);		several may be in flight
 *	refd_wait(r, &txn, -1, &ans);
 *	...
 *	refd_answer_done(&ans);
 *	refd_free(r);
 *
 * If the connection is lost during a transaction, refd_wait() connects again,
 * waits while the daemon recovers, and asks by the transaction id. Only the
 * answer "never-seen" excludes any effect, so the transaction is sent again
 * only after this answer. If the outcome can't be found before the deadline,
 * the answer's outcome is "unknown", which must never be treated as a failure.
 *
 * After "unknown", or an error of refd_wait() or refd_call(), the same request
 * may be submitted again, also to another struct refd. The library must then
 * ask for the outcome first, and remembers this in maybe_sent of the request. A
 * program that fills in the request again after a restart, with the old txid,
 * sets maybe_sent itself.
 *
 * A session holds its locks between two requests:
 *
 *	session.verb = REFD_VERB_SESSION; ...
 *	refd_call(r, &session, 1000, &ans);	PREPARED: all locks are held
 *	end = session;
 *	end.verb = REFD_VERB_COMMIT;		or REFD_VERB_ABORT
 *	refd_call(r, &end, 1000, &ans);		RESULTS
 *
 * A session does not outlive its connection, or the daemon's limit for
 * sessions: its locks are removed, and nothing was done. The answer to the
 * session or to its end is then REFUSED with REFD_ABORTED. A session is never
 * sent again, and neither is a commit on another connection.
 *
 * If the connection is lost after all of a commit was sent, the library asks
 * for the outcome by the id, as for a transaction. If the daemon has never seen
 * the id, the answer is REFUSED with REFD_ABORTED here, too. The library also
 * asks, and does not send, if a commit for the same session was sent before, or
 * if the session is not prepared on this connection. In both cases an earlier
 * commit may have arrived.
 *
 * A commit that the daemon REFUSED did nothing, unless the status is
 * REFD_UNKNOWN. So the session is still prepared, and the program may send a
 * commit or abort again. But if the program had submitted a second end beside
 * the refused commit, this second end only asks for the outcome, so it waits
 * until the session is over.
 *
 * For a commit or abort, only the txid is sent. The updates in the copy of the
 * session only serve to return a result for each of them.
 */
#ifndef CLIENT_REFD_H
#define CLIENT_REFD_H

#include "proto/detail.h"
#include "proto/message.h"

struct refd;

/* PATH is copied. Returns NULL only when out of memory. */
struct refd *refd_new(const char *socket_path);
void refd_free(struct refd *r);
/* Describes the last failed call. R owns the text, which is valid until its
 * next call. */
const char *refd_error(const struct refd *r);

/*
 * Call this before the first connection if a repository has named the socket:
 * whoever writes to the repository could otherwise put a daemon of their own in
 * the place of the true one. OWNER is the user who owns the repository. R then
 * connects only if the socket and the process behind it belong to OWNER, to
 * root or to this process's user. Any other socket is -EACCES.
 */
void refd_accept_only(struct refd *r, uint32_t owner);

/* Connects and reads hello. Does nothing if R is connected and the last hello
 * said that the daemon serves. timeout_ms < 0: no limit. -ENOENT,
 * -ECONNREFUSED: no daemon. -ETIMEDOUT. -EPROTO: not a refd, or a refd with
 * another version of the protocol. -EACCES: the socket may not be opened, or
 * see refd_accept_only(). -EPERM: the daemon denies this peer. -EBUSY: the
 * connection was turned away; a later attempt may succeed. -EHOSTDOWN: the
 * daemon cannot start; refd_error() has the daemon's reason. */
int refd_connect(struct refd *r, int timeout_ms);
/* The last hello; NULL before the first. A daemon that recovers or drains
 * refuses new transactions, so the caller should check the state. */
const struct refd_hello *refd_hello(const struct refd *r);

/* Begins a transaction, or any other request. REQ is borrowed until refd_wait()
 * returns its answer, because the request may have to be sent again, or until
 * refd_free(). Sets request_id, and makes a txid if it is all zeroes. -EBUSY:
 * REFD_REQUESTS_MAX requests are in flight. -EINVAL: the request does not fit
 * the protocol. After an error, REQ is not in flight, and this call sent
 * nothing; if maybe_sent is set, the outcome is as unknown as before. */
int refd_submit(struct refd *r, struct refd_request *req);

/*
 * Waits for REQ's answer, at most TIMEOUT_MS (< 0: no limit). Answers to other
 * requests may come first and are kept. If the result is 0, *ANS is filled in;
 * free with refd_answer_done().
 *
 * If this user or the repository has more in the daemon than its share, the
 * library sends a transaction or session again at the time that the daemon
 * gave, until the deadline of the request. After that the answer is REFUSED
 * with REFD_BUSY.
 *
 * If the daemon went away and did not come back in time, a transaction or the
 * end of a session gets the answer of refd_answer_unknown() (without updates:
 * REFUSED with REFD_UNKNOWN). If the daemon can't have seen the request, the
 * answer is REFUSED with REFD_BUSY. Other requests return -ECONNRESET. If the
 * daemon denies this peer, the status is REFD_DENIED, and the error -EPERM, at
 * once.
 *
 * A request that the daemon may have done never looks like a failure. So if
 * memory is lacking, or another request does not fit the protocol, the answer
 * is unknown, as for a daemon that went away. If there is no memory for
 * results, the answer is REFUSED with REFD_UNKNOWN.
 *
 * -ETIMEDOUT: connected, but no answer yet; wait again, or ask by the id later.
 * -EPROTO: the daemon's answer can't be understood; the outcome of a
 * transaction is unknown.
 * -EINVAL: REQ is not in flight, or does not fit the protocol and was not sent.
 * -ENOMEM: the daemon does not have REQ, or the session ended with its
 * connection.
 */
int refd_wait(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);

/*
 * Submits and waits. Afterwards REQ is not in flight, whatever the result, so
 * REQ may be a local variable. If this returns -ETIMEDOUT, R has hung up, and a
 * prepared session has ended: call again with the same REQ, or ask by the id.
 * To wait again for the same request, call refd_submit() and refd_wait().
 */
int refd_call(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);

/*
 * Reads history, one answer per call. REQ selects the changes (git_dir, txid,
 * select); these functions set its verb. If the result is 0, *ANS is RECORDS,
 * perhaps without changes, or REFUSED, and REQ has moved behind this answer. So
 * the next call continues:
 *
 *	struct refd_request req = { .git_dir = dir };
 *	do {
 *		err = refd_log(r, &req, -1, &ans);
 *		if (err < 0)
 *			break;
 *		more = ans.more;
 *		... ans.changes ...
 *		refd_answer_done(&ans);
 *	} while (more);
 *
 * refd_watch() waits for changes until the request's deadline, and may be
 * called again after any answer. Without req.select.after the first call
 * returns at once, and later calls have all changes behind that moment. To
 * continue later, with another REFD or after a restart of the daemon, keep
 * req.select.after and req.select.journal (has_journal is set). Changes may be
 * returned again, but none is left out, except those in ans.has_gap. Errors as
 * in refd_call(); REQ then stays unchanged.
 */
int refd_log(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);
int refd_watch(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);

/* Makes the answer for a caller that can't wait any longer: every ref of the
 * transaction REQ is REFD_UNKNOWN. An answer needs an id, so a REQ that was
 * never in flight must have a request_id above 0. Returns 0 or -ENOMEM. */
int refd_answer_unknown(const struct refd_request *req,
    struct refd_answer *ans);

#endif
