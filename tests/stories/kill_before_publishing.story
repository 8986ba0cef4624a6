# Proves that recovery publishes what the journal had before kill -9, as a
# whole.
repo any
ok refs/heads/a = 1, refs/heads/b = 1
checkpoint
killed atomic t: refs/heads/a = 2 was 1, delete refs/heads/b was 1,
    refs/heads/n/c = 3 was none
start
ref refs/heads/a = 2
ref refs/heads/b = none
ref refs/heads/n/c = 3
log refs/heads/a 0>1 1>2
log refs/heads/b none
log refs/heads/n/c 0>3
answer t = ok
lock none
kill
start
finding none
