# Proves that a session that was only prepared has changed nothing after kill
# -9.
repo any
ok refs/heads/a = 1
prepare atomic s: refs/heads/a = 2, HEAD = 2, delete refs/heads/a3
kill
start
ref refs/heads/a = 1
ref refs/heads/main = none
answer s = nothing
lock none
