# Proves that an update of a symbolic ref itself replaces it, and not its
# target.
repo any
ok refs/heads/a = 1
ok itself refs/heads/s -> refs/heads/a
ok itself refs/heads/t -> refs/heads/s
ok itself refs/heads/t = 2 was 1
log refs/heads/t 0>1 1>2
ok itself refs/heads/s = 2 was 1
ref refs/heads/s = 2
ref refs/heads/a = 1
log refs/heads/s 0>1 1>2
ok itself refs/heads/d -> refs/heads/nowhere
refused itself refs/heads/d = 1 was none because exists
ok itself delete refs/heads/d
ref refs/heads/d = none
