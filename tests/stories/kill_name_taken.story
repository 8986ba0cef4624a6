# Proves that an update whose name git takes is given up, and costs no other
# update.
repo files
killed a: refs/heads/p = 1, refs/heads/q = 1
git refs/heads/q/z = 5
start
ref refs/heads/q/z = 5
ref refs/heads/p = 1
log refs/heads/p 0>1
answer a = ok, conflict
lock none
