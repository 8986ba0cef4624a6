# Proves that a later write stays, whatever time a tool gives it.
repo files
ok refs/heads/x = 2
sync
git refs/heads/x = 1
touch refs/heads/x 1h
sync
power-loss keeps nothing
start
ref refs/heads/x = 1
finding left 1
