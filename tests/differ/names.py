"""Names, values, messages and dates to draw from. A weight stands before each
choice; what is likely keeps the transactions going, what is not is there to
make them fail."""

# Few enough to meet again, and with each other as directory and file.
USUAL = [
    "refs/heads/main", "refs/heads/a", "refs/heads/a/b", "refs/heads/a/b/c",
    "refs/heads/b", "refs/heads/d/e", "refs/heads/d/f", "refs/heads/d/f/g",
    "refs/heads/sym", "refs/heads/deep/er/still", "refs/heads/\u00e9t\u00e9",
    "refs/tags/t", "refs/tags/t/u", "refs/tags/v1", "refs/remotes/o/main",
    "refs/remotes/o/HEAD", "refs/notes/n", "refs/x/y", "refs/one",
    "refs/sym", "refs/tags/sym",
]
OWN = [
    "HEAD", "HEAD", "HEAD", "ORIG_HEAD", "FOO", "AUTO_MERGE",
    "refs/bisect/bad", "refs/bisect/good/1", "refs/worktree/w",
    "refs/rewritten/r", "refs/bisect/sym",
]
OTHERS = [
    "main-worktree/HEAD", "main-worktree/refs/bisect/bad",
    "main-worktree/refs/heads/a", "main-worktree/FOO",
    "worktrees/wt1/HEAD", "worktrees/wt1/refs/bisect/bad",
    "worktrees/wt1/refs/heads/a", "worktrees/wt2/HEAD",
    "worktrees/none/HEAD", "worktrees/wt1/FOO", "worktrees/wt1",
]
ODD = [
    "refs/heads/bad..name", "refs/heads/x.lock", "refs/heads/x.lock/y",
    "refs/heads/", "/refs/heads/x", "refs/heads/.x", "refs//x",
    "refs/heads//x", "@", "refs/heads/@", "refs/heads/a@{b", "refs/heads/q ",
    "refs/heads/two words", "refs/heads/dot.", "refs/heads/tab\tname",
    "refs/heads/\x7f", "refs/heads/\udcff", "refs/heads/a\\b", "refs/heads/*",
    "refs", "refs/", "heads/x", "foo", "a/b", "FETCH_HEAD", "MERGE_HEAD",
    "CONFIG", "A-B", "-x", "refs/heads/-x", "refs/heads/a/../b", "../x",
    "refs/../x", "refs/heads/HEAD", "HEAD/x", "", ".", "..", "Head",
    "refs/heads/" + "l" * 255, "refs/heads/" + "l" * 256,
    "refs/heads/" + "n/" * 100 + "n", "refs/heads/new\nline",
]
TARGETS = [
    "refs/heads/main", "refs/heads/a", "refs/heads/b", "refs/heads/sym",
    "refs/tags/t", "refs/heads/nowhere", "refs/sym", "refs/tags/sym", "HEAD",
    "refs/heads/d/f", "refs/bisect/bad", "refs/heads/deep/dangling",
    "refs/bisect/sym",
]
ODD_TARGETS = ["../outside", "refs/heads/../../outside", "foo", "FOO",
               "refs/heads/bad..name", "", "/etc/x", "refs/heads/x.lock",
               "main-worktree/HEAD", "FETCH_HEAD"]
MESSAGES = ["moved", "moved", "two words", "  around  ", "a\nb", "tab\there",
            "\n", " ", "", "\u00e9t\u00e9", "x" * 3000, "end\n\n"]
LOG_VALUES = [None, None, "true", "false", "always", "ALWAYS", "1", "0", "",
              "yes", "on", "0x1", None, None, None, None, None, "nonsense"]
SHARED_VALUES = [None, None, None, None, "group", "all", "true", "0660",
                 "0640", "0666", "world", "umask", "false", "2"]
UMASKS = [0o022, 0o022, 0o022, 0o077, 0o002, 0o027, 0o000]
ZONES = ["+0000", "+0200", "-0330", "+1245"]
# The committer, as the environment has it.
WHO = [{}, {}, {}, {"GIT_COMMITTER_NAME": " A. , B. ",
                    "GIT_COMMITTER_EMAIL": "<a@b>"},
       {"GIT_COMMITTER_NAME": "\u00c9"}, {"GIT_COMMITTER_EMAIL": ""},
       {"GIT_COMMITTER_NAME": ""},
       {"GIT_COMMITTER_NAME": None}, {"GIT_COMMITTER_EMAIL": None},
       {"GIT_COMMITTER_NAME": None, "GIT_COMMITTER_EMAIL": None}]
OVERRIDES = [("core.logAllRefUpdates", "always"),
             ("core.logAllRefUpdates", "false"),
             ("core.logAllRefUpdates", "true"),
             ("core.sharedRepository", "group"),
             ("core.sharedRepository", "0600"),
             ("user.name", "Else"), ("committer.email", "else@example.com"),
             ("core.filesRefLockTimeout", "0"),
             ("core.packedRefsTimeout", "0"),
             ("core.preferSymlinkRefs", "true")]


def date(rng, n):
    """Counts up, so that no two lines of a log are the same by chance."""
    seconds = 1700000000 + 60 * n
    zone = rng.choice(ZONES)
    return rng.choice(["%d %s", "%d %s", "%d %s", "@%d %s"]) % (seconds, zone)


def pick(rng, table):
    """From pairs of a weight and a thing, or a function that makes it."""
    at = rng.random() * sum(weight for weight, _ in table)
    for weight, thing in table:
        at -= weight
        if at < 0:
            break
    return thing() if callable(thing) else thing
