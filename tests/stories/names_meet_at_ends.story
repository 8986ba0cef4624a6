# Proves that ends of symbolic refs in one transaction do not meet.
repo reftable
ok refs/heads/t -> refs/heads/x/y, refs/heads/u -> refs/heads/x, refs/heads/r ->
    refs/heads/x
refused atomic refs/heads/u = 1, refs/heads/r = 2 because conflict, aborted
refused refs/heads/u = 1, refs/heads/r = 2 because conflict, ok
ok delete refs/heads/x
refused atomic refs/heads/x = 1, refs/heads/t = 1 because aborted, conflict
refused atomic refs/heads/u = 1, refs/heads/t = 1 because aborted, conflict
refused atomic refs/heads/u = 1, refs/heads/x/z = 1 because conflict, aborted
refused atomic HEAD = 4, refs/heads/main = 4 because conflict
