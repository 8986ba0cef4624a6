# Proves that the records of a missing repository wait until it is back.
repo any
ok refs/heads/x = 1
power-loss keeps nothing
away
start
deferred 1
finding repository-missing 1
kill
back
start
deferred 0
ref refs/heads/x = 1
log refs/heads/x 0>1
