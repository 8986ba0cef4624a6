# Proves that a start after kill -9 leaves a ref that git has moved back.
repo any
ok refs/heads/x = 1
ok refs/heads/x = 2 was 1
git refs/heads/x = 1
kill
start
ref refs/heads/x = 1
finding none
