# Proves that a line that is there is not added beside an equal line.
repo files
ok refs/heads/main = 1
ok refs/heads/main = 2 was 1
ok refs/heads/main = 1 was 2
sync
checkpoint
seconds-back 2
ok refs/heads/main = 2 was 1
power-loss keeps everything
start
log refs/heads/main 0>1 1>2 2>1 1>2
