# Proves that an equal line of a deleted log does not count.
repo files
ok refs/heads/main = 1
ok refs/heads/main = 2 was 1
sync
checkpoint
ok delete refs/heads/main was 2
ok refs/heads/main = 1 was none
seconds-back 3
ok refs/heads/main = 2 was 1
power-loss keeps nothing
start
log refs/heads/main 0>1 1>2
