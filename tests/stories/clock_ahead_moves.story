# Proves that the last of several moves of a ref with a time in the future
# survives.
repo files
clock +1h
git refs/heads/x = 5
clock -1h
sync
ok refs/heads/x = 2 was 5
ok refs/heads/x = 3 was 2
power-loss keeps nothing
start
ref refs/heads/x = 3
finding redone 1, log-repaired 1
