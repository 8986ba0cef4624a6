"""The client of refd, the ref store daemon for Git servers.

    import refd

    repo = refd.Repository.open("/srv/git/a.git")
    with refd.connect() as client:
        client.update(repo, "refs/heads/main", new, old)

        txn = refd.Transaction(repo, atomic=True, message="release")
        txn.create("refs/tags/v1", tag).update("refs/heads/main", new, old)
        try:
            client.transact(txn)
        except refd.Stale as error:     # nothing was done
            print(error.results)
        except refd.Unknown:            # done or not: ask, or send it again
            client.transact(txn)

A call returns only after success. `refd.errors` has the exceptions. `refd.aio`
has the same client for asyncio. `proto/PROTOCOL.md` defines the protocol.
"""
from .client import Client, Session, connect, default_socket
from .errors import *
from .messages import (Change, Hello, Page, Position, Record, Report,
                       Repository, Result, Selection, Transaction, Update,
                       new_txid)

__all__ = [name for name in dir() if name[0] != "_" and name not in (
    "client", "details", "errors", "exchange", "messages", "wire")]
