# Proves that an update survives whose lock a person removes after kill -9.
repo any
ok refs/heads/main = 1
killed a: refs/heads/main = 2 was 1
remove locks
start
ref refs/heads/main = 2
answer a = ok
log refs/heads/main 0>1 1>2
lock none
