"""The values that a program passes to a client, and gets from a client."""
import dataclasses
import os
import secrets
import time
from typing import Optional

from .details import sentence
from .errors import Origin, Outcome, Status


def new_txid():
    """Makes a transaction id: the time, and 80 random bits."""
    return f"{time.time_ns() // 1000000:012x}{secrets.token_hex(10)}"


def process_umask():
    """The umask of this process. Unlike os.umask(), does not change it."""
    with open("/proc/self/status", encoding="ascii",
              errors="replace") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    raise OSError("/proc/self/status has no umask")


@dataclasses.dataclass(frozen=True)
class Repository:
    """A repository as the daemon needs it. Use `Repository.open`."""

    git_dir: str
    common_dev: int = 0
    common_ino: int = 0
    # "sha1" or "sha256". None: the length of the ids in the transaction tells.
    object_format: Optional[str] = None

    @classmethod
    def open(cls, git_dir, object_format=None):
        """Looks at the git-dir: a bare repository, the .git of a work tree, or
        a directory in .git/worktrees."""
        git_dir = os.path.realpath(git_dir)
        common = git_dir
        try:
            with open(os.path.join(git_dir, "commondir"), "rb") as file:
                name = os.fsdecode(file.read(4096).rstrip(b"\n"))
            common = os.path.join(git_dir, name)
        except FileNotFoundError:
            pass
        at = os.stat(common)
        return cls(git_dir, at.st_dev, at.st_ino, object_format)


@dataclasses.dataclass(frozen=True)
class Update:
    """One command of `git update-ref --stdin`. `Transaction` makes them."""

    command: str
    ref: str
    oid: Optional[str] = None
    old_oid: Optional[str] = None
    target: Optional[str] = None
    old_target: Optional[str] = None
    no_deref: bool = False


@dataclasses.dataclass
class Transaction:
    """Updates of refs in one repository, and the options of the request.

    A `Transaction` has its id from the beginning. The same object, passed to
    `transact` again, is the same transaction: it is done at most once. Names
    are text; bytes that are not UTF-8 are surrogate escapes, as in os.fsdecode.
    PROTOCOL.md, "Headers", explains the options.
    """

    repository: Repository
    atomic: bool = False
    message: Optional[str] = None
    committer: Optional[str] = None
    durability: Optional[str] = None
    level: Optional[str] = None
    # Milliseconds in which the daemon must begin the commit. If None: three
    # quarters of the timeout of the call.
    deadline_ms: Optional[int] = None
    create_reflog: bool = False
    push: bool = False
    umask: Optional[int] = None  # None: of this process
    log_all_ref_updates: Optional[str] = None
    shared_repository: Optional[str] = None
    ref_lock_timeout_ms: Optional[int] = None
    packed_refs_timeout_ms: Optional[int] = None
    trace2_sid: Optional[str] = None
    identity: dict = dataclasses.field(default_factory=dict)
    # Of an earlier Transaction, perhaps in an earlier process.
    txid: Optional[str] = None
    updates: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        # True if the daemon may have this transaction.
        self.maybe_sent = self.txid is not None
        if self.txid is None:
            self.txid = new_txid()

    def _add(self, *fields, **rest):
        self.updates.append(Update(*fields, **rest))
        return self

    def update(self, ref, oid, old=None, no_deref=False):
        """Sets REF to OID. The null id as OLD: REF must not exist."""
        return self._add("update", ref, oid, old, no_deref=no_deref)

    def create(self, ref, oid, no_deref=False):
        """Makes REF, which must not exist."""
        return self._add("create", ref, oid, no_deref=no_deref)

    def delete(self, ref, old=None, no_deref=False):
        """Deletes REF."""
        return self._add("delete", ref, None, old, no_deref=no_deref)

    def verify(self, ref, old=None, no_deref=False):
        """Changes nothing. Without OLD, REF must not exist."""
        return self._add("verify", ref, None, old, no_deref=no_deref)

    def symref_update(self, ref, target, old_target=None, old=None,
                      no_deref=False):
        """Points REF to TARGET, perhaps only from OLD_TARGET, or only if REF
        is an ordinary ref with the value OLD."""
        return self._add("symref-update", ref, None, old, target, old_target,
                         no_deref)

    def symref_create(self, ref, target, no_deref=False):
        """Makes the symbolic ref REF, which must not exist."""
        return self._add("symref-create", ref, target=target,
                         no_deref=no_deref)

    def symref_delete(self, ref, old_target=None, no_deref=False):
        """Deletes the symbolic ref REF."""
        return self._add("symref-delete", ref, old_target=old_target,
                         no_deref=no_deref)

    def symref_verify(self, ref, old_target=None, no_deref=False):
        """Changes nothing. Without OLD_TARGET, REF must not exist."""
        return self._add("symref-verify", ref, old_target=old_target,
                         no_deref=no_deref)


@dataclasses.dataclass(frozen=True)
class Result:
    """The fate of one ref."""

    ref: str
    status: Status
    found: Optional[str] = None  # the value that the daemon found
    text: str = ""  # for people; empty: the usual text of the status
    detail: tuple = ()  # PROTOCOL.md, "Details"

    def __str__(self):
        why = self.text or sentence(self.detail) or self.status
        return f"{self.ref}: {why}"


@dataclasses.dataclass(frozen=True)
class Report:
    """What the daemon says about a transaction."""

    txid: str
    outcome: Outcome
    results: tuple = ()
    updates: int = 0
    token: Optional[str] = None  # "<log id>:<lsn>"

    def __bool__(self):
        raise TypeError("a report is neither true nor false; see its outcome")


@dataclasses.dataclass(frozen=True)
class Hello:
    """The first message of the daemon."""

    version: int
    software: str = ""
    state: str = ""  # recovering, serving, draining
    horizon_ms: int = 0
    pid: int = 0
    max_updates: int = 0
    max_bytes: int = 0
    progress: Optional[tuple] = None  # (done, total)
    capabilities: frozenset = frozenset()


@dataclasses.dataclass(frozen=True)
class Position:
    """A place in history: a record, or the change NUMBER of a record."""

    lsn: int
    number: int = 0


@dataclasses.dataclass(frozen=True)
class Selection:
    """The changes that `log` and `watch` return. PROTOCOL.md, "History"."""

    repository: Optional[Repository] = None
    refs: tuple = ()
    txid: Optional[str] = None
    uid: Optional[int] = None
    user: Optional[str] = None
    since_ms: Optional[int] = None
    until_ms: Optional[int] = None
    journal: Optional[str] = None
    after: Optional[Position] = None
    before: Optional[Position] = None
    limit: Optional[int] = None
    reverse: bool = False
    all: bool = False
    origin: bool = False  # the records have `origin`
    wait_ms: Optional[int] = None  # the longest wait of `watch`

    def behind(self, page):
        """The selection that continues behind PAGE."""
        end = {"before" if self.reverse else "after": page.next}
        return dataclasses.replace(self, journal=page.journal, **end)


@dataclasses.dataclass(frozen=True)
class Record:
    """Decisions for one transaction."""

    lsn: int
    time_ms: int
    uid: int
    pid: int
    txid: str
    path: str
    voids: Optional[int] = None
    # None: the daemon wrote the refs, or the selection has no `origin`.
    origin: Optional[Origin] = None
    committer: str = ""
    message: str = ""
    identity: dict = dataclasses.field(default_factory=dict)
    changes: tuple = ()


@dataclasses.dataclass(frozen=True)
class Change:
    """The fate of one ref in a record."""

    number: int
    status: Status
    ref: str
    old: Optional[str] = None
    new: Optional[str] = None
    target: Optional[str] = None
    text: str = ""
    detail: tuple = ()


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of history. `gap`: changes up to this LSN are not known any
    more."""

    journal: str
    records: tuple
    next: Position
    more: bool = False
    gap: Optional[int] = None
