# Proves that a deletion by git stands if git merged it away, and a line tells.
repo reftable
ok refs/heads/main = 1
checkpoint
ok refs/heads/main = 2, refs/heads/new = 2
sync
power-loss keeps nothing
git delete refs/heads/new
git pack
start
ref refs/heads/new = none
ref refs/heads/main = 2
