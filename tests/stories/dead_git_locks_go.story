# Proves that recovery removes locks of git that are older than the boot.
repo files
ok refs/heads/x = 1, refs/heads/y = 1, refs/heads/z = 1
checkpoint
ok refs/heads/x = 2 was 1
ok delete refs/heads/y was 1
ok refs/heads/z = 2 was 1
git lock refs/heads/x
git lock refs/heads/y
git lock packed-refs
power-loss keeps nothing
start
deferred 0
finding redone 3, unlocked 3, log-repaired 2
ref refs/heads/x = 2
ref refs/heads/y = none
ref refs/heads/z = 2
lock none
