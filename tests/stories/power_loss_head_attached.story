# Proves that the lines of a HEAD are added that was detached and then followed
# again.
repo files
ok refs/heads/main = 1
checkpoint
ok itself HEAD = 2 was 1
write HEAD ref: refs/heads/main\n
ok HEAD = 3 was 1
sync
power-loss keeps nothing
remove logs/HEAD
start
file HEAD ref: refs/heads/main\n
log HEAD 1>2 1>3
finding log-repaired 1, left 1
