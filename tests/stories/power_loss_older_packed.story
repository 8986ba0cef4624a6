# Proves that an update survives over an older value in packed-refs.
repo files
git refs/heads/x = 1
git pack
sync
ok refs/heads/x = 2 was 1
power-loss keeps nothing
start
ref refs/heads/x = 2
