# Proves that a packed ref that a power loss brings back is no later write.
repo files
git refs/heads/f = 5
git pack
touch packed-refs 1h
ok refs/heads/y = 1
sync
git delete refs/heads/f
ok refs/heads/f = 2 was none
power-loss keeps nothing
start
ref refs/heads/f = 2
log refs/heads/f 0>2
finding redone 1, log-repaired 1
