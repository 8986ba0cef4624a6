# Proves that one refused update costs no other update of its transaction.
repo any
ok refs/heads/a = 1
refused refs/heads/a = 2 was 3, refs/heads/b = 1, refs/heads/c = 1 because
    stale, ok, ok
ref refs/heads/a = 1
ref refs/heads/b = 1
ref refs/heads/c = 1
