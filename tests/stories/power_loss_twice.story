# Proves that an update survives a power loss after a recovery from another one.
repo any
ok refs/heads/main = 1
ok refs/heads/main = 2
power-loss keeps nothing
start
ref refs/heads/main = 2
ok refs/heads/main = 3 was 2
power-loss keeps nothing
start
ref refs/heads/main = 3
log refs/heads/main 0>1 1>2 2>3
checkpoint
power-loss keeps everything
start
finding none
