# Proves that a list that was renamed in doubt stands after the next start.
repo reftable
ok refs/heads/a = 1
fail renameat after EIO
unknown a: refs/heads/a = 2, refs/heads/b = 1
ref refs/heads/a = 2
refused refs/heads/c = 1 because locked
kill
start
ref refs/heads/a = 2
ref refs/heads/b = 1
answer a = ok
lock none
