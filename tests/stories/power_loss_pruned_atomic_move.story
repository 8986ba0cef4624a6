# Proves that a pruned commit leaves the values before its atomic transaction.
repo reftable
ok refs/heads/main = 1, refs/heads/x = 1
checkpoint
ok atomic a: refs/heads/main = 2, refs/heads/x = p
power-loss keeps nothing
remove locks
start
ref refs/heads/main = 1
ref refs/heads/x = 1
finding object-missing 1
