# Proves that a former value of the same second is no later write.
repo files
times-in-seconds
ok refs/heads/x = 1
sync
ok refs/heads/x = 2 was 1
power-loss keeps nothing
start
ref refs/heads/x = 2
finding redone 1, log-repaired 1
