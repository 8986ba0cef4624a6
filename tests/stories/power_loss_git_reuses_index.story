# Proves that recovery leaves a table that git wrote in the place of a lost one,
# and only reports the lost line, whose place is taken.
repo reftable
ok refs/heads/main = 1
checkpoint
ok refs/heads/main = 2
power-loss keeps nothing
remove locks
git refs/heads/main = 5
start
ref refs/heads/main = 5
log refs/heads/main 0>1 1>5
log HEAD 0>1 1>2
finding log-repaired 1, left 2
