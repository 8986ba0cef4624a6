# Proves that updates and deletions see packed refs, and keep the others.
repo files
git refs/heads/p = 1
git refs/heads/q = 2
git pack
refused refs/heads/p = 3 was 2 because stale
ok refs/heads/p = 3 was 1
ref refs/heads/p = 3
ok delete refs/heads/p was 3
ref refs/heads/p = none
ref refs/heads/q = 2
ok delete refs/heads/q, refs/heads/x = 1
ref refs/heads/q = none
file packed-refs.new none
