"""Moves a branch through refd, with pygit2.

    move_branch.py /srv/git/a.git refs/heads/topic COMMIT
"""
import ctypes
import os
import sys

import pygit2
from pygit2.errors import check_error

REFD_GIT2 = ctypes.CDLL("librefd-git2.so.0")


def attach(repo, socket=None):
    """From now on, REPO writes refs through refd. Call again after
    repo.free()."""
    pointer = int.from_bytes(repo._pointer, sys.byteorder)
    check_error(REFD_GIT2.refd_git2_attach(
        ctypes.c_void_p(pointer), socket and os.fsencode(socket)))


def main(path, name, commit):
    repo = pygit2.Repository(path)
    attach(repo)
    try:
        repo.references.create(name, commit, force=True)
    except pygit2.GitError as error:
        # Neither success nor failure: the write may still be done.
        if str(error).startswith("refd: outcome unknown: "):
            sys.exit(f"perhaps: {error}")
        sys.exit(f"no: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
