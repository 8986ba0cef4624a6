# Proves that a pruned commit takes its whole atomic transaction along.
repo any
ok atomic a: refs/heads/x = p, refs/heads/y = 1
power-loss keeps nothing
start
ref refs/heads/x = none
ref refs/heads/y = none
