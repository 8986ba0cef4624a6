# Proves that recovery of several moves of a ref leaves no earlier value.
repo any
ok refs/heads/x = 1
checkpoint
ok refs/heads/x = 2 was 1
ok refs/heads/x = 3 was 2
ok refs/heads/x = 4 was 3
power-loss keeps nothing
start
ref refs/heads/x = 4
log refs/heads/x 0>1 1>2 2>3 3>4
