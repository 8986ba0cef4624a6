# Proves that updates of refs with times in the future survive, from git atomic.
repo files
clock +1h
git refs/heads/x = 5
git refs/heads/y = 5
git refs/heads/z = 5
clock -1h
sync
ok refs/heads/x = 2 was 5
ok atomic refs/heads/x = 3 was 2, delete refs/heads/y was 5, refs/heads/z = 3
    was 5
power-loss keeps nothing
start
ref refs/heads/x = 3
ref refs/heads/y = none
ref refs/heads/z = 3
finding redone 3, log-repaired 2
