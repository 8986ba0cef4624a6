# Proves that a start after kill -9 leaves a ref deleted that git has deleted.
repo any
ok refs/heads/x = 1 was none
git delete refs/heads/x
kill
start
ref refs/heads/x = none
finding none
