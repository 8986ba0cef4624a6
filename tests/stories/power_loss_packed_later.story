# Proves that recovery leaves a later value that git has packed.
repo files
ok refs/heads/x = 2
git refs/heads/x = 5
git pack
sync
power-loss keeps nothing
start
ref refs/heads/x = 5
finding left 1
