# Proves that a session deletes its packed ref whose lock a person removed.
repo files
git refs/heads/p = 1
git refs/heads/q = 2
git pack
prepare atomic s: delete refs/heads/p
remove packed-refs.lock
refused atomic delete refs/heads/q because locked
commit
lock none
ref refs/heads/p = none
ref refs/heads/q = 2
ok delete refs/heads/q
