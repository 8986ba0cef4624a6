# Proves that a move of a ref with a time in the future survives a power loss.
repo files
clock +1h
git refs/heads/x = 5
clock -1h
sync
ok refs/heads/x = 2 was 5
power-loss keeps nothing
start
ref refs/heads/x = 2
finding redone 1, log-repaired 1
log refs/heads/x 5>2
