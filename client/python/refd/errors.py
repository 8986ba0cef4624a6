"""Statuses, outcomes, and the exceptions of the package.

Every exception of a transaction gives exactly one of three promises:

- `Rejected`: nothing of the transaction was done. Each status has a subclass
  (`Stale`, `Locked`, ...).
- `Partial`: the results tell which refs were updated. Only a transaction that
  is not atomic can end like this.
- `Unknown`: the transaction may have been done, or may still be done. `Unknown`
  is not a subclass of `Rejected`.
"""
import enum


class Status(enum.StrEnum):
    """The fate of one ref, or the reason of a refusal."""

    OK = "ok"
    STALE = "stale"
    EXISTS = "exists"
    MISSING = "missing"
    LOCKED = "locked"
    CONFLICT = "conflict"
    BADNAME = "badname"
    NOOBJECT = "noobject"
    NOTCOMMIT = "notcommit"
    DENIED = "denied"
    HOOK_DECLINED = "hook-declined"
    NOSPACE = "nospace"
    IO = "io"
    BUSY = "busy"
    DEADLINE = "deadline"
    ABORTED = "aborted"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"
    BROKEN = "broken"
    DUPLICATE = "duplicate"
    NOREPO = "norepo"
    BADREQUEST = "badrequest"
    LIMIT = "limit"
    NOTSYMREF = "notsymref"

    @property
    def may_retry(self):
        """The same request may succeed later without other action."""
        return self in (Status.LOCKED, Status.NOSPACE, Status.IO, Status.BUSY,
                        Status.DEADLINE)


class Origin(enum.StrEnum):
    """Who wrote the refs of a record, if not the daemon."""

    GATE = "gate"  # git, which told the daemon
    # Another writer. The daemon found the change later, and values in between
    # may be missing.
    SEEN = "seen"


class Outcome(enum.StrEnum):
    """The state of a whole transaction."""

    COMMITTED = "committed"  # every ref is ok
    PARTIAL = "partial"  # some refs are ok
    REJECTED = "rejected"  # nothing was done
    UNKNOWN = "unknown"  # the fate of at least one ref is not known
    PENDING = "pending"  # not decided yet
    NEVER_SEEN = "never-seen"  # the daemon does not know the id
    EXPIRED = "expired"  # the id is too old, and the outcome is lost


class Error(Exception):
    """The base of all exceptions of this package."""


class ProtocolError(Error):
    """The peer's message is not a message of this version of the protocol.

    A transaction that may have been sent is `Unknown` instead.
    """


class Unreachable(Error):
    """The daemon gave no answer in time. For requests that change no ref."""


class Unknown(Error):
    """Neither success nor failure: the transaction may have been done, may
    still be done, or may never be done.

    Call `Client.transact` again with the same `Transaction`, or ask with
    `Client.query`. Both are safe: the daemon does a transaction at most once.
    """

    def __init__(self, txid, text, results=()):
        super().__init__(f"the outcome of transaction {txid} is unknown: "
                         f"{text}")
        self.txid = txid
        self.results = results


class Partial(Error):
    """Some refs were updated, others were not. `results` tells which."""

    def __init__(self, report):
        failed = [r for r in report.results if r.status != Status.OK]
        super().__init__(f"{len(failed)} of {len(report.results)} refs "
                         f"failed; {failed[0]}")
        self.report = report
        self.results = report.results


class Rejected(Error):
    """Nothing of the request was done. The subclass names the status."""

    status = None

    def __init__(self, text, results=(), retry_after=None):
        super().__init__(text)
        self.results = results  # empty if the request was refused as a whole
        self.retry_after = retry_after  # seconds, or None

    @property
    def may_retry(self):
        """The same request may succeed later without other action."""
        return self.status.may_retry


class Stale(Rejected):
    """A ref is at a different value."""

    status = Status.STALE


class Exists(Rejected):
    """A ref exists already."""

    status = Status.EXISTS


class Missing(Rejected):
    """A ref does not exist."""

    status = Status.MISSING


class Locked(Rejected):
    """Another writer holds the lock of a ref."""

    status = Status.LOCKED


class Conflict(Rejected):
    """The name conflicts with another ref, as a/b and a do."""

    status = Status.CONFLICT


class BadName(Rejected):
    """Git does not accept the name of a ref."""

    status = Status.BADNAME


class NoObject(Rejected):
    """The repository lacks the object."""

    status = Status.NOOBJECT


class NotCommit(Rejected):
    """A branch must point to a commit."""

    status = Status.NOTCOMMIT


class Denied(Rejected):
    """The client may not do this, or may not use the daemon."""

    status = Status.DENIED


class HookDeclined(Rejected):
    """A hook of the repository declined the update."""

    status = Status.HOOK_DECLINED


class NoSpace(Rejected):
    """The disk is full."""

    status = Status.NOSPACE


class IoError(Rejected):
    """A disk of the daemon failed."""

    status = Status.IO


class Busy(Rejected):
    """The daemon is too busy, or was not reached before the time was over."""

    status = Status.BUSY


class DeadlinePassed(Rejected):
    """The deadline passed before the transaction's turn."""

    status = Status.DEADLINE


class Aborted(Rejected):
    """A session was aborted, or ended with its connection."""

    status = Status.ABORTED


class Unsupported(Rejected):
    """The daemon does not support this repository or level."""

    status = Status.UNSUPPORTED


class BrokenRef(Rejected):
    """A ref cannot be read."""

    status = Status.BROKEN


class Duplicate(Rejected):
    """The transaction names a ref twice."""

    status = Status.DUPLICATE


class NoRepository(Rejected):
    """The path is not a repository that the daemon may serve."""

    status = Status.NOREPO


class BadRequest(Rejected):
    """The request does not fit the protocol."""

    status = Status.BADREQUEST


class LimitPassed(Rejected):
    """The request is larger than a limit."""

    status = Status.LIMIT


class NotSymref(Rejected):
    """The ref is not a symbolic ref."""

    status = Status.NOTSYMREF


_BY_STATUS = {cls.status: cls for cls in Rejected.__subclasses__()}


def rejected(status, text="", results=(), retry_after=None):
    """The exception of STATUS, which is neither ok nor unknown."""
    return _BY_STATUS[status](text or str(status), results, retry_after)


__all__ = [name for name, what in globals().items()
           if isinstance(what, type) and what.__module__ == __name__
           and name[0] != "_"]
