# Proves that a deletion that fails keeps its packed ref, and others go.
repo files
git refs/heads/main = 1
git refs/heads/q = 2
git refs/heads/r = 3
git pack
write logs/HEAD/x
refused delete refs/heads/main, delete refs/heads/q because conflict, ok
ref refs/heads/main = 1
ref refs/heads/q = none
ok refs/heads/a = 1
refused delete refs/heads/main, delete refs/heads/a because conflict, ok
ref refs/heads/main = 1
refused atomic delete refs/heads/main, delete refs/heads/r because conflict,
    aborted
ref refs/heads/main = 1
ref refs/heads/r = 3
file packed-refs.new none
