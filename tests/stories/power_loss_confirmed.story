# Proves that an update that only confirms an unsynced value of git survives.
repo files
ok refs/heads/first = 1
git refs/heads/x = 4
ok refs/heads/x = 4 was 4
power-loss keeps nothing
ref refs/heads/x = none
start
ref refs/heads/x = 4
