# Proves that a deletion of a ref with a time in the future survives.
repo files
clock +1h
git refs/heads/x = 5
clock -1h
sync
ok delete refs/heads/x was 5
power-loss keeps nothing
start
ref refs/heads/x = none
finding redone 1
