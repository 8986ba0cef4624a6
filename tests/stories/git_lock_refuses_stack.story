# Proves that the lock of git on the list of tables stops all updates.
repo reftable
ok refs/heads/a = 1
git lock refs/heads/a
refused refs/heads/a = 2, refs/heads/b = 1 because locked
ref refs/heads/a = 1
lock refs/heads/a
git unlock refs/heads/a
ok refs/heads/a = 2
