# Proves that recovery finds nothing to do if everything was on the disk.
repo any
ok refs/heads/main = 1
checkpoint
ok refs/heads/main = 2
sync
power-loss keeps nothing
start
ref refs/heads/main = 2
finding none
