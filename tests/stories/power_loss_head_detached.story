# Proves that HEAD survives with its own value after updates through it.
repo any
ok HEAD = 1
ok HEAD = 3 was 1
ok itself HEAD = 2 was 3
power-loss keeps nothing
start
ref HEAD = 2
ref refs/heads/main = 3
log HEAD 0>1 1>3 3>2
