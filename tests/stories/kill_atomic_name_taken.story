# Proves that an atomic transaction is given up as a whole if git takes a name.
repo files
killed atomic a: refs/heads/p = 1, refs/heads/q = 1
git refs/heads/q/z = 5
start
ref refs/heads/q/z = 5
ref refs/heads/p = none
answer a = aborted, conflict
lock none
