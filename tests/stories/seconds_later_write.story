# Proves that a later write in the same second stays.
repo files
times-in-seconds
ok refs/heads/x = 2
sync
write refs/heads/x @1\n
power-loss keeps nothing
start
ref refs/heads/x = 1
finding left 1
