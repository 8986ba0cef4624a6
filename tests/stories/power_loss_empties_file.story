# Proves that recovery fills a ref whose file is empty after a power loss, once.
repo files
ok refs/heads/x = 1
power-loss keeps names
file refs/heads/x
start
ref refs/heads/x = 1
finding redone 1, log-repaired 1
power-loss keeps nothing
start
ref refs/heads/x = 1
finding none
