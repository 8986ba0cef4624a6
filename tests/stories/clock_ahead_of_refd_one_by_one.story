# Proves that updates of refs with times in the future survive, from refd one
# by one.
repo files
clock +1h
ok refs/heads/x = 5, refs/heads/y = 5, refs/heads/z = 5
clock -1h
sync
ok refs/heads/x = 2 was 5
ok refs/heads/x = 3 was 2, delete refs/heads/y was 5, refs/heads/z = 3 was 5
power-loss keeps nothing
start
ref refs/heads/x = 3
ref refs/heads/y = none
ref refs/heads/z = 3
finding redone 3, log-repaired 2
