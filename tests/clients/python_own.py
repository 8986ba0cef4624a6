"""What only the Python clients have: many requests at once, cancelled tasks,
sessions as context managers, reports that are neither true nor false.
Arguments: socket, repository, commit. Prints `ok` and `not ok` lines."""
import asyncio
import re
import socket
import sys
import time
from types import SimpleNamespace

import refd
import refd.aio
from refd import exchange
from refd.client import Connection

path, git_dir, one = sys.argv[1:]
repo = refd.Repository.open(git_dir)


def shows(name, wanted, got):
    print("ok " + name if wanted == got else
          "not ok %s: wanted %r, got %r" % (name, wanted, got))


def raises(name, kind, function):
    try:
        function()
    except kind as error:
        print("ok", name)
        return error
    print("not ok %s: no exception" % name)


def blocking():
    with refd.connect(path) as client:
        report = client.create(repo, "refs/own/a", one)
        raises("a report is neither true nor false", TypeError,
               lambda: bool(report))
        error = raises("an exception for a status", refd.Exists,
                       lambda: client.create(repo, "refs/own/a", one))
        shows("with the value", one, error.results[0].found)
        shows("unknown is no failure", False,
              issubclass(refd.Unknown, refd.Rejected))
        shows("each status but two has an exception",
              set(refd.Status) - {"ok", "unknown"},
              {kind.status for kind in refd.Rejected.__subclasses__()})
        txn = refd.Transaction(repo).create("refs/own/b", one)
        with client.session(txn):
            pass
        shows("a session without a commit is aborted", "rejected",
              client.query(txn.txid).outcome)
        txn = refd.Transaction(repo).create("refs/own/b", one)
        with client.session(txn) as session:
            session.commit()
        shows("a session with a commit is not", "committed",
              client.query(txn.txid).outcome)
        client.delete(repo, "refs/own/b", one)
        shows("pages of history", 5, len([
            change for _, change in client.changes(
                refd.Selection(repo, ("refs/own/",), limit=1))]))


def empty_targets():
    with refd.connect(path) as client:
        for command in ("symref-update", "symref-delete", "symref-verify"):
            txn = refd.Transaction(repo)
            txn.updates.append(refd.Update(
                command, "refs/own/symref", target="refs/own/a"
                if command == "symref-update" else None, old_target=""))
            raises(f"{command} with an empty old target", refd.BadRequest,
                   lambda txn=txn: client.transact(txn))
            shows("which was not sent", False, txn.maybe_sent)


class Interrupted:
    """A socket on which a signal handler raises behind the last send(2)."""

    def __init__(self, peer, error):
        self._peer, self._error = peer, error

    def __getattr__(self, name):
        return getattr(self._peer, name)

    def send(self, data):
        self._peer.sendall(data)
        raise self._error

    sendall = send


def interrupted():
    with refd.connect(path) as client:
        client._connection._socket = Interrupted(
            client._connection._socket, TimeoutError("of a signal handler"))
        txn = refd.Transaction(repo).create("refs/own/alarm", one)
        raises("all bytes are out when a signal handler raises", refd.Unknown,
               lambda: client.transact(txn))
        shows("and the transaction can be sent again", "committed",
              client.transact(txn).outcome)


def broken_pipe():
    """The handler of a signal writes to a pipe that nobody reads."""
    ours, theirs = socket.socketpair()
    connection = object.__new__(Connection)
    call = SimpleNamespace(sent=False, note_sent=lambda: None)

    def sends(end):
        connection._socket = end
        connection.send(call, b"bytes", time.monotonic() + 5)
        return call.sent

    shows("a broken pipe of a handler is not that of the socket", True,
          sends(Interrupted(ours, BrokenPipeError())))
    theirs.close()
    shows("a server that has hung up has no request", False, sends(ours))
    ours.close()


def asked(error):
    """The end of the transaction in the notes of ERROR, or of its causes."""
    while error:
        for note in getattr(error, "__notes__", ()):
            if found := re.search("refd query ([0-9a-f]{32})$", note):
                with refd.connect(path) as client:
                    return client.query(found[1]).outcome
        error = error.__cause__
    return "no note"


def noted():
    with refd.connect(path) as client:
        client._connection._socket = Interrupted(
            client._connection._socket, KeyboardInterrupt())
        error = raises("Ctrl-C behind the last byte", KeyboardInterrupt,
                       lambda: client.create(repo, "refs/own/note", one))
        # The daemon may have done it, or given it up with its connection.
        shows("the exception names the transaction", True,
              asked(error) != "no note")


def naps():
    select = refd.Selection(repo, reverse=True, journal="0" * 32,
                            before=refd.Position(7, 0))
    page = refd.Page("0" * 32, (), refd.Position(7, 0), more=True)
    asked = exchange.ask_history("log", select)
    next(asked)
    nap = asked.send(SimpleNamespace(kind="records", page=page))
    shows("a nap while the daemon makes its index", exchange.Sleep, type(nap))


async def two_tasks():
    """Both wait for a connection, for a transaction that was sent before."""
    async with await refd.aio.connect(path) as client:
        async def never():
            await asyncio.sleep(60)
        await client.close()
        client._open = never
        txn = refd.Transaction(repo, txid=refd.Transaction(repo).txid)
        ends = await asyncio.gather(
            client.transact(txn, 0.4), client.transact(txn, 0.2),
            return_exceptions=True)
        shows("two tasks know that a transaction was sent",
              [refd.Unknown, refd.Unknown], [type(end) for end in ends])
        shows("and so does the next", refd.Unknown, type((await asyncio.gather(
            client.transact(txn, 0.2), return_exceptions=True))[0]))


async def no_room():
    """The time ends while a full connection takes no request."""
    async with await refd.aio.connect(path) as client:
        session = await client.session(
            refd.Transaction(repo).create("refs/own/full", one))
        waiting = client._connection.waiting
        waiting.update((-n, asyncio.Future()) for n in range(256))
        ends = [type((await asyncio.gather(call, return_exceptions=True))[0])
                for call in (session.commit(0.1), session.abort(0.1))]
        shows("a commit, and an abort, that were not sent",
              [refd.Busy, refd.Unreachable], ends)
        waiting.clear()
        shows("the session goes on", "committed",
              (await session.commit()).outcome)


async def out_of_time():
    async with await refd.aio.connect(path) as client:
        held = refd.Transaction(repo).create("refs/own/named", one)
        async with await client.session(held):
            error = (await asyncio.gather(asyncio.wait_for(client.create(
                repo, "refs/own/named", one), 0.2), return_exceptions=True))[0]
            shows("the exception of wait_for names the transaction", "pending",
                  asked(error))


async def first_record(pages):
    """A page may be empty."""
    async for page in pages:
        if page.records:
            return page.records[0]


async def many():
    async with await refd.aio.connect(path) as client:
        reports = await asyncio.gather(*(
            client.create(repo, f"refs/own/many/{n}", one)
            for n in range(1000)))
        shows("a thousand at once", {"committed"},
              {report.outcome for report in reports})
        held = refd.Transaction(repo).create("refs/own/held", one)
        waiting = refd.Transaction(repo).create("refs/own/held", one)
        async with await client.session(held):
            task = asyncio.create_task(client.transact(waiting))
            while (await client.query(waiting.txid)).outcome == "never-seen":
                await asyncio.sleep(0.01)
            task.cancel()
            shows("a cancelled task", True, isinstance(
                (await asyncio.gather(task, return_exceptions=True))[0],
                asyncio.CancelledError))
        shows("the transaction of a cancelled task, again", "committed",
              (await client.transact(waiting)).outcome)
        task = asyncio.create_task(client.session(
            refd.Transaction(repo).delete("refs/own/held")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        report = await client.delete(repo, "refs/own/held", one)
        shows("a cancelled session holds no lock", "committed",
              report.outcome)
        pages = client.follow(refd.Selection(
            repo, ("refs/own/feed",), after=refd.Position(0)))
        feed = asyncio.create_task(first_record(pages))
        await client.create(repo, "refs/own/feed", one)
        shows("a feed beside updates", "refs/own/feed",
              (await feed).changes[0].ref)
        await pages.aclose()


blocking()
empty_targets()
interrupted()
broken_pipe()
noted()
naps()
asyncio.run(two_tasks())
asyncio.run(no_room())
asyncio.run(out_of_time())
asyncio.run(many())
