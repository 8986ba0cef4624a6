# Proves that a deletion survives a power loss, and the log stays away.
repo any
ok refs/heads/x = 1
checkpoint
ok delete refs/heads/x was 1
power-loss keeps nothing
ref refs/heads/x = 1
start
ref refs/heads/x = none
log refs/heads/x none
