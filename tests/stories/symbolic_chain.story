# Proves that the end of a chain is written, and each ref on the way has a line.
repo any
ok refs/heads/s -> refs/heads/t
ok refs/heads/t -> refs/heads/a
ok refs/heads/s = 1 was none
ref refs/heads/s = symbolic
ref refs/heads/t = symbolic
ref refs/heads/a = 1
log refs/heads/a 0>1
log refs/heads/s 0>1
log refs/heads/t 0>1
refused refs/heads/s = 2 was 3 because stale
ok delete refs/heads/s was 1
ref refs/heads/s = symbolic
ref refs/heads/a = none
log refs/heads/a none
log refs/heads/s 0>1 1>0
