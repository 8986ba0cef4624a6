# Proves that a time in the future tears no atomic transaction.
repo files
clock +1h
git refs/heads/x = 5
clock -1h
sync
ok refs/heads/y = 1
sync
ok atomic refs/heads/x = 2 was 5, refs/heads/y = 2 was 1
power-loss keeps nothing
start
ref refs/heads/x = 2
ref refs/heads/y = 2
finding redone 2, log-repaired 2
