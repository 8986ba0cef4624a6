# Proves that a retry redoes the records of a repository that came back.
repo any
ok refs/heads/x = 1
ok refs/heads/y = 1
power-loss keeps nothing
away
start
deferred 2
kill
start
deferred 2
back
retry
deferred 0
ref refs/heads/x = 1
ref refs/heads/y = 1
power-loss keeps nothing
start
ref refs/heads/x = 1
ref refs/heads/y = 1
