# Proves that a symbolic ref is written with the lines that git would write.
repo any
ok refs/heads/a = 1
ok itself refs/heads/s -> refs/heads/a
ref refs/heads/s = symbolic
log refs/heads/s 0>1
ok refs/heads/s = 2
ref refs/heads/a = 2
ok itself refs/heads/s -> refs/heads/nowhere
log refs/heads/s 0>1 1>2
ok itself refs/heads/u -> refs/heads/v
ok refs/heads/u = 1
ok refs/heads/u -> refs/heads/nowhere
ref refs/heads/v = symbolic
log refs/heads/u 0>1
ok refs/heads/k = 1
ok itself refs/heads/l -> refs/heads/k
ok atomic refs/heads/k = 2, itself refs/heads/m -> refs/heads/l
log refs/heads/m 0>2
ok atomic itself refs/heads/p -> refs/heads/k, itself refs/heads/q ->
    refs/heads/p
log refs/heads/q 0>2
ok itself HEAD -> refs/heads/b
ref HEAD = symbolic
refused itself HEAD -> x because denied
refused itself delete HEAD because denied
