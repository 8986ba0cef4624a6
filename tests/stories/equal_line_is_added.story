# Proves that a lost line is added though a forgotten update had an equal line.
repo files
ok refs/heads/main = 1
ok refs/heads/main = 2 was 1
ok refs/heads/main = 1 was 2
sync
checkpoint
seconds-back 2
ok refs/heads/main = 2 was 1
power-loss keeps nothing
start
ref refs/heads/main = 2
log refs/heads/main 0>1 1>2 2>1 1>2
