# Proves that each of several updates survives a power loss, alone or with
# others.
repo any
ok refs/heads/main = 1, refs/heads/x = 1
ok refs/heads/main = 2
ok refs/heads/main = 3
ok refs/heads/x = 2
power-loss keeps nothing
start
ref refs/heads/main = 3
ref refs/heads/x = 2
log refs/heads/x 0>1 1>2
checkpoint
power-loss keeps everything
start
finding none
