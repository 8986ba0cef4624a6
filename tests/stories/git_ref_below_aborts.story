# Proves that an update is given up if the git with the lock makes its ref
# below.
repo files
ok a: refs/heads/d = 1
power-loss keeps nothing
git lock refs/heads/d/e/x
start
deferred 1
git unlock refs/heads/d/e/x
git refs/heads/d/e/x = 2
retry
deferred 0
finding dropped 1
ref refs/heads/d/e/x = 2
answer a = conflict
