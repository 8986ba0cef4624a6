# Proves that a power loss after the answer loses nothing.
repo any
ok a: refs/heads/main = 1
power-loss keeps nothing
start
ref refs/heads/main = 1
log refs/heads/main 0>1
answer a = ok
