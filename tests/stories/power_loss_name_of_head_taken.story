# Proves that no line of HEAD tells of an update whose name git has taken.
repo files
ok itself HEAD -> refs/heads/new
ok a: HEAD = 2
power-loss keeps nothing
git refs/heads/new/x = 1
start
ref refs/heads/new/x = 1
answer a = conflict
log HEAD none
log refs/heads/new none
