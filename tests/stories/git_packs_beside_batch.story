# Proves that git may pack all refs between any two calls of a batch.
repo any
ok refs/heads/a = 1, refs/heads/b = 1
beside git pack
ok refs/heads/a = 2 was 1, delete refs/heads/b was 1
ref refs/heads/a = 2
ref refs/heads/b = none
power-loss keeps nothing
start
ref refs/heads/a = 2
ref refs/heads/b = none
