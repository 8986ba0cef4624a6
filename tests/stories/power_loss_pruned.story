# Proves that a ref whose commit was pruned gets the value before, which
# may be lost or stand.
repo any
ok refs/heads/x = 1
ok refs/heads/x = p was 1
power-loss keeps nothing
start
ref refs/heads/x = 1
checkpoint
ok refs/heads/x = p was 1
power-loss keeps nothing
start
ref refs/heads/x = 1
log refs/heads/x 0>1
