# Proves that a session keeps its locks from prepare to commit.
repo files
ok refs/heads/a = 1
prepare atomic s: refs/heads/a = 2 was 1, HEAD = 2, delete refs/heads/gone
lock HEAD refs/heads/a refs/heads/main refs/heads/gone packed-refs
file packed-refs.new none
ref refs/heads/a = 1
refused refs/heads/a = 3 because locked
refused refs/heads/main = 3 because locked
ok refs/heads/b = 1
commit
lock none
ref refs/heads/a = 2
ref refs/heads/main = 2
answer s = ok
