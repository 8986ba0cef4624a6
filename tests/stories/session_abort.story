# Proves that a session that was aborted leaves nothing.
repo any
ok refs/heads/a = 1
prepare atomic s: refs/heads/a = 2, delete refs/heads/a2,
    refs/heads/new/x = 1
abort
lock none
ref refs/heads/a = 1
log refs/heads/a 0>1
ref refs/heads/new/x = none
log refs/heads/new/x none
answer s = nothing
ok refs/heads/new = 1
