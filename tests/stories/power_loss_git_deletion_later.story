# Proves that recovery leaves a table in which git has deleted the ref.
repo reftable
ok refs/heads/main = 1
checkpoint
ok refs/heads/main = 2
sync
power-loss keeps nothing
git delete refs/heads/main
start
ref refs/heads/main = none
checkpoint
power-loss keeps everything
start
finding none
