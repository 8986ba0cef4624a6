# Proves that a deletion of a symbolic ref in a table survives, and its target
# stays.
repo reftable
ok refs/heads/main = 1
ok itself refs/remotes/o/HEAD -> refs/heads/main
ok refs/remotes/o/HEAD = 3 was 1
checkpoint
ok itself delete refs/remotes/o/HEAD
ref refs/heads/main = 3
power-loss keeps nothing
ref refs/remotes/o/HEAD = symbolic
start
ref refs/remotes/o/HEAD = none
log refs/remotes/o/HEAD none
ref refs/heads/main = 3
