# Proves that a move survives of a value that refd wrote in the future.
repo files
clock +1h
ok refs/heads/x = 1
clock -1h
sync
ok refs/heads/x = 2 was 1
power-loss keeps nothing
start
ref refs/heads/x = 2
finding redone 1, log-repaired 1
