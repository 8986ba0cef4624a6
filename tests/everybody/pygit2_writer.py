"""Changes refs with pygit2, which runs no hooks. Input and output are those of
JgitWriter.java."""
import sys

import pygit2

repos = {}
batch = []


def change(path, ref, old, new):
    """libgit2 compares the present value with the value that it read."""
    if path not in repos:
        repos[path] = pygit2.Repository(path)
    repo = repos[path]
    if not old.strip("0"):
        repo.create_reference_direct(ref, pygit2.Oid(hex=new), False)
        return
    present = repo.lookup_reference(ref)
    if present.target.hex != old:
        raise ValueError("is at another value")
    if new.strip("0"):
        present.set_target(new)
    else:
        present.delete()


for line in sys.stdin:
    if line.strip():
        batch.append(line.split())
        continue
    for words in batch:
        try:
            change(*words)
            print("ok", words[1])
        except (pygit2.GitError, KeyError, OSError, ValueError) as error:
            print("ng", words[1], repr(error))
    print(flush=True)
    batch = []
