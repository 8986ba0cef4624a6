# Proves that one start redoes records of a power loss and of a kill by their
# rules.
repo files
ok refs/heads/x = 1
power-loss keeps nothing
git lock refs/heads/x
start
deferred 1
ok refs/heads/y = 1
git delete refs/heads/y
killed refs/heads/z = 1
git unlock refs/heads/x
start
deferred 0
finding redone 1, rolled-forward 1, unlocked 1, log-repaired 2
ref refs/heads/x = 1
ref refs/heads/y = none
ref refs/heads/z = 1
lock none
