"""Proves that pygit2 writes through refd after one call, and that a lost
connection is neither success nor failure. Arguments: librefd-git2.so, the
socket, a bare repository with the commits main and main~1, a repository of
SHA-256, a directory for the sockets of broken servers. Prints `ok` and `not ok` lines."""
import ctypes
import multiprocessing
import os
import sys
import threading

import pygit2
from pygit2.errors import check_error

library, path, git_dir, sha256, scratch = sys.argv[1:]
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "clients"))
import server  # pylint: disable=wrong-import-position

refd_git2 = ctypes.CDLL(library)
UNKNOWN = "refd: outcome unknown: "


def attach(repo, socket=None):
    """The one call."""
    pointer = int.from_bytes(repo._pointer, sys.byteorder)
    check_error(refd_git2.refd_git2_attach(
        ctypes.c_void_p(pointer), socket and os.fsencode(socket)))


def opened(socket=None):
    repo = pygit2.Repository(git_dir)
    attach(repo, socket)
    return repo


def shows(name, wanted, got):
    print("ok " + name if wanted == got else
          "not ok %s: wanted %r, got %r" % (name, wanted, got))


def raises(name, kind, words, function):
    try:
        function()
    except kind as error:
        shows(name, True, words in str(error) or str(error))
    else:
        print("not ok %s: no exception" % name)


def value(repo, name):
    return str(repo.references[name].target)


def plain():
    repo = opened()
    one, two = (repo.revparse_single(name).id for name in ("main~1", "main"))
    repo.references.create("refs/heads/p", one)
    raises("a ref that exists", ValueError, "already exists",
           lambda: repo.references.create("refs/heads/p", two))
    stale = repo.references["refs/heads/p"]
    repo.references["refs/heads/p"].set_target(two, "moved")
    shows("set_target", str(two), value(repo, "refs/heads/p"))
    raises("a stale reference", pygit2.GitError, "does not match",
           lambda: stale.set_target(one))
    raises("the same, deleted", pygit2.GitError, "does not match",
           stale.delete)
    raises("a name below a ref", pygit2.GitError, "conflict",
           lambda: repo.references.create("refs/heads/p/x", one))
    raises("a bad name", ValueError, "not valid",
           lambda: repo.references.create("refs/heads/a\nb", one))
    repo.branches.create("q", repo[one])
    repo.branches["q"].rename("r")
    shows("a renamed branch", ["main", "p", "r"], sorted(repo.branches.local))
    repo.branches["r"].delete()
    who = pygit2.Signature("A", "a@example.com")
    made = repo.create_commit("refs/heads/p", who, who, "third\n",
                              repo[two].tree_id, [two])
    shows("create_commit", str(made), value(repo, "refs/heads/p"))
    raises("create_commit on an old parent", pygit2.GitError, "",
           lambda: repo.create_commit("refs/heads/p", who, who, "x\n",
                                      repo[two].tree_id, [two]))
    repo.create_tag("v2", made, repo[made].type, who, "tag\n")
    repo.set_head("refs/heads/p")
    shows("set_head", "refs/heads/p", repo.references["HEAD"].target)
    repo.references.delete("refs/heads/p")
    repo.set_head("refs/heads/main")
    shows("all refs", ["refs/heads/main", "refs/tags/v2"],
          sorted(repo.references))


def threads():
    """pygit2 keeps Python's lock during a write: nobody waits forever."""
    repo = opened()
    one = repo.revparse_single("main~1").id

    def write(number):
        for count in range(5):
            repo.references.create(f"refs/heads/t/{number}-{count}", one)

    running = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    shows("threads", 20, len([name for name in repo.references
                              if name.startswith("refs/heads/t/")]))


def other_formats():
    raises("libgit2 refuses a repository of SHA-256", pygit2.GitError,
           "format", lambda: pygit2.Repository(sha256))


def freed():
    repo = opened("/nonexistent")
    one = repo.revparse_single("main~1").id
    raises("no daemon", pygit2.GitError, "nothing was written",
           lambda: repo.references.create("refs/heads/f", one))
    repo.free()
    attach(repo)
    repo.references.create("refs/heads/f", one)
    shows("attached again after free()", str(one),
          value(repo, "refs/heads/f"))


def worktree():
    opened().add_worktree("w", os.path.join(scratch, "w"))
    repo = pygit2.Repository(os.path.join(scratch, "w"))
    attach(repo)
    one = repo.revparse_single("main~1").id
    repo.set_head(one)
    with open(os.path.join(git_dir, "worktrees", "w", "HEAD")) as head:
        shows("HEAD of a worktree", f"{one}\n", head.read())
    shows("not the HEAD of the repository", "refs/heads/main",
          pygit2.Repository(git_dir).references["HEAD"].target)
    repo.references.create("refs/heads/by-w", one)
    shows("a branch made in a worktree", str(one),
          value(pygit2.Repository(git_dir), "refs/heads/by-w"))


# ---- broken servers ----

def serve(socket, script, ready):
    found = server.Server(socket, script)
    ready.set()
    found._thread.join()


def broken(name, script, function):
    """Calls FUNCTION with a repository whose server runs SCRIPT. A process,
    because pygit2 keeps Python's lock."""
    socket = os.path.join(scratch, f"broken {len(os.listdir(scratch))}")
    ready = multiprocessing.Event()
    process = multiprocessing.Process(target=serve,
                                      args=(socket, script, ready))
    process.start()
    ready.wait(10)
    try:
        function(opened(socket))
    finally:
        process.kill()
        process.join()


def unknown():
    one = pygit2.Repository(git_dir).revparse_single("main~1").id

    def create(repo):
        repo.references.create("refs/heads/u", one)

    def fails(name, words, *script):
        broken(name, script, lambda repo: raises(
            name, pygit2.GitError, words, lambda: create(repo)))

    fails("a lost connection, and the id is expired", UNKNOWN,
          "hello", "read", "close", "hello", "read", "answer expired")
    fails("the status unknown", UNKNOWN,
          "hello", "read",
          "answer results ng unknown^refs/heads/u^^|outcome unknown 1")
    # One with a space, so the shell needs quotes. Another daemon would answer
    # never-seen, and then the caller would do the work again.
    fails("the daemon to ask", f"refd query --socket '{scratch}/broken ",
          "hello", "read", "close", "hello", "read", "answer expired")
    fails("an answer of another kind", UNKNOWN,
          *3 * ("hello", "read", "message answer {id} pong", "close"))
    contrary = "answer results ok^refs/heads/u^^|outcome unknown 1"
    fails("ok, and the outcome is unknown", UNKNOWN,
          *3 * ("hello", "read", contrary, "close"))
    fails("malformed answers", UNKNOWN,
          "hello", "read", "raw nonsense", "close",
          "hello", "read", "raw nonsense", "close",
          "hello", "read", "raw nonsense")
    fails("a definite failure", "nospace",
          "hello", "read",
          "answer results ng nospace^refs/heads/u^^|outcome rejected 1")
    fails("another version", "version 9",
          "message refd version=9")
    broken("a busy daemon", [
        "hello", "read", "answer refused status busy", "read",
        "answer results ok^refs/heads/u^^|outcome committed 1"], create)
    print("ok a busy daemon is asked again")
    broken("a recovering daemon", [
        "hello recovering", "close", "hello", "read",
        "answer results ok^refs/heads/u^^|outcome committed 1"], create)
    print("ok a recovering daemon is awaited")
    broken("the answer is lost", [f"relay {path}"],
           lambda repo: repo.references.create("refs/heads/lost", one))
    shows("an answer that is lost is asked for", True,
          "refs/heads/lost" in pygit2.Repository(git_dir).references)
    shows("no broken server made a ref", False,
          "refs/heads/u" in pygit2.Repository(git_dir).references)


def has_log(name):
    return os.path.exists(os.path.join(git_dir, "logs", name))


def broken_rename():
    """The log moves between the locks and the commit."""
    first, second = "refs/heads/first", "refs/heads/second"
    repo = opened()
    repo.config["core.logAllRefUpdates"] = "true"
    repo.references.create(first, repo.revparse_single("main~1").id)

    def rename(repo):  # Reference.rename of pygit2 1.11 crashes when it fails
        repo.branches["first"].rename("second")

    def fails(name, words, *script):
        broken(name, ["hello", "read",
                      f"answer prepared ok^{first}^^|ok^{second}^^", "read",
                      "close", "hello", "read", *script],
               lambda repo: raises(name, pygit2.GitError, words,
                                   lambda: rename(repo)))

    fails("a session that ended", "aborted", "answer never-seen")
    shows("its log is back", (True, False), (has_log(first), has_log(second)))
    fails("the outcome of a rename", UNKNOWN, "answer expired")
    shows("its log stays", (False, True), (has_log(first), has_log(second)))
    shows("the ref is there", True, first in opened().references)


plain()
threads()
other_formats()
freed()
worktree()
unknown()
broken_rename()
