# Proves that a deletion of a symbolic ref survives, and its target stays.
repo files
ok refs/heads/main = 1
write refs/remotes/o/HEAD ref: refs/heads/main\n
write logs/refs/remotes/o/HEAD
ok itself delete refs/remotes/o/HEAD
power-loss keeps nothing
start
file refs/remotes/o/HEAD none
file logs/refs/remotes/o/HEAD none
ref refs/heads/main = 1
