"""Moves a branch, tags it in the same transaction, and prints the changes.

    python3 example.py /srv/git/a.git refs/heads/main NEW-COMMIT
"""
import sys

import refd


def main(git_dir, branch, commit):
    repo = refd.Repository.open(git_dir)
    txn = refd.Transaction(repo, atomic=True, message="example")
    txn.update(branch, commit)
    txn.create(f"refs/tags/at-{commit[:12]}", commit)
    with refd.connect() as client:
        try:
            print("committed", client.transact(txn).token)
        except refd.Rejected as error:
            sys.exit(f"nothing was done ({error.status}): {error}")
        except refd.Unknown as error:
            sys.exit(f"{error}\nask: refd query {error.txid}")
        select = refd.Selection(repo, txid=txn.txid)
        for record, change in client.changes(select):
            print(record.lsn, change.ref, change.old, "->", change.new)


main(*sys.argv[1:])
