# Proves that an update is given up if git makes a ref below its name.
repo reftable
ok refs/heads/main = 1
checkpoint
ok a: refs/heads/a = 2, refs/heads/main = 2
power-loss keeps nothing
remove locks
git refs/heads/a/b = 5
start
ref refs/heads/a/b = 5
ref refs/heads/a = none
ref refs/heads/main = 2
log refs/heads/a none
answer a = conflict, ok
