# Proves that a move of a ref survives whose time a tool has set twice.
repo files
ok refs/heads/y = 1
git refs/heads/x = 5
touch refs/heads/x 1h
sync
touch refs/heads/x 2h
ok refs/heads/x = 2 was 5
power-loss keeps nothing
start
ref refs/heads/x = 2
finding redone 1, log-repaired 1
log refs/heads/x 5>2
