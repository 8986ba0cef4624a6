# Proves that an update survives if the power loss took the deletion by git.
repo any
ok refs/heads/main = 1
checkpoint
ok refs/heads/main = 2
sync
git delete refs/heads/main
power-loss keeps nothing
start
ref refs/heads/main = 2
