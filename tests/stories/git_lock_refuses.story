# Proves that a lock of git stops its ref alone, or an atomic transaction.
repo files
git lock refs/heads/a
refused refs/heads/a = 1, refs/heads/b = 1 because locked, ok
refused atomic refs/heads/a = 1, refs/heads/c = 1 because locked
lock refs/heads/a
git lock packed-refs
refused delete refs/heads/b because locked
ref refs/heads/b = 1
