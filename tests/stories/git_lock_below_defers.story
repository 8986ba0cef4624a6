# Proves that a lock of git below the name of a ref defers the update.
repo files
ok refs/heads/d = 1
power-loss keeps nothing
git lock refs/heads/d/e/x
start
deferred 1
finding deferred 1
git unlock refs/heads/d/e/x
retry
deferred 0
ref refs/heads/d = 1
