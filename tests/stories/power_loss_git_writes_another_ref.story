# Proves that an update survives beside a table of git for another ref.
repo reftable
ok refs/heads/main = 1, refs/heads/x = 1
checkpoint
ok refs/heads/main = 2
power-loss keeps nothing
remove locks
git refs/heads/x = 5
start
ref refs/heads/x = 5
ref refs/heads/main = 2
log refs/heads/main 0>1 1>2
log HEAD 0>1 1>2
checkpoint
power-loss keeps everything
start
finding none
