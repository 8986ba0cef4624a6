# Proves that git may pack all refs between any two calls of recovery.
repo any
ok refs/heads/x = 1, refs/heads/y = 1
checkpoint
ok delete refs/heads/x was 1
ok refs/heads/y = 2 was 1
ok refs/heads/z = 3 was none
power-loss keeps nothing
beside git pack
start
retry
deferred 0
ref refs/heads/x = none
ref refs/heads/y = 2
ref refs/heads/z = 3
lock none
