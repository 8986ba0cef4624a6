# Proves that a list of tables in doubt keeps its lock until the next start.
repo reftable
ok refs/heads/a = 1
fail renameat EIO
unknown a: refs/heads/a = 2, refs/heads/b = 1
ref refs/heads/a = 1
refused refs/heads/c = 1 because locked
kill
start
ref refs/heads/a = 2
ref refs/heads/b = 1
answer a = ok
lock none
