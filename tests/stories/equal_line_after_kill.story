# Proves that a kill loses and doubles no line that equals a line before.
repo any
ok refs/heads/x = 1
ok refs/heads/x = 2 was 1
seconds-back 1
ok refs/heads/x = 1 was 2
seconds-back 1
killed refs/heads/x = 2 was 1
start
ref refs/heads/x = 2
log refs/heads/x 0>1 1>2 2>1 1>2
