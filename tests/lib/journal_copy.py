"""Asks a copy of a journal. A running daemon has the journal for itself: its
index of the WAL is in its memory, and other programs of SQLite are told that
the database is locked.

A shell calls it with the state directory, a statement and the parameters, and
gets the first column of the first row.
"""
import fcntl
import os
import shutil
import sqlite3
import sys
import tempfile


def ask(state, sql, args=()):
    """All rows. Like a view of refd, it excludes SQLite's checkpoints while it
    copies."""
    with tempfile.TemporaryDirectory() as copy:
        with open(f'{state}/journal.db-wal', 'rb') as wal:
            fcntl.flock(wal, fcntl.LOCK_EX)
            for name in 'journal.db', 'journal.db-wal':
                shutil.copy(f'{state}/{name}', copy)
        db = sqlite3.connect(os.path.join(copy, 'journal.db'))
        rows = db.execute(sql, args).fetchall()
        db.close()
        return rows


if __name__ == '__main__':
    print(ask(*sys.argv[1:3], sys.argv[3:])[0][0])
