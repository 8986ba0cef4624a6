# Proves that recovery leaves what git made of an earlier update that was
# published.
repo reftable
ok refs/heads/main = 1
ok refs/heads/new = 2
git delete refs/heads/new
git pack
killed refs/heads/main = 2
start
ref refs/heads/new = none
ref refs/heads/main = 2
