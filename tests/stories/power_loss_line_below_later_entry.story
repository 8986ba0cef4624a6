# Proves that a lost line gets its place below a later line of git.
repo reftable
ok refs/heads/main = 1, refs/heads/x = 1
checkpoint
ok refs/heads/main = 2
power-loss keeps nothing
remove locks
git refs/heads/x = 5
git refs/heads/main = 5
start
ref refs/heads/main = 5
log refs/heads/main 0>1 1>2 1>5
finding log-repaired 2, left 1
