# Proves that a pruned commit leaves no line in the log of HEAD.
repo any
ok refs/heads/main = 1
ok HEAD = p was 1
power-loss keeps nothing
start
ref refs/heads/main = 1
log HEAD 0>1
