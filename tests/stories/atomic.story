# Proves that an atomic transaction is done as a whole or not at all.
repo any
ok refs/heads/a = 1
refused atomic refs/heads/a = 2 was 3, refs/heads/b = 1, refs/heads/c = 1
    because stale, aborted, aborted
ref refs/heads/b = none
ok atomic refs/heads/a = 2 was 1, refs/heads/b = 1, refs/heads/c = 1
ref refs/heads/a = 2
ref refs/heads/c = 1
