# Proves that an update survives if the power loss took the later value of git.
repo any
ok refs/heads/x = 1
git refs/heads/x = 5
power-loss keeps nothing
start
ref refs/heads/x = 1
log refs/heads/x 0>1
