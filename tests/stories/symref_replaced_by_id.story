# Proves that recovery leaves a later id where a symbolic ref was.
repo files
ok itself HEAD -> refs/heads/topic
sync
write HEAD @1\n
power-loss keeps nothing
start
file HEAD @1\n
finding left 1
