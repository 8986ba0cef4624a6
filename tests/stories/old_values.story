# Proves that an update with a wrong old value is refused, and says why.
repo any
ok refs/heads/a = 1
refused refs/heads/a = 2 was 3 because stale
refused refs/heads/a = 2 was none because exists
refused refs/heads/b = 2 was 3 because missing
refused delete refs/heads/b was 3 because missing
ok delete refs/heads/b
ref refs/heads/a = 1
