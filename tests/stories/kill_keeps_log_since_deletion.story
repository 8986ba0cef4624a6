# Proves that the log of a ref that was made again has only lines since then.
repo any
ok refs/heads/x = 1
ok delete refs/heads/x was 1
ok refs/heads/x = 2 was none
killed refs/heads/x = 3 was 2
start
ref refs/heads/x = 3
log refs/heads/x 0>2 2>3
