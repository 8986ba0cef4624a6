# Proves that a symbolic ref is written over a packed ref of its value.
repo files
git refs/heads/main = 1
git refs/heads/s = 1
git pack
sync
ok itself refs/heads/s -> refs/heads/main
power-loss keeps nothing
start
file refs/heads/s ref: refs/heads/main\n
