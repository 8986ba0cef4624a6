# Proves that a lock of git defers the update of its ref, and of no other.
repo files
ok a: refs/heads/x = 1
ok refs/heads/z = 1
power-loss keeps nothing
git lock refs/heads/x
start
deferred 1
ref refs/heads/z = 1
lock refs/heads/x
git unlock refs/heads/x
kill
start
deferred 0
ref refs/heads/x = 1
answer a = ok
