# Proves that recovery adds the lost line of an update below a later value of
# git.
repo files
ok refs/heads/x = 1
git refs/heads/x = 5
sync
power-loss keeps nothing
remove logs/refs/heads/x
start
ref refs/heads/x = 5
log refs/heads/x 0>1
finding log-repaired 1, left 1
