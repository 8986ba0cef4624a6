"""What was asked, what was acknowledged, and what may therefore be found.

A *family* is a set of refs with one writer at a time, so that its history has
one order: a ref alone, or a group that is moved as a whole. A value is an
object's name; None is a ref that is not there. Each *step* of a history is

ACKED    its writer was told that it is durable
SEEN     it happened, but nobody promised that it stays: stock git's, and
         what refd does in its weaker modes
UNKNOWN  it was asked for, and no answer came
REFUSED  it did not happen
"""
ACKED, SEEN, UNKNOWN, REFUSED = "acked", "seen", "unknown", "refused"

# The daemon is gone; all power is; the repositories' disk is, and comes back
# under a daemon that lives on.
KILL, CUT, DISK = "kill", "cut", "disk"


class Step:
    def __init__(self, family, after, tag, by_git, txid, promised):
        self.family = family
        self.before = family.now
        self.after = after
        self.tag = tag
        self.by_git = by_git
        self.txid = txid
        # Whether an answer would be ACKED.
        self.promised = promised
        self.status = UNKNOWN

    def changed(self):
        """The refs that are at another value afterwards: they get a line."""
        return [n for n in self.family.names if self.before[n] !=
                self.after[n]]

    def __str__(self):
        what = ", ".join("%s %s" % (n, short(self.after[n]))
                         for n in self.family.names
                         if self.before[n] != self.after[n]) or "confirm"
        return "%s by %s (%s): %s" % (
            self.tag, "git" if self.by_git else "refd", self.status, what)


class Family:
    def __init__(self, repo, names, base=None, lines=None):
        self.repo = repo
        self.names = tuple(names)
        # Whether something was written here without a promise: lines of that
        # may be missing between others.
        self.shared = False
        self.reset(base or dict.fromkeys(self.names), lines)

    def reset(self, base, lines=None):
        """What is there now is where the history begins."""
        self.base = {n: base[n] for n in self.names}
        # Tags of the log lines that were there.
        self.lines = {n: list((lines or {}).get(n, ())) for n in self.names}
        self.steps = []
        self.now = self.base

    def begin(self, after, tag, by_git, promised, txid=None):
        step = Step(self, after, tag, by_git, txid, promised)
        self.shared |= not promised
        self.steps.append(step)
        return step

    def end(self, step, status):
        step.status = status
        if status in (ACKED, SEEN):
            self.now = step.after

    def is_open(self):
        """Nothing more may be asked for where something is not known."""
        return not self.steps or self.steps[-1].status != UNKNOWN

    def unpromised(self):
        """Whether there is something later than what is certain to stay."""
        for step in reversed(self.steps):
            if step.status == ACKED:
                return False
            if step.status != REFUSED and not step.promised:
                return True
        return False

    def last_line_unpromised(self, name):
        """Whether nobody promised NAME's last log line: it can be torn behind
        a confirmation, which writes none."""
        for step in reversed(self.steps):
            if step.status != REFUSED and name in step.changed():
                return not step.promised
        return False

    def deleted_unpromised(self, name):
        """Whether NAME was taken away after that; its log went as well, and
        one may have reached the disk without the other."""
        for step in reversed(self.steps):
            if step.status == ACKED:
                return False
            if step.status != REFUSED and step.after[name] is None:
                return True
        return False

    def possible(self, disaster):
        """(index of the last step that is in it, state), the newest last;
        index -1 is the base."""
        states = [(-1, self.base)]
        for i, step in enumerate(self.steps):
            if step.status == REFUSED:
                continue
            certain = step.status == ACKED or \
                (step.status == SEEN and disaster == KILL)
            if certain:
                states = []
            states.append((i, step.after))
        return states

    def history(self):
        """Every state it ever had or may have had."""
        return [self.base] + [s.after for s in self.steps
                              if s.status != REFUSED]

    def expected_lines(self, name, index):
        """Of NAME's reflog when step INDEX was the last to happen: the tags
        that must be there, in their order; those that must not; and those
        that must not come behind any of the first. A log goes with its ref,
        but what git took away may come back, as it was."""
        must, never, gone = list(self.lines[name]), set(), []
        before = set()
        last_acked = max((i for i, s in enumerate(self.steps)
                          if s.status == ACKED), default=-1)
        for i, step in enumerate(self.steps):
            if step.status == REFUSED:
                never.add(step.tag)
                continue
            if step.status == ACKED and step.before[name] is None:
                # It was seen not to be there: whatever its log was went
                # with it. Otherwise nobody can tell that git took it away
                # in between.
                before.update(gone)
            if i > index or name not in step.changed():
                continue
            if step.after[name] is None:
                if i <= last_acked and not step.by_git:
                    never.update(must)
                gone += must
                must = []
            elif step.status == ACKED:
                must.append(step.tag)
        return must, never, before

    def told(self, last=6):
        return "; ".join(["began at %s" % {
            n: short(v) for n, v in self.base.items()}] +
            [str(s) for s in self.steps[-last:]])


def short(value):
    return value[:8] if value else "-"
