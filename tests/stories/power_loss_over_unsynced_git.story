# Proves that an update survives that replaced an unsynced value of git.
repo files
ok refs/heads/first = 1
git refs/heads/x = 6
sync
git refs/heads/x = 1
ok refs/heads/x = 2 was 1
power-loss keeps nothing
ref refs/heads/x = 6
start
ref refs/heads/x = 2
