# Proves that a lost symbolic ref is written again, once.
repo files
ok itself HEAD -> refs/heads/topic
power-loss keeps nothing
start
file HEAD ref: refs/heads/topic\n
finding redone 1
power-loss keeps nothing
start
file HEAD ref: refs/heads/topic\n
finding none
