# Proves that a ref cannot have the name of a directory of another ref.
repo any
ok refs/heads/d/f = 1
refused refs/heads/d = 1 because conflict
refused refs/heads/d/f/g = 1 because conflict
refused refs/heads/d/f/g = 1 was 2 because missing
refused atomic refs/heads/x = 1, refs/heads/x/y = 1 because conflict, aborted
ok delete refs/heads/d/f
ok refs/heads/d = 1
ref refs/heads/d = 1
