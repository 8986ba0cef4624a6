# Proves that a ref survives that took the name of a deleted one as a directory.
repo any
ok refs/heads/x = 1
checkpoint
ok delete refs/heads/x
ok refs/heads/x/y = 2
power-loss keeps nothing
start
ref refs/heads/x = none
ref refs/heads/x/y = 2
