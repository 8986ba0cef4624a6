"""A handful of objects with ids that are the same in every run."""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# The object format of all repositories: sha1, or sha256.
FORMAT = os.environ.get("REFD_TEST_FORMAT", "sha1")
# The format of their refs: files, or reftable.
REFS = os.environ.get("REFD_TEST_REFS", "files")
HEX = {"sha1": 40, "sha256": 64}[FORMAT]
ZERO = "0" * HEX
MISSING = ("1234567890" * 7)[:HEX]
NAMES = ("c1", "c2", "c3", "c4", "c5", "tag", "tree", "blob")

STREAM = b"".join(
    b"commit refs/heads/made\nmark :%d\n"
    b"committer C O Mitter <committer@example.com> %d +0000\n"
    b"data 2\nc%d%s\n" % (n, 1000000000 + n, n,
                          b"M 644 inline file\ndata 2\n%d\n" % n)
    for n in range(1, 6)) + (
    b"tag annotated\nfrom :1\n"
    b"tagger C O Mitter <committer@example.com> 1000000009 +0000\n"
    b"data 4\ntag\n\n")


class Objects:
    """They lie in one pack at DIR, to be linked into each repository; the
    attributes c1 to c5, tag, tree and blob are their ids."""

    def __init__(self, git, env, dir_):
        def run(*args, stdin=b""):
            return subprocess.run((git, "-C", dir_) + args, env=env,
                                  input=stdin, check=True,
                                  stdout=subprocess.PIPE).stdout.decode()

        subprocess.run((git, "init", "-q", "--bare",
                        "--object-format=" + FORMAT, dir_), env=env,
                       check=True)
        run("fast-import", "--quiet", "--force", stdin=STREAM)
        # A pack with every object: few are too few for one otherwise.
        run("repack", "-adq")
        wanted = "made~4 made~3 made~2 made~1 made annotated made^{tree} " \
            "made:file"
        ids = run("rev-parse", *wanted.split()).split()
        self.ids = dict(zip(NAMES, ids))
        self.__dict__.update(self.ids)
        self.commits = ids[:5]
        self.kinds = {id_: "commit" for id_ in self.commits}
        self.kinds.update({self.tag: "tag", self.tree: "tree",
                           self.blob: "blob"})
        self.pack = os.path.join(dir_, "objects/pack")
        self.files = [f for f in os.listdir(self.pack)
                      if f.endswith((".pack", ".idx"))]

    def peeled(self, id_):
        return self.c1 if id_ == self.tag else None

    def link_into(self, git_dir):
        pack = os.path.join(git_dir, "objects/pack")
        os.makedirs(pack)
        os.makedirs(os.path.join(git_dir, "objects/info"))
        for file in self.files:
            os.link(os.path.join(self.pack, file), os.path.join(pack, file))
