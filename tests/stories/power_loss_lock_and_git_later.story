# Proves that a lock of refd says nothing about a later value after a power
# loss.
repo files
killed refs/heads/x = 1
sync
write refs/heads/x @5\n
power-loss keeps nothing
lock refs/heads/x
start
ref refs/heads/x = 5
finding unlocked 1, log-repaired 1, left 1
lock none
