# Proves that recovery leaves a value that git wrote after kill -9.
repo any
ok refs/heads/main = 1
killed a: refs/heads/main = 2 was 1
remove locks
git refs/heads/main = 5
start
ref refs/heads/main = 5
answer a = conflict
