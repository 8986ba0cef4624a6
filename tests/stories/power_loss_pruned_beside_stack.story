# Proves that a table without a pruned commit has the other updates of its
# transaction.
repo reftable
ok refs/heads/main = 1, refs/heads/x = 1
checkpoint
ok refs/heads/main = 2, refs/heads/x = p
power-loss keeps nothing
start
ref refs/heads/main = 2
ref refs/heads/x = 1
finding redone 1, unlocked 1, log-repaired 1, object-missing 1
