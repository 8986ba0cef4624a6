# Proves that a start removes the locks of refd, and no lock of git.
repo files
killed refs/heads/x = 1
git lock refs/heads/y
start
ref refs/heads/x = 1
lock refs/heads/y
