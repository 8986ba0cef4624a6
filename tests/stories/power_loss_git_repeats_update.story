# Proves that a batch is not deleted if git repeats one of its updates.
repo reftable
ok refs/heads/main = 1
checkpoint
ok refs/heads/main = 2, refs/heads/new = 2
power-loss keeps nothing
remove locks
git refs/heads/main = 2
start
ref refs/heads/main = 2
ref refs/heads/new = 2
