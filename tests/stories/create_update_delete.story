# Proves that a ref can be made, moved and deleted, with its log.
repo any
ok refs/heads/a = 1 was none
ref refs/heads/a = 1
ok refs/heads/a = 2 was 1
ref refs/heads/a = 2
log refs/heads/a 0>1 1>2
ok delete refs/heads/a was 2
ref refs/heads/a = none
log refs/heads/a none
ok delete refs/heads/gone
