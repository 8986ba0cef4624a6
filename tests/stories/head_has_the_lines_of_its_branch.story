# Proves that HEAD has each line of its branch, and no line once detached.
repo any
ok refs/heads/main = 1
log HEAD 0>1
ok refs/heads/other = 1
ok HEAD = 2 was 1
ref refs/heads/main = 2
ref HEAD = symbolic
log HEAD 0>1 1>2
log refs/heads/main 0>1 1>2
ok refs/heads/main = 2
log HEAD 0>1 1>2 2>2
log refs/heads/main 0>1 1>2
ok itself HEAD = 1
ref HEAD = 1
ok refs/heads/main = 3
log HEAD 0>1 1>2 2>2 2>1
