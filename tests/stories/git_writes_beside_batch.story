# Proves that git may write another ref between any two calls of a batch.
repo any
ok refs/heads/a = 1
beside git refs/heads/b = 5
ok refs/heads/a = 2 was 1, refs/heads/n/x = 1
ref refs/heads/a = 2
ref refs/heads/b = 5
ref refs/heads/n/x = 1
log refs/heads/a 0>1 1>2
kill
start
ref refs/heads/b = 5
ref refs/heads/a = 2
