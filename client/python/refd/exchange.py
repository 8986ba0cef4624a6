"""The rules of resending, without input or output.

Each function here is a generator. It yields `Call` and `Sleep`, and gets the
`Answer` of a call, or `Lost`. Both clients run these generators, so the
blocking client and the asyncio client follow the same rules:

1. Only an answer proves success or failure. A request that was written whole
   and has no answer is asked for by its id.
2. A transaction is sent again only after never-seen, the only answer that
   excludes any effect.
3. A session ends with its connection. A commit is sent again only if the first
   was refused or not sent.
"""
import contextlib
import dataclasses
import time

from . import wire
from .errors import (Aborted, BadRequest, Busy, DeadlinePassed, Denied, Error,
                     Outcome, Partial, ProtocolError, Status, Unknown,
                     Unreachable, rejected)
from .messages import Report, Result

MISFITS_MAX = 3
NAP_MIN, NAP_MAX = 0.01, 0.25
INDEX_NAP = 0.02


class Lost(Exception):
    """There will be no answer on this connection, or not in time."""

    def __init__(self, cause, sent, over=False, denied=False):
        super().__init__(cause)
        self.cause = cause
        self.sent = sent  # the daemon may have the whole request
        self.over = over  # the time of the call is over
        self.denied = denied  # the daemon denies this client


class Call:
    """A request, and the kinds of answers that fit the request."""

    def __init__(self, make, kinds, txn=None, serving=False, connection=None,
                 updates=0):
        self.make = make  # request id -> bytes
        self.kinds = kinds
        # The most results in the answer.
        self.updates = len(txn.updates) if txn else updates
        self.txn = txn  # results must fit its updates
        self.serving = serving  # wait until the daemon serves
        self.connection = connection  # no other connection will do
        self.sent = False  # the daemon may have the whole request

    def note_sent(self):
        """The daemon may have the whole request. Nothing forgets this, because
        two tasks can have the same transaction."""
        self.sent = True
        if self.txn:
            self.txn.maybe_sent = True

    def fit(self, answer):
        """The answer, with a result for every update."""
        if answer.kind not in self.kinds + ("refused",):
            raise ProtocolError(f"the answer {answer.kind} does not fit")
        if self.txn is None:
            return answer
        if answer.txid not in (self.txn.txid, None):
            raise ProtocolError("an answer about a different transaction")
        if answer.kind == "prepared" and (
                [r.ref for r in answer.results] !=
                [u.ref for u in self.txn.updates]):
            raise ProtocolError("the results do not fit the updates")
        if answer.kind == "results":
            report = _complete(self.txn.updates, answer.report)
            return dataclasses.replace(answer, report=report)
        return answer


class Post(Call):
    """A request on a connection, whose answer nobody waits for. It has results
    for at most UPDATES updates."""

    def __init__(self, make, updates):
        super().__init__(make, (), updates=updates)


class Sleep:
    """A pause in seconds, at most until the end of the call."""

    def __init__(self, seconds):
        self.seconds = seconds


def _outcome_of(results):
    ok = sum(r.status == Status.OK for r in results)
    if any(r.status == Status.UNKNOWN for r in results):
        return Outcome.UNKNOWN
    if ok == len(results):
        return Outcome.COMMITTED
    return Outcome.PARTIAL if ok else Outcome.REJECTED


def _complete(updates, report):
    """The report with a result for every update, in their order. An update
    without a result never happened. The outcome must agree with the results."""
    results, at = [], 0
    for update in updates:
        if at < len(report.results) and report.results[at].ref == update.ref:
            results.append(report.results[at])
            at += 1
        else:
            results.append(Result(update.ref, Status.ABORTED,
                                  text="the daemon stopped before its turn"))
    if at < len(report.results) or report.updates != len(updates):
        raise ProtocolError("the results do not fit the updates")
    outcome = _outcome_of(results)
    if (outcome == Outcome.COMMITTED) != (
            report.outcome == Outcome.COMMITTED):
        raise ProtocolError("the outcome does not agree with the results")
    if report.outcome == Outcome.UNKNOWN:
        outcome = Outcome.UNKNOWN
    return dataclasses.replace(report, outcome=outcome,
                               results=tuple(results))


def _verdict(report):
    """The report of a success; every other outcome is an exception."""
    if report.outcome == Outcome.COMMITTED:
        return report
    if report.outcome == Outcome.UNKNOWN:
        raise Unknown(report.txid, "the daemon does not know", report.results)
    if report.outcome == Outcome.PARTIAL:
        raise Partial(report)
    # In an atomic transaction, aborted is never the cause.
    causes = [r for r in report.results if r.status != Status.ABORTED]
    cause = (causes or report.results)[0]
    raise rejected(cause.status, str(cause), report.results)


def _refused(txid, answer):
    if answer.status == Status.UNKNOWN:
        return Unknown(txid, answer.text or "the daemon does not know")
    retry = answer.retry_after_ms
    return rejected(answer.status, answer.text,
                    retry_after=retry / 1000 if retry else None)


@contextlib.contextmanager
def named(txn):
    """Tells the id if the caller, who has no TXN, is interrupted."""
    try:
        yield txn
    except Error:
        raise
    except BaseException as error:
        if txn.maybe_sent:
            error.add_note("the transaction may have been done: "
                           f"refd query {txn.txid}")
        raise


class _Tries:
    """Pauses that become longer, and the failures so far."""

    def __init__(self):
        self._nap = NAP_MIN
        self._misfits = 0
        self._why = None

    def nap(self):
        nap = self._nap
        self._nap = min(2 * nap, NAP_MAX)
        return Sleep(nap)

    def is_hopeless(self, lost):
        """Notes a failure. If only the time is over, the failure before has
        the better reason."""
        if lost.over and self._why:
            lost.cause = self._why
        self._why = lost.cause
        if isinstance(lost.cause, ProtocolError) and not lost.over:
            self._misfits += 1
            return not lost.sent or self._misfits >= MISFITS_MAX
        return lost.over or lost.denied


class _Clock:
    """The time of the daemon for a transaction."""

    def __init__(self, txn, timeout):
        if not 1 <= (txn.deadline_ms or 1) <= wire.DEADLINE_MAX_MS:
            raise BadRequest(f"a deadline of {txn.deadline_ms} ms")
        self._end = time.monotonic() + (
            timeout * 3 / 4 if txn.deadline_ms is None
            else txn.deadline_ms / 1000)

    def left(self):
        return self._end - time.monotonic()

    def left_ms(self):
        return min(max(int(self.left() * 1000), 1), wire.DEADLINE_MAX_MS)


def _send(verb, txn, clock, kinds):
    return Call(lambda request_id: wire.transaction(
        verb, request_id, txn, clock.left_ms()), kinds, txn, serving=True)


def _query(txn):
    return Call(lambda request_id: wire.simple("query", request_id, txn.txid),
                ("results", "pending", "never-seen", "expired"), txn,
                serving=True)


def _unsent(lost):
    """The exception when the daemon cannot have the request."""
    if isinstance(lost.cause, ProtocolError):
        return lost.cause
    kind = Denied if lost.denied else Busy
    return kind(f"nothing was sent: {lost.cause}")


def transact(txn, timeout):
    """Sends a transaction, and returns the report of a success."""
    clock, tries = _Clock(txn, timeout), _Tries()
    ask = txn.maybe_sent
    while True:
        try:
            answer = yield (_query(txn) if ask else
                            _send("transaction", txn, clock, ("results",)))
        except Lost as lost:
            ask = ask or lost.sent
            if tries.is_hopeless(lost):
                # A daemon that denies this client has read nothing.
                if ask or (txn.maybe_sent and not lost.denied):
                    raise Unknown(txn.txid, str(lost.cause)) from lost.cause
                raise _unsent(lost) from lost.cause
            yield tries.nap()
            continue
        if answer.kind == "results":
            return _verdict(answer.report)
        if answer.kind == "expired":
            raise Unknown(txn.txid, "the id is too old")
        if answer.kind == "never-seen":
            ask = False
        elif answer.kind == "pending":
            yield tries.nap()
        elif ask and answer.status == Status.BUSY:
            yield tries.nap()
        elif ask:
            raise Unknown(txn.txid, answer.text or str(answer.status))
        elif (answer.retry_after_ms and
              answer.retry_after_ms / 1000 < clock.left()):
            yield Sleep(answer.retry_after_ms / 1000)
        else:
            raise _refused(txn.txid, answer)


def prepare(txn, timeout):
    """Starts a session. Returns the answer `prepared` and its connection.
    If an earlier request had the id, asks what became of it first."""
    clock, tries = _Clock(txn, timeout), _Tries()
    known = ask = txn.maybe_sent
    cancel = Post(lambda request_id: wire.simple("cancel", request_id,
                                                 txn.txid), len(txn.updates))
    while True:
        call = _query(txn) if ask else _send("session", txn, clock,
                                             ("results", "prepared"))
        try:
            answer = yield call
        except Lost as lost:
            is_hopeless = tries.is_hopeless(lost)
            if lost.sent and lost.over and not ask:
                yield cancel
            if known and is_hopeless:
                raise Unknown(txn.txid, str(lost.cause)) from lost.cause
            if lost.sent and lost.over:
                raise DeadlinePassed("the session was not prepared in time")
            if lost.sent and not known:
                raise Aborted("the session ended with its connection") \
                    from lost.cause
            if is_hopeless:
                raise _unsent(lost) from lost.cause
            ask = known
            yield tries.nap()
            continue
        except Error:
            raise
        except BaseException:  # the caller was interrupted
            if not ask:
                yield cancel
            raise
        if answer.kind == "prepared":
            return answer, call.connection
        if answer.kind == "never-seen":
            known = ask = False
        elif answer.kind == "pending":  # perhaps a session that is prepared
            ask = False
        elif answer.kind == "expired":
            raise Unknown(txn.txid, "the id is too old")
        elif known and (not ask or answer.status == Status.BUSY):
            # Without a lock, only the answer to a query is about the id.
            ask = True
            yield tries.nap()
        elif answer.kind == "results":
            _verdict(answer.report)
            raise Unknown(txn.txid, "the id was committed before",
                          answer.report.results)
        elif known:
            raise Unknown(txn.txid, answer.text or str(answer.status))
        elif (answer.retry_after_ms and
                answer.retry_after_ms / 1000 < clock.left()):
            yield Sleep(answer.retry_after_ms / 1000)
        else:
            raise _refused(txn.txid, answer)


def commit(session):
    """Commits a session. If the daemon may have a commit already, asks."""
    txn, connection = session.txn, session._connection
    tries, ask = _Tries(), session._is_open
    session._is_open = True
    kinds = ("results", "pending", "never-seen", "expired")
    gone = Aborted("the session ended with its connection")
    while True:
        call = _query(txn) if ask else Call(
            lambda request_id: wire.simple("commit", request_id, txn.txid),
            kinds, txn, connection=connection)
        try:
            answer = yield call
        except Lost as lost:
            if not ask and not lost.sent:
                session._is_open = False
                # If only the time is over, the session is still prepared.
                raise (_unsent(lost) if lost.over else gone) from lost.cause
            ask = True
            if tries.is_hopeless(lost):
                raise Unknown(txn.txid, str(lost.cause)) from lost.cause
            yield tries.nap()
            continue
        except BaseException:  # the caller was interrupted
            session._is_open = ask or call.sent
            raise
        if answer.kind == "results":
            return _verdict(answer.report)
        if answer.kind == "never-seen":
            raise gone
        if answer.kind == "expired":
            raise Unknown(txn.txid, "the id is too old")
        if answer.kind == "pending" or (ask and
                                        answer.status == Status.BUSY):
            ask = True
            yield tries.nap()
        elif ask:
            raise Unknown(txn.txid, answer.text or str(answer.status))
        else:
            # The refused commit did nothing, so another one may be sent.
            session._is_open = answer.status == Status.UNKNOWN
            raise _refused(txn.txid, answer)


def abort(session):
    """Ends a session without its changes. Returns a report."""
    txn, is_open = session.txn, session._is_open
    gone = Report(txn.txid, Outcome.REJECTED, tuple(
        Result(u.ref, Status.ABORTED) for u in txn.updates), len(txn.updates))
    try:
        answer = yield Call(
            lambda request_id: wire.simple("abort", request_id, txn.txid),
            ("results", "pending", "never-seen", "expired"), txn,
            connection=session._connection)
    except Lost as lost:
        if is_open:
            raise Unknown(txn.txid, str(lost.cause)) from lost.cause
        if lost.over:
            raise Unreachable(str(lost.cause)) from lost.cause
        return gone
    if answer.kind == "refused":
        if is_open:
            raise Unknown(txn.txid, answer.text or str(answer.status))
        raise _refused(txn.txid, answer)
    if answer.kind in ("pending", "expired"):
        raise Unknown(txn.txid, f"the daemon answers {answer.kind}")
    return gone if answer.kind == "never-seen" else answer.report


def ask(make, *kinds, updates=0, once=False):
    """A question, which may be asked again unless ONCE. Returns the answer."""
    tries = _Tries()
    while True:
        try:
            answer = yield Call(make, kinds, updates=updates)
        except Lost as lost:
            if isinstance(lost.cause, ProtocolError):
                raise lost.cause
            if once and lost.sent:
                raise Unreachable("no answer, and not sent again: "
                                  f"{lost.cause}") from lost.cause
            if tries.is_hopeless(lost):
                kind = Denied if lost.denied else Unreachable
                raise kind(str(lost.cause)) from lost.cause
            yield tries.nap()
            continue
        if answer.kind == "refused":
            if answer.status == Status.UNKNOWN:
                raise ProtocolError("a question was refused with unknown")
            raise _refused(answer.txid, answer)
        return answer


def ask_about(verb, txid):
    """`query` or `cancel`. Returns a report of any outcome."""
    answer = yield from ask(
        lambda request_id: wire.simple(verb, request_id, txid),
        "results", "pending", "never-seen", "expired",
        updates=wire.UPDATES_MAX)
    if answer.txid != txid:
        raise ProtocolError("an answer about a different transaction")
    return answer.report


def ask_pairs(verb):
    """Returns the pairs of `status` and its like."""
    # If a daemon ends while it is drained, the next one must not be drained.
    answer = yield from ask(lambda request_id: wire.simple(verb, request_id),
                            "pairs", once=verb == "drain")
    return answer.pairs


def ask_for_repository(verb, repository):
    """Returns the pairs of `pack` or `look`."""
    answer = yield from ask(
        lambda request_id: wire.for_repository(verb, request_id, repository),
        "pairs")
    return answer.pairs


def ask_history(verb, select):
    """Returns a page of `log` or `watch`."""
    asked = select
    # Changes from now on: if the connection is lost, the same request would
    # mean a later moment.
    if verb == "watch" and select.after is None:
        asked = dataclasses.replace(select, wait_ms=1)
    answer = yield from ask(
        lambda request_id: wire.history(verb, request_id, asked), "records")
    page = answer.page
    # The daemon is still making its index of these records.
    if page.more and select.behind(page) == select:
        yield Sleep(INDEX_NAP)
    return page
