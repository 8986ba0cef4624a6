# Proves that a pruned commit costs no other update of its transaction.
repo files
ok refs/heads/main = 1, refs/heads/x = 1
checkpoint
ok refs/heads/main = 2, refs/heads/x = p
power-loss keeps nothing
start
ref refs/heads/main = 2
ref refs/heads/x = 1
finding redone 1, log-repaired 2, object-missing 1
