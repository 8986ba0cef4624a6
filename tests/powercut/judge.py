"""What was found after a disaster against what the ledger allows."""
import subprocess
from collections import Counter

import look
from ledger import ACKED, KILL, UNKNOWN, short

# What a finding can be. The first four are the columns of the table.
KINDS = ("lost", "empty", "lock", "torn", "line", "object", "said", "asked",
         "serve", "litter")


# What refd says of such a table.
NO_FOOTER = ("the check sum of the footer is wrong", "the file is too short")


class Excuses:
    """What stock git may have done to a repository: not refd's promise."""

    def __init__(self, packed_unsynced=False, wrote_unsynced=False,
                 expired_logs=False, torn=False, raw_objects=False,
                 broken=False, no_footers=False):
        # packed-refs may have been renamed before it was on disk.
        self.packed_unsynced = packed_unsynced
        # So may single refs have been, of families that git moves.
        self.wrote_unsynced = wrote_unsynced
        # gc rewrites every reflog without syncing it.
        self.expired_logs = expired_logs
        # Groups that a mode without a promise wrote.
        self.torn = torn
        # Nobody synced objects but refd, and it those that a ref is to name.
        self.raw_objects = raw_objects
        # fsck complained before, and was excused.
        self.broken = broken
        # Git syncs a reftable before it writes the footer.
        self.no_footers = no_footers


class Judge:
    def __init__(self, disaster, excuses, plain, before=False):
        self.disaster = disaster
        self.excuses = excuses
        self.plain = plain
        # What nobody was answered may be half done until recovery.
        self.before = before
        self.findings = []
        self.excused = Counter()
        self.counts = Counter()

    def find(self, kind, text):
        self.counts[kind] += 1
        self.findings.append((kind, text))

    def excuse(self, why):
        self.excused[why] += 1

    def repository(self, git_dir, families):
        """Its families against its files. Returns the values found."""
        refs = look.Refs(git_dir)
        for family in families:
            self.family(git_dir, family, refs.of(family.names))
        for text in refs.complaints:
            if self.excuses.packed_unsynced:
                self.excuse("packed-refs of an unsynced pack-refs")
            elif self.before and self.excuses.no_footers and \
                    any(word in text for word in NO_FOOTER):
                self.excuse("before recovery, a table by git has no footer")
            else:
                self.find("empty", "%s: %s" % (git_dir, text))
        known = {n for f in families for n in f.names}
        for name, value in refs.values.items():
            if value in (look.EMPTY, look.BROKEN) and name not in known:
                self.find("empty", "%s: %s" % (name, value))
        return refs

    # ---- one family ----

    def family(self, git_dir, family, found):
        self.counts["promised"] += sum(
            s.status == ACKED for s in family.steps)
        possible = family.possible(self.disaster)
        fits = [i for i, state in possible if state == found]
        if fits:
            self.logs(git_dir, family, found, fits)
            return
        bad = 0
        for name in family.names:
            allowed = {state[name] for _, state in possible}
            if found[name] in allowed:
                continue
            bad += 1
            self.ref(family, name, found[name], allowed)
        whole = {n: v if v not in (look.EMPTY, look.BROKEN) else None
                 for n, v in found.items()}
        if len(family.names) > 1 and whole not in family.history():
            if self.excuses.packed_unsynced or self.excuses.torn:
                self.excuse("groups that nobody promised to keep whole")
            else:
                self.find("torn", "%s: %s" % (
                    {n: short(v) for n, v in found.items()}, family.told()))

    def ref(self, family, name, value, allowed):
        text = "%s %s is %s, not %s; %s" % (
            family.repo.rsplit("/", 1)[1], name, short(value),
            " or ".join(sorted(short(v) for v in allowed)), family.told())
        if value in (look.EMPTY, look.BROKEN):
            if self.excuses.wrote_unsynced and family.unpromised():
                self.excuse("refs that were written unsynced, empty")
            else:
                self.find("empty", text)
        elif self.excuses.packed_unsynced:
            self.excuse("refs lost by an unsynced pack-refs")
        else:
            self.find("lost", text)

    def logs(self, git_dir, family, found, fits):
        for name in family.names:
            log = look.Log(git_dir, name)
            if log.there and log.is_empty and found[name] is None and \
                    not family.shared:
                # Of a creation that did not happen.
                self.find("litter", "%s: an empty log of %s" % (
                    git_dir, name))
                continue
            why = None
            for index in fits:
                why = self.log(family, name, log, index,
                               found[name] is not None)
                if why is None and name == "refs/heads/main":
                    why = self.log(family, name, look.Log(git_dir, "HEAD"),
                                   index, True)
                    why = why and "(HEAD's) " + why
                if why is None:
                    break
            if why is None:
                continue
            text = "%s: the log of %s %s; it has %s; %s" % (
                git_dir.rsplit("/", 1)[1], name, why,
                " ".join(log.tags[-8:]) or "no lines", family.told(12))
            if self.excuses.expired_logs:
                self.excuse("logs that gc rewrote unsynced")
            else:
                self.find("line", text)

    def log(self, family, name, log, index, there):
        """What is wrong with it, if step INDEX was the last that happened."""
        must, never, before = family.expected_lines(name, index)
        seen = Counter(log.tags)
        half_done = self.before and not family.is_open()
        if not there:
            return "is still there" if log.there and not half_done and \
                not family.unpromised() else None
        for tag in must:
            if seen[tag] != 1 and not family.deleted_unpromised(name):
                return "has %d lines of %s" % (seen[tag], tag)
        for tag in never:
            if seen[tag]:
                return "has a line of %s" % tag
        first = min((log.tags.index(t) for t in must if seen[t]), default=None)
        if first is not None and before & set(log.tags[first:]):
            return "has lines of before a deletion behind later ones"
        twice = [t for t, n in seen.items() if n > 1]
        if twice:
            return "has lines twice: %s" % twice
        order = [t for t in log.tags if t in set(must)]
        if order != [t for t in must if seen[t]]:
            return "is out of order"
        # git appends without a sync, and nobody has to mend what it left.
        if log.bad and not (half_done or family.unpromised() or
                            family.last_line_unpromised(name)):
            return "is broken: %s" % log.bad[0]
        if not log.joined and not family.shared:
            return "has a line that does not begin where the last one ended"
        return None

    # ---- the repository as a whole ----

    def locks(self, git_dir):
        for path in look.locks(git_dir):
            self.find("lock" if path.endswith(".lock") else "litter",
                      "%s/%s" % (git_dir, path))

    def health(self, place, git_dir):
        for args in (["fsck", "--no-dangling", "--no-progress"],
                     ["for-each-ref"]):
            done = subprocess.run([place.git, "-C", git_dir] + args,
                                  env=place.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            said = (done.stderr + (done.stdout if args[0] == "fsck" else
                                   b"")).decode(errors="replace").strip()
            said = "; ".join(line for line in said.split("\n")
                             if line and not line.startswith("notice: "))
            if done.returncode == 0 and not said:
                continue
            text = "%s: git %s ends with %d: %s" % (
                git_dir, args[0], done.returncode, said[:600])
            if self.excuses.wrote_unsynced or self.excuses.packed_unsynced:
                self.excuse("what fsck says beside unsynced git")
            elif self.excuses.broken:
                self.excuse("what fsck said before")
            elif self.excuses.raw_objects and args[0] == "fsck" and \
                    not look.leads_to(place, git_dir, said):
                self.excuse("objects of unanswered pushes")
            else:
                self.find("object", text)
            # for-each-ref has little to add to an fsck that complains.
            break


def is_taken_back(step, answer):
    """Did recovery give up STEP, because refs of another writer stand above or
    below its names? Then the question by id is answered `conflict`
    (docs/limits.md, History and outcomes)."""
    if not isinstance(answer, dict):
        return False
    names = step.family.names
    codes = {answer.get(n) for n in names if n in answer}
    if "conflict" not in codes or not codes <= {"conflict", "aborted"}:
        return False
    return any(a.startswith(b + "/") or b.startswith(a + "/")
               for a in look.Refs(step.family.repo).values for b in names)


def resolve(wire, families, excused):
    """Asks the daemon what became of steps without an answer, and of some
    that had one. Returns findings, and counts in EXCUSED."""
    findings, answers = [], {}
    for family in families:
        for step in family.steps[-3:]:
            if step.txid is None:
                continue
            if step.txid not in answers:
                answers[step.txid] = wire.query(step.txid)
            answer = answers[step.txid]
            verdict = verdict_of(step, answer)
            if not step.promised:
                # It may be in the refs and not in the journal, or the other
                # way round.
                continue
            if step.status == UNKNOWN and verdict:
                family.end(step, verdict)
            elif step.status == ACKED and is_taken_back(step, answer):
                excused["updates whose name git took"] += 1
            elif step.status == ACKED and verdict != ACKED:
                findings.append(("asked", "%s, but asked again the answer "
                                 "is %s" % (step, answer)))
    return findings


def verdict_of(step, answer):
    """ACKED, "refused", or None where the answer says neither."""
    if answer == "never-seen":
        return "refused"
    if isinstance(answer, str):
        return None
    codes = {answer.get(n) for n in step.family.names if n in answer}
    if codes == {"ok"}:
        return ACKED
    if "unknown" in codes or not codes:
        return None if codes else "refused"
    return "refused"


def after_kill(families):
    """What was found is what happened: nothing is open any more."""
    for family in families:
        refs = look.Refs(family.repo).of(family.names)
        for step in family.steps:
            if step.status == UNKNOWN:
                family.end(step, "seen" if refs == step.after else "refused")


__all__ = ["Excuses", "Judge", "resolve", "after_kill", "KILL", "KINDS"]
