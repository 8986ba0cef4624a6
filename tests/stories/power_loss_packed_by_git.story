# Proves that recovery accepts a value of refd that git has packed.
repo files
ok refs/heads/x = 2
git pack
sync
power-loss keeps nothing
start
ref refs/heads/x = 2
finding none
file refs/heads/x none
