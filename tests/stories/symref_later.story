# Proves that recovery leaves a later target of a symbolic ref.
repo files
ok itself HEAD -> refs/heads/topic
sync
write HEAD ref: refs/heads/other\n
power-loss keeps nothing
start
file HEAD ref: refs/heads/other\n
finding left 1
