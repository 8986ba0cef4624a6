# Proves that all lines of a log wait for locks of git, and not only the newest.
repo files
ok HEAD = 1
checkpoint
ok HEAD = 2
ok HEAD = 3
power-loss keeps nothing
git lock HEAD
git lock refs/heads/main
start
deferred 4
git unlock HEAD
git unlock refs/heads/main
kill
start
deferred 0
ref refs/heads/main = 3
log HEAD 0>1 1>2 2>3
log refs/heads/main 0>1 1>2 2>3
