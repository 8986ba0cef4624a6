# Proves that the last of two updates survives if git has written between them.
repo any
ok refs/heads/x = 1
git refs/heads/x = 5
ok refs/heads/x = 2 was 5
power-loss keeps nothing
start
ref refs/heads/x = 2
