# Proves that updates through HEAD survive with the lines of HEAD and its
# branch.
repo any
ok refs/heads/main = 1
ok HEAD = 2 was 1
ok HEAD = 3 was 2
power-loss keeps nothing
start
ref refs/heads/main = 3
ref HEAD = symbolic
log refs/heads/main 0>1 1>2 2>3
log HEAD 0>1 1>2 2>3
power-loss keeps everything
start
log HEAD 0>1 1>2 2>3
lock none
