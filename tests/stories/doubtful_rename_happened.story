# Proves that a rename of packed-refs in doubt that has happened shows nothing
# of the rest.
repo files
git refs/heads/p = 1
git pack
sync
ok refs/heads/d = 1
checkpoint
fail renameat after EIO
unknown atomic a: delete refs/heads/p was 1, refs/heads/d = 2 was 1
ref refs/heads/p = none
ref refs/heads/d = 1
kill
start
ref refs/heads/d = 2
ref refs/heads/p = none
answer a = ok
