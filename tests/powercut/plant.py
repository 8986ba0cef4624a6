"""Faults that the rig must see: what it would not notice proves nothing.

Each is done to a daemon, a journal or a repository in an otherwise ordinary
trial, which then has to find something of the kinds that it names.
"""
import os
import sqlite3

import look
import place as pl
from ledger import ACKED
from look import HEX


class Plant:
    kinds = ()
    # Flushes of the daemon that are not done.
    drop = 0
    no_recovery = False
    # In so many trials it has to be seen once.
    trials = 5

    def before_recovery(self, trial):
        pass

    def after_recovery(self, trial):
        pass


class NoFlush(Plant):
    """the daemon's flushes do nothing"""
    kinds = ("lost", "line", "asked", "object")
    drop = pl.FDATASYNC | pl.FSYNC | pl.SYNCFS | pl.SYNC_RANGE


class NoJournalFlush(Plant):
    """the journal's flush does nothing"""
    kinds = ("lost", "line", "asked")
    drop = pl.FDATASYNC


class NoRecovery(Plant):
    """nobody recovers"""
    kinds = ("lost", "empty", "line")
    no_recovery = True
    # Two thirds of the cuts and kills leave nothing but locks to recovery.
    trials = 30


class ForgottenRecord(Plant):
    """recovery does not see the journal's last records"""
    kinds = ("lost", "line", "asked")

    def before_recovery(self, trial):
        path = trial.state + "/journal.db"
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM record WHERE lsn > "
                       "(SELECT max(lsn) - 40 FROM record)")
        db.close()
        # SQLite has emptied the WAL, which refd would refuse as cut short.
        if os.path.exists(path + "-room"):
            os.unlink(path + "-room")


def acknowledged(trial, there):
    """Families of one ref whose last word was an acknowledgement."""
    for family in trial.families():
        if len(family.names) == 1 and family.steps and \
                family.steps[-1].status == ACKED and \
                (family.now[family.names[0]] is not None) == there:
            yield family, "%s/%s" % (family.repo, family.names[0])


class Empty(Plant):
    """a ref is left empty"""
    kinds = ("empty",)

    def after_recovery(self, trial):
        for _, path in acknowledged(trial, True):
            return put(path, "")


class Stale(Plant):
    """a ref is left at an older value"""
    kinds = ("lost",)

    def after_recovery(self, trial):
        for family, path in acknowledged(trial, True):
            if family.base[family.names[0]] != family.now[family.names[0]]:
                return put(path, family.base[family.names[0]] or
                           trial.place.oids[-1])


class Undeleted(Plant):
    """a deletion is undone"""
    kinds = ("lost",)

    def after_recovery(self, trial):
        for _, path in acknowledged(trial, False):
            return put(path, trial.place.oids[0])


class Torn(Plant):
    """one of an atomic group is at another value"""
    kinds = ("torn",)

    def after_recovery(self, trial):
        for family in trial.families():
            found = look.Refs(family.repo).of(family.names)
            if len(family.names) > 1 and all(found.values()):
                before = family.history()[0][family.names[0]]
                return put("%s/%s" % (family.repo, family.names[0]),
                           before if before != found[family.names[0]] and
                           before else trial.place.oids[-1])


class Lock(Plant):
    """a lock is left"""
    kinds = ("lock",)

    def after_recovery(self, trial):
        put(trial.repos[0] + "/refs/heads/any.lock", "")


def logs_with_lines(trial):
    for family, path in acknowledged(trial, True):
        log = path.replace(family.repo, family.repo + "/logs")
        raw = look.read(log)
        if raw and not family.shared:
            yield log, raw.decode().splitlines(True)


class LineGone(Plant):
    """a line of a reflog is missing"""
    kinds = ("line",)

    def after_recovery(self, trial):
        for log, lines in logs_with_lines(trial):
            return put(log, "".join(lines[:-1]))


class LineTwice(Plant):
    """a line of a reflog is there twice"""
    kinds = ("line",)

    def after_recovery(self, trial):
        for log, lines in logs_with_lines(trial):
            return put(log, "".join(lines + lines[-1:]))


class LineTorn(Plant):
    """a reflog ends in the middle of a line"""
    kinds = ("line",)

    def after_recovery(self, trial):
        for log, lines in logs_with_lines(trial):
            return put(log, "".join(lines) + "\0" * 40)


class ObjectGone(Plant):
    """the objects that a ref needs are missing"""
    kinds = ("object",)

    def after_recovery(self, trial):
        for repo in trial.repos:
            folder = repo + "/objects/pack"
            for file in os.listdir(folder):
                if file.endswith(".pack"):
                    os.truncate(folder + "/" + file, 20)


PLANTS = (NoFlush, NoJournalFlush, NoRecovery, ForgottenRecord, Empty, Stale,
          Undeleted, Torn, Lock, LineGone, LineTwice, LineTorn, ObjectGone)


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + ("\n" if len(text) == HEX else ""))


def self_test(place, options, make_trial):
    """Whether each of them is seen, in the first few trials."""
    missed = 0
    for kind in PLANTS:
        options.plant = kind()
        options.drop = kind.drop
        seen, tries = None, 0
        for seed in range(1, kind.trials + 1):
            trial = make_trial(seed, place, options)
            found = {k for k, _ in trial.run()}
            place.forget_log()
            tries += 1
            if found & set(kind.kinds):
                seen = ", ".join(sorted(found))
                break
        missed += not seen
        print("%s: %s: %s" % (
            "ok" if seen else "not ok", kind.__doc__,
            "found %s%s" % (seen, " in the %dth trial" % tries
                            if tries > 1 else "")
            if seen else "nobody noticed"), flush=True)
    return missed
