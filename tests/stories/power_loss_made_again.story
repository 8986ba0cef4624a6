# Proves that a ref survives that was deleted and made again.
repo any
ok refs/heads/x = 1
checkpoint
ok delete refs/heads/x
ok refs/heads/x = 2
power-loss keeps nothing
start
ref refs/heads/x = 2
log refs/heads/x 0>2
checkpoint
power-loss keeps everything
start
finding none
