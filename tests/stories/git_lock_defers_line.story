# Proves that a line of HEAD waits for the lock of git, and the branch does not.
repo files
ok HEAD = 2
power-loss keeps nothing
git lock HEAD
start
deferred 1
ref refs/heads/main = 2
log HEAD none
lock HEAD
git unlock HEAD
kill
start
deferred 0
log HEAD 0>2
