# Proves that a ref that was made again survives a kill and a power loss.
repo any
ok refs/heads/x = 1
checkpoint
ok delete refs/heads/x
killed a: refs/heads/x = 2
power-loss keeps nothing
start
ref refs/heads/x = 2
log refs/heads/x 0>2
answer a = ok
