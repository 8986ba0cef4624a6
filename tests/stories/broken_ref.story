# Proves that a broken ref is not overwritten.
repo files
write refs/heads/a
refused refs/heads/a = 1 because broken
