# Proves that a symbolic ref needs no commit.
repo files
git refs/heads/topic = p
ok itself HEAD -> refs/heads/topic
power-loss keeps nothing
start
file HEAD ref: refs/heads/topic\n
