"""The asyncio client: many requests at once on one connection.

The methods are those of `refd.Client`, as coroutines. If the task of a
transaction is cancelled, the transaction may still be done: keep the
`Transaction`, and pass it to `transact` again or ask for its `txid`. Of
`update`, `create` and `delete`, the exception has a note with the id. Pass
`txid=new_txid()` to know it.
"""
import asyncio
import contextlib
import time

from . import exchange, wire
from .client import TIMEOUT, RequestIds, default_socket, lost_with
from .errors import Error, ProtocolError, Unreachable
from .exchange import Lost, Post, Sleep
from .messages import Selection, Transaction


class _Connection:
    @classmethod
    async def open(cls, path):
        self = cls()
        self._reader, self._writer = await asyncio.open_unix_connection(path)
        self._messages = wire.Messages()
        self._ready = []
        self._room = asyncio.Event()
        self.ids = RequestIds()
        self.refusal = None
        self.waiting = {}
        self.is_open = True
        try:
            self.hello = wire.hello(await self._receive())
        except BaseException:
            self._writer.close()
            raise
        self._task = asyncio.create_task(self._read())
        return self

    async def _receive(self):
        while not self._ready:
            data = await self._reader.read(1 << 16)
            if not data:
                raise ConnectionResetError("the server hung up")
            self._ready.extend(self._messages.feed(data))
        return self._ready.pop(0)

    async def _read(self):
        try:
            while True:
                self._take(wire.answer(await self._receive()))
        except (OSError, ProtocolError) as cause:
            self.close(cause)

    def _take(self, answer):
        self._room.set()
        if answer.id in self.waiting:
            future = self.waiting.pop(answer.id)
            if not future.done():
                future.set_result(answer)
        elif answer.id in self.ids.abandoned:
            self.ids.abandoned.discard(answer.id)
        elif answer.id == 0:
            self.refusal = answer
        else:
            raise ProtocolError("an answer that nobody asked for")

    def close(self, cause=None):
        """Fails the requests in flight with CAUSE."""
        if not self.is_open:
            return
        self.is_open = False
        self._writer.close()
        if self._task is not asyncio.current_task():
            self._task.cancel()
        cause = cause or ConnectionResetError("the connection was closed")
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(cause)
        self.waiting.clear()
        self._room.set()

    def post(self, action):
        """Writes a request that nobody waits for."""
        request_id = self.ids.new()
        self._expect(action.updates)
        self.ids.abandoned.add(request_id)
        self._writer.write(action.make(request_id))

    def _expect(self, updates):
        self._messages.expect(
            updates, alone=not self.waiting and not self.ids.abandoned)

    async def ask(self, call):
        while self.is_open and (len(self.waiting) + len(self.ids.abandoned) >=
                                wire.REQUESTS_MAX):
            self._room.clear()
            await self._room.wait()
        if not self.is_open:
            raise Lost(Unreachable("the connection is lost"), False)
        request_id = self.ids.new()
        data = call.make(request_id)
        self._expect(call.updates)
        future = asyncio.get_running_loop().create_future()
        self.waiting[request_id] = future
        call.note_sent()
        try:
            self._writer.write(data)
            await self._writer.drain()
            return await future
        finally:
            if self.waiting.pop(request_id, None) is not None:
                self.ids.abandoned.add(request_id)


class Client:
    """The client of one event loop. Use `await refd.aio.connect()`."""

    def __init__(self, path=None, timeout=TIMEOUT):
        self.path = path or default_socket()
        self.timeout = timeout
        self._connection = None
        self._opening = asyncio.Lock()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        """Closes the connection. The daemon aborts the open sessions."""
        if self._connection:
            self._connection.close()

    @property
    def hello(self):
        """The daemon's last first message."""
        return self._connection.hello

    # ---- running an exchange ----

    async def _open(self):
        try:
            return await _Connection.open(self.path)
        except ProtocolError as cause:
            raise Lost(cause, False) from cause
        except OSError as cause:
            raise Lost(Unreachable(f"{self.path}: {cause}"), False) from cause

    async def _connected(self, call):
        if call.connection:
            return call.connection
        async with self._opening:
            now = self._connection
            if now is None or not now.is_open or (
                    call.serving and now.hello.state != "serving"):
                if now:
                    now.close()
                now = self._connection = await self._open()
            if call.serving and now.hello.state != "serving":
                now.close()
                raise Lost(Unreachable(f"the daemon is {now.hello.state}"),
                           False)
            return now

    async def _call(self, call):
        connection = await self._connected(call)
        try:
            answer = call.fit(await connection.ask(call))
        except (OSError, ProtocolError) as cause:
            connection.close(cause)
            # Bytes in the buffer of the loop count as sent.
            raise lost_with(cause, connection.refusal, True) from cause
        call.connection = connection
        return answer

    async def _do(self, action, deadline):
        left = deadline - time.monotonic()
        if isinstance(action, Sleep):
            await asyncio.sleep(max(0, min(action.seconds, left)))
            return None
        if isinstance(action, Post):
            if self._connection and self._connection.is_open:
                self._connection.post(action)
            return None
        if left <= 0:
            raise Lost(TimeoutError("the time is over"), False, over=True)
        try:
            async with asyncio.timeout(left):
                return await self._call(action)
        except TimeoutError as cause:
            raise Lost(cause, action.sent, over=True) from cause

    async def _run(self, steps, timeout=None):
        deadline = time.monotonic() + (timeout or self.timeout)
        try:
            action = next(steps)
            while True:
                try:
                    got = await self._do(action, deadline)
                except BaseException as error:  # for the rules to decide
                    action = steps.throw(error)
                else:
                    action = steps.send(got)
        except StopIteration as end:
            return end.value

    # ---- requests ----

    async def transact(self, txn, timeout=None):
        """Does a transaction, and returns a `Report` if all refs are ok."""
        return await self._run(
            exchange.transact(txn, timeout or self.timeout), timeout)

    async def _named(self, txn):
        with exchange.named(txn):
            return await self.transact(txn)

    async def update(self, repository, ref, oid, old=None, **options):
        """Sets one ref, perhaps only from the value OLD. Of this and the next
        two: pass `txid=` to know the id after an interruption. Without it,
        the exception has a note with the id."""
        return await self._named(
            Transaction(repository, **options).update(ref, oid, old))

    async def create(self, repository, ref, oid, **options):
        """Makes one ref."""
        return await self._named(
            Transaction(repository, **options).create(ref, oid))

    async def delete(self, repository, ref, old=None, **options):
        """Deletes one ref, perhaps only with the value OLD."""
        return await self._named(
            Transaction(repository, **options).delete(ref, old))

    async def session(self, txn, timeout=None):
        """Locks all refs of a transaction, and returns a `Session`."""
        answer, connection = await self._run(
            exchange.prepare(txn, timeout or self.timeout), timeout)
        return Session(self, txn, connection, answer)

    async def query(self, txid, timeout=None):
        """The `Report` about a transaction or session, of any outcome."""
        return await self._run(exchange.ask_about("query", txid), timeout)

    async def cancel(self, txid, timeout=None):
        """Gives up a waiting transaction. See the outcome of the report."""
        return await self._run(exchange.ask_about("cancel", txid), timeout)

    async def ping(self, timeout=None):
        """Checks that the daemon answers."""
        await self._run(exchange.ask(
            lambda request_id: wire.simple("ping", request_id), "pong"),
            timeout)

    async def pairs(self, verb, timeout=None):
        """As `refd.Client.pairs`."""
        return await self._run(exchange.ask_pairs(verb), timeout)

    async def pack(self, repository, timeout=None):
        """As `refd.Client.pack`."""
        return await self._run(
            exchange.ask_for_repository("pack", repository), timeout)

    async def look(self, repository, timeout=None):
        """As `refd.Client.look`."""
        return await self._run(
            exchange.ask_for_repository("look", repository), timeout)

    async def log(self, select=Selection(), timeout=None):
        """One `Page` of past changes. `select.behind(page)` continues."""
        return await self._run(exchange.ask_history("log", select), timeout)

    async def watch(self, select=Selection(), timeout=None):
        """Waits for changes, and returns a `Page`, which may be empty.

        Without `select.after` returns at once: `select.behind(page)` has all
        changes behind this moment.
        """
        return await self._run(exchange.ask_history("watch", select), timeout)

    async def changes(self, select=Selection()):
        """Yields all past changes as (record, change)."""
        more = True
        while more:
            page = await self.log(select)
            for record in page.records:
                for change in record.changes:
                    yield record, change
            select, more = select.behind(page), page.more

    async def follow(self, select=Selection()):
        """Yields pages of new changes, without an end."""
        while True:
            page = await self.watch(select)
            select = select.behind(page)
            yield page


class Session:
    """A prepared session, as `refd.Session`."""

    def __init__(self, client, txn, connection, answer):
        self.txn = txn
        self.results = answer.results
        self.rewrites_packed = answer.rewrites_packed
        self._client = client
        self._connection = connection
        self._ended = False
        self._is_open = False  # the daemon may have a commit

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        if not self._ended:
            with contextlib.suppress(Error):
                await self.abort()

    async def commit(self, timeout=None):
        """Publishes the refs. Returns a `Report` if all refs are ok. After
        `Unknown`, asks what became of the first commit."""
        report = await self._client._run(exchange.commit(self), timeout)
        self._ended = True
        return report

    async def abort(self, timeout=None):
        """Releases the locks, as `refd.Session.abort`."""
        report = await self._client._run(exchange.abort(self), timeout)
        self._ended = True
        return report


async def connect(path=None, timeout=TIMEOUT):
    """Connects to the daemon. PATH: see `refd.default_socket`."""
    client = Client(path, timeout)
    try:
        async with asyncio.timeout(timeout):
            client._connection = await client._open()
    except Lost as lost:
        if isinstance(lost.cause, Error):
            raise lost.cause
        raise Unreachable(str(lost)) from lost.cause
    except TimeoutError as cause:
        raise Unreachable(f"{client.path}: no greeting in time") from cause
    return client
