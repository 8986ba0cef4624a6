# Proves that a ref whose commit was pruned gets the value before.
repo any
ok refs/heads/x = 1
ok refs/heads/x = p was 1
power-loss keeps nothing
start
ref refs/heads/x = 1
