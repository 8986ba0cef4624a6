# Proves that after a deletion through HEAD only the log of HEAD is left.
repo any
ok HEAD = 1
ok HEAD = 2 was 1
ok delete HEAD was 2
power-loss keeps nothing
start
ref refs/heads/main = none
log refs/heads/main none
log HEAD 0>1 1>2 2>0
