# Proves that an atomic transaction is given up as a whole if git takes a name.
repo reftable
ok refs/heads/main = 1
checkpoint
ok atomic a: refs/heads/a/b = 2, refs/heads/main = 2
power-loss keeps nothing
remove locks
git refs/heads/a = 5
start
ref refs/heads/a = 5
ref refs/heads/a/b = none
ref refs/heads/main = 1
log refs/heads/a/b none
answer a = conflict, aborted
