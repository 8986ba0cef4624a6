# Proves that recovery leaves a later value of git that survived.
repo files
ok refs/heads/x = 1
git refs/heads/x = 5
sync
power-loss keeps nothing
start
ref refs/heads/x = 5
log refs/heads/x 0>1 1>5
finding left 1
