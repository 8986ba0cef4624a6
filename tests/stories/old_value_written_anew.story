# Proves that an old value that git writes anew is a later write.
repo files
ok refs/heads/x = 1
sync
ok refs/heads/x = 2 was 1
git refs/heads/x = 1
sync
power-loss keeps nothing
start
ref refs/heads/x = 1
finding left 1
