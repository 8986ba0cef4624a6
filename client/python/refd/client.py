"""The blocking client."""
import contextlib
import math
import os
import select
import socket
import time

from . import exchange, wire
from .errors import Error, ProtocolError, Status, Unreachable
from .exchange import Lost, Post, Sleep
from .messages import Selection, Transaction

TIMEOUT = 40.0


def _is_own(path):
    """su(1) leaves the directory of the calling user in the environment."""
    try:
        return os.lstat(path).st_uid in (0, os.geteuid())
    except OSError:
        return False


def default_socket():
    """REFD_SOCKET, or a daemon of this user, or the daemon of the system."""
    if os.environ.get("REFD_SOCKET"):
        return os.environ["REFD_SOCKET"]
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), "refd.sock")
    if os.path.isabs(own) and _is_own(os.path.dirname(own)) and _is_own(own):
        return own
    return "/run/refd/refd.sock"


class RequestIds:
    """The ids of the requests in flight on one connection."""

    def __init__(self):
        self._last = 0
        self.abandoned = set()  # nobody waits for the answer any more

    def new(self):
        self._last = self._last % wire.U32 + 1
        return self._last


class Connection:
    """A connected socket. After any failure the connection is closed."""

    def __init__(self, path, deadline):
        self.ids = RequestIds()
        self.refusal = None
        self._messages = wire.Messages()
        self._ready = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._limit(deadline)
            self._socket.connect(path)
            self.hello = wire.hello(self._receive(deadline))
        except BaseException:
            self.close()
            raise

    def close(self):
        self._socket.close()

    @property
    def is_open(self):
        return self._socket.fileno() >= 0

    def _limit(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is over")
        self._socket.settimeout(left)

    def _receive(self, deadline):
        """The next message."""
        while not self._ready:
            self._limit(deadline)
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionResetError("the server hung up")
            self._ready.extend(self._messages.feed(data))
        return self._ready.pop(0)

    def expect(self, updates):
        """A request with UPDATES updates comes next."""
        self._messages.expect(updates, alone=not self.ids.abandoned)

    def send(self, call, data, deadline):
        """Writes DATA. `call.sent` tells whether all of it may be out. A server
        that has hung up may have sent the reason before: the caller still
        reads."""
        rest = memoryview(data)
        room = select.poll()
        room.register(self._socket, select.POLLOUT)
        self._socket.setblocking(False)
        while rest:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the time is over")
            if not room.poll(math.ceil(min(left, 60) * 1000)):
                continue
            # The handler of a signal can raise anything behind send(2), even
            # TimeoutError. So only errors of send(2) itself say "not sent".
            call.sent = True
            try:
                rest = rest[self._socket.send(rest):]
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                # A handler may raise the same, but then nobody has hung up.
                ends = select.POLLHUP | select.POLLERR
                call.sent = not any(event & ends for _, event in room.poll(0))
                return
            call.sent = not rest
        call.note_sent()

    def answer(self, request_id, deadline):
        """The answer to a request; notes a refusal of the connection."""
        while True:
            answer = wire.answer(self._receive(deadline))
            if answer.id == request_id:
                return answer
            if answer.id == 0:
                self.refusal = answer
            elif answer.id in self.ids.abandoned:
                self.ids.abandoned.discard(answer.id)
            else:
                raise ProtocolError("an answer that nobody asked for")


def lost_with(cause, refusal, sent, over=False):
    """The `Lost` of a connection that ended with CAUSE."""
    if refusal is None:
        return Lost(cause, sent, over)
    denied = refusal.status == Status.DENIED
    return Lost(Unreachable(f"{refusal.status}: {refusal.text}"),
                sent and not denied, over, denied)


class Client:
    """A connection to the daemon, made again when it is lost.

    One thread may use a client at a time. A call returns only after success;
    the exceptions are in `refd.errors`. TIMEOUT is in seconds, for each call.
    """

    def __init__(self, path=None, timeout=TIMEOUT):
        self.path = path or default_socket()
        self.timeout = timeout
        self._connection = None
        try:
            self._connection = self._open(time.monotonic() + timeout)
        except Lost as lost:
            if isinstance(lost.cause, Error):
                raise lost.cause
            raise Unreachable(str(lost)) from lost.cause

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connection. The daemon aborts the open sessions."""
        if self._connection:
            self._connection.close()

    @property
    def hello(self):
        """The daemon's last first message."""
        return self._connection.hello

    # ---- running an exchange ----

    def _open(self, deadline):
        try:
            return Connection(self.path, deadline)
        except (OSError, ProtocolError) as cause:
            raise Lost(cause if isinstance(cause, ProtocolError) else
                       Unreachable(f"{self.path}: {cause}"), False,
                       time.monotonic() >= deadline) from cause

    def _connected(self, call, deadline):
        if call.connection:
            if not call.connection.is_open:
                raise Lost(Unreachable("the connection is lost"), False)
            return call.connection
        now = self._connection
        if not now.is_open or (call.serving and now.hello.state != "serving"):
            now.close()
            now = self._connection = self._open(deadline)
        if call.serving and now.hello.state != "serving":
            now.close()
            raise Lost(Unreachable(f"the daemon is {now.hello.state}"), False)
        if len(now.ids.abandoned) >= wire.REQUESTS_MAX - 1:
            now.close()
            raise Lost(Unreachable("the daemon leaves requests without an "
                                   "answer"), False)
        return now

    def _call(self, call, deadline):
        connection = self._connected(call, deadline)
        request_id = connection.ids.new()
        data = call.make(request_id)
        connection.expect(call.updates)
        is_whole = False
        try:
            connection.send(call, data, deadline)
            is_whole = True
            answer = call.fit(connection.answer(request_id, deadline))
        except TimeoutError as cause:
            # Before the end of the time it is the handler's of a signal, as
            # below.
            if is_whole and call.sent and time.monotonic() >= deadline:
                connection.ids.abandoned.add(request_id)
            else:
                connection.close()
            raise Lost(cause, call.sent, over=True) from cause
        except (OSError, ProtocolError) as cause:
            connection.close()
            raise lost_with(cause, connection.refusal, call.sent) from cause
        except BaseException:  # a signal: half of a message may be unread
            connection.close()
            raise
        finally:
            if call.sent:
                call.note_sent()
        call.connection = connection
        return answer

    def _do(self, action, deadline):
        if isinstance(action, Sleep):
            time.sleep(max(0, min(action.seconds,
                                  deadline - time.monotonic())))
            return None
        if isinstance(action, Post):
            self._post(action)
            return None
        return self._call(action, deadline)

    def _post(self, action):
        connection = self._connection
        if connection.is_open:
            request_id = connection.ids.new()
            connection.expect(action.updates)
            connection.ids.abandoned.add(request_id)
            try:
                connection.send(action, action.make(request_id),
                                time.monotonic() + 1)
            except BaseException as error:
                connection.close()  # half of the request may be out
                if not isinstance(error, OSError):
                    raise

    def _run(self, steps, timeout=None):
        deadline = time.monotonic() + (timeout or self.timeout)
        try:
            action = next(steps)
            while True:
                try:
                    got = self._do(action, deadline)
                except BaseException as error:  # for the rules to decide
                    action = steps.throw(error)
                else:
                    action = steps.send(got)
        except StopIteration as end:
            return end.value

    # ---- requests ----

    def transact(self, txn, timeout=None):
        """Does a transaction, and returns a `Report` if all refs are ok."""
        return self._run(exchange.transact(txn, timeout or self.timeout),
                         timeout)

    def _named(self, txn):
        with exchange.named(txn):
            return self.transact(txn)

    def update(self, repository, ref, oid, old=None, **options):
        """Sets one ref, perhaps only from the value OLD. Of this and the next
        two: pass `txid=` to know the id after an interruption. Without it,
        the exception has a note with the id."""
        return self._named(
            Transaction(repository, **options).update(ref, oid, old))

    def create(self, repository, ref, oid, **options):
        """Makes one ref."""
        return self._named(
            Transaction(repository, **options).create(ref, oid))

    def delete(self, repository, ref, old=None, **options):
        """Deletes one ref, perhaps only with the value OLD."""
        return self._named(
            Transaction(repository, **options).delete(ref, old))

    def session(self, txn, timeout=None):
        """Locks all refs of a transaction, and returns a `Session`."""
        answer, connection = self._run(
            exchange.prepare(txn, timeout or self.timeout), timeout)
        return Session(self, txn, connection, answer)

    def query(self, txid, timeout=None):
        """The `Report` about a transaction or session, of any outcome."""
        return self._run(exchange.ask_about("query", txid), timeout)

    def cancel(self, txid, timeout=None):
        """Gives up a waiting transaction. See the outcome of the report."""
        return self._run(exchange.ask_about("cancel", txid), timeout)

    def ping(self, timeout=None):
        """Checks that the daemon answers."""
        self._run(exchange.ask(
            lambda request_id: wire.simple("ping", request_id), "pong"),
            timeout)

    def pairs(self, verb, timeout=None):
        """The (key, value) pairs of a verb without headers, as status or
        stats. The verbs of administrators, as drain, need their socket. A drain
        is not sent again: without an answer, it may have ended or may go on."""
        return self._run(exchange.ask_pairs(verb), timeout)

    def pack(self, repository, timeout=None):
        """Moves the loose refs of a `Repository` to packed-refs. The pairs have
        the numbers of refs that were packed, and that were left."""
        return self._run(exchange.ask_for_repository("pack", repository),
                         timeout)

    def look(self, repository, timeout=None):
        """Looks in a `Repository` for changes by writers who did not tell the
        daemon, and records them. The pairs have the numbers of changes that
        were recorded, and that are left for a later look."""
        return self._run(exchange.ask_for_repository("look", repository),
                         timeout)

    def log(self, select=Selection(), timeout=None):
        """One `Page` of past changes. `select.behind(page)` continues."""
        return self._run(exchange.ask_history("log", select), timeout)

    def watch(self, select=Selection(), timeout=None):
        """Waits for changes, and returns a `Page`, which may be empty.

        Without `select.after` returns at once: `select.behind(page)` has all
        changes behind this moment.
        """
        return self._run(exchange.ask_history("watch", select), timeout)

    def changes(self, select=Selection()):
        """Yields all past changes as (record, change)."""
        more = True
        while more:
            page = self.log(select)
            for record in page.records:
                for change in record.changes:
                    yield record, change
            select, more = select.behind(page), page.more

    def follow(self, select=Selection()):
        """Yields pages of new changes, without an end."""
        while True:
            page = self.watch(select)
            select = select.behind(page)
            yield page


class Session:
    """A prepared session, which holds the locks of its refs.

    Call `commit` or `abort`. As a context manager, a session without a commit
    is aborted. `results` tells the refs that are locked.
    """

    def __init__(self, client, txn, connection, answer):
        self.txn = txn
        self.results = answer.results
        self.rewrites_packed = answer.rewrites_packed
        self._client = client
        self._connection = connection
        self._ended = False
        self._is_open = False  # the daemon may have a commit

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self._ended:
            with contextlib.suppress(Error):
                self.abort()

    def commit(self, timeout=None):
        """Publishes the refs. Returns a `Report` if all refs are ok. After
        `Unknown`, asks what became of the first commit."""
        report = self._client._run(exchange.commit(self), timeout)
        self._ended = True
        return report

    def abort(self, timeout=None):
        """Releases the locks. Returns a `Report`; its outcome is not rejected
        only if the session was committed before."""
        report = self._client._run(exchange.abort(self), timeout)
        self._ended = True
        return report


def connect(path=None, timeout=TIMEOUT):
    """Connects to the daemon. PATH: see `default_socket`."""
    return Client(path, timeout)
