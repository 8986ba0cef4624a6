# Proves that nothing of an atomic transaction shows if the rename of
# packed-refs, the first one, is in doubt.
repo files
git refs/heads/p = 1
git pack
sync
ok refs/heads/d = 1
checkpoint
fail renameat EIO
unknown atomic a: delete refs/heads/p was 1, refs/heads/d = 2 was 1
ref refs/heads/p = 1
ref refs/heads/d = 1
kill
start
ref refs/heads/d = 2
ref refs/heads/p = none
answer a = ok
