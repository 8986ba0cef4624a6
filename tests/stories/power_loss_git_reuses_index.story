# Proves that recovery leaves a table that git wrote in the place of a lost one.
repo reftable
ok refs/heads/main = 1
checkpoint
ok refs/heads/main = 2
power-loss keeps nothing
remove locks
git refs/heads/main = 5
start
ref refs/heads/main = 5
