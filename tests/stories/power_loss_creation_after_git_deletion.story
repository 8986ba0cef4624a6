# Proves that a log begins anew after git has deleted the ref and its log.
repo files
ok refs/heads/x = 1
git delete refs/heads/x
ok refs/heads/x = 2 was none
ok refs/heads/x = 3 was 2
power-loss keeps nothing
start
ref refs/heads/x = 3
log refs/heads/x 0>2 2>3
