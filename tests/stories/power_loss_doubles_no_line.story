# Proves that recovery doubles no line of a log that survived, and adds lost
# ones.
repo any
ok refs/heads/x = 1
ok refs/heads/x = 2 was 1
power-loss keeps everything
start
log refs/heads/x 0>1 1>2
ok refs/heads/x = 1 was 2
ok refs/heads/x = 2 was 1
power-loss keeps names with NULs
start
log refs/heads/x 0>1 1>2 2>1 1>2
