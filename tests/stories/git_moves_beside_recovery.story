# Proves that a value that git writes and packs beside recovery stands.
repo files
ok refs/heads/x = 1, refs/heads/y = 1
checkpoint
ok delete refs/heads/x was 1
ok refs/heads/y = 2 was 1
ok refs/heads/z = 3 was none
power-loss keeps nothing
beside git refs/heads/y = 9, pack
start
retry
deferred 0
ref refs/heads/x = none
ref refs/heads/y = 9
ref refs/heads/z = 3
lock none
