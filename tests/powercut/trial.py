"""One trial: new disks, then rounds of load, disaster, recovery, comparison.
All of it is drawn from one seed, but for what the machine's own timing does.
"""
import os
import random
import re
import shutil
import subprocess
import time
from collections import Counter

import disks
import judge
import load
import look
import place as pl
import wire
from ledger import CUT, DISK, KILL

ROUNDS = 2

# What each mode promises: nothing; what is found after recovery; and that
# without recovery, too.
MODES = ("none", "periodic", "journal", "batch", "fsync")
WEAK, ALONE = ("none", "periodic"), ("batch", "fsync")

LOST = re.compile(r'event=object-lost path="([^"]*)"')


def knows_modes(place):
    """Whether this daemon has them: one that does not ends at once."""
    done = subprocess.run(
        [place.refd, "daemon", "--durability", "fsync", "--root", "/nowhere",
         "--state", "/nowhere", "--socket", place.top + "/no.sock"],
        env=place.env, timeout=120, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    return b"not there yet" not in done.stdout


class Plan:
    """What a seed makes of it. What the options fix is drawn all the same, so
    that the rest does not change with them."""

    def __init__(self, seed, options):
        self.seed = seed
        rng = random.Random(seed)

        def draw(fixed, choices):
            drawn = rng.choice(choices)
            return drawn if fixed is None else fixed
        self.fs = draw(options.fs, disks.KINDS)
        self.state_fs = draw(options.state_fs, ("same",) * 3 + disks.KINDS)
        if self.state_fs == "same":
            self.state_fs = None
        reference = rng.random() < 0.7
        self.reference = reference if options.reference is None else \
            options.reference
        self.beside = rng.random() < 0.8 if options.beside is None else \
            options.beside
        # Without git there is nobody to leave it out. A git without it may
        # lose all refs in reftables.
        self.reference |= not self.beside or look.REFS == "reftable"
        self.cuts = []
        for kind in (self.fs, self.state_fs or self.fs):
            cuts = disks.CUTS[kind]
            drawn = rng.choice(cuts)
            self.cuts.append(options.cut if options.cut in cuts else drawn)
        self.lossy = "cache" in self.cuts
        if self.lossy:
            self.cuts = ["cache", "cache"]
        self.delay_us = rng.choice((0, 0, 500, 3000))
        # Objects that nobody synced but refd. With housekeeping they would
        # get into packs that nobody synced, and that is git's own.
        self.raw_objects = rng.random() < 0.5 and not self.beside
        # Another one after each start, mostly the usual one.
        self.modes = [rng.choice(("journal",) * 4 + MODES)
                      for _ in range(ROUNDS)]
        if options.durability != "any":
            self.modes = [options.durability] * ROUNDS
        # Whether a cut ends the boot, too: its own draw, so that older seeds
        # keep their meaning.
        self.boots = random.Random("boots %d" % seed).random() < 0.5 or \
            options.boots
        # A newer git packs refs by --auto, and then a gate is needed. Its own
        # draw, too.
        self.gate = self.beside and look.REFS == "files" and \
            random.Random("gate %d" % seed).random() < 0.5
        self.rng = rng

    def __str__(self):
        return "%s%s, %s%s%s%s%s" % (
            self.fs, ", journal on %s" % self.state_fs if self.state_fs
            else "", " and ".join(sorted(set(self.cuts))),
            ", beside git" if self.beside else
            ", objects unsynced" if self.raw_objects else "",
            "" if self.reference else " without reference",
            ", gate" if self.gate else "", ", boots" if self.boots else "")


class Trial:
    def __init__(self, seed, place, options):
        self.plan = Plan(seed, options)
        self.rng = self.plan.rng
        self.place = place
        self.options = options
        self.told = []
        self.findings = []
        self.counts = Counter()
        self.excused = Counter()
        self.before = Counter()
        self.cuts = 0
        # Since the last time that everything was on disk.
        self.modes_used = set()
        # Repositories that lack objects which nobody promised.
        self.broken = set()
        # `default` has everything but `reference` and loose objects.
        place.core_fsync = None if self.plan.reference else "default"
        self.repos = [place.disk_path + "/r%d.git" % i for i in range(2)]
        self.make_disks()
        self.actors = self.make_actors()

    def say(self, text):
        self.told.append(text)
        if self.options.verbose:
            print("    " + text, flush=True)

    # ---- the stage ----

    def make_disks(self):
        place, plan = self.place, self.plan
        helper = pl.BUILD + "/tests/helper/lossy_disk"
        self.disks = [disks.Disk("disk", plan.fs, place.image(
            plan.fs, 2), place.disk_path, helper)]
        self.state = place.disk_path + "/state"
        if plan.state_fs and not place.plain:
            self.disks.append(disks.Disk(
                "state", plan.state_fs, place.image(plan.state_fs, 0),
                place.state_disk_path, helper))
            self.state = place.state_disk_path + "/state"

    def mount(self):
        look.forget()
        for disk in self.disks:
            disk.mount(self.plan.lossy)

    def make_actors(self):
        place, seed, plan = self.place, self.plan.seed, self.plan
        a, b = self.repos
        actors = [load.Mover("m0", a, place, seed),
                  load.Mover("m1", b, place, seed),
                  load.Grouper("g0", a, place, seed),
                  load.Grouper("g1", b, place, seed),
                  load.Pusher("p0", self.rng.choice(self.repos), place, seed)]
        self.kept = set()
        if place.plain:
            return actors + [load.Keeper("k0", a, place, seed)]
        if plan.beside:
            actors.append(load.Both("b0", self.rng.choice(self.repos), place,
                                    seed))
            # Without housekeeping all is promised, however git syncs.
            keepers = [a] if not plan.reference else \
                self.rng.sample(self.repos, self.rng.randint(1, 2))
            for i, repo in enumerate(keepers):
                self.kept.add(repo)
                actors.append(load.Keeper("k%d" % i, repo, place, seed))
        return actors

    def families(self, repo=None):
        return [f for a in self.actors for f in
                a.families + ([a.group] if hasattr(a, "group") else [])
                if repo is None or f.repo == repo]

    # ---- a trial ----

    def configure(self):
        """How git syncs what receive-pack and the like write: that is asked
        of the repository. The files are not part of what is tried."""
        place, value = self.place, None
        place.gated.clear()
        if self.plan.gate and place.has_auto and not place.plain:
            for repo in self.repos:
                place.put_gate(repo)
        if place.plain:
            value = self.options.core_fsync
        elif self.plan.raw_objects:
            value = "reference,-objects"
        for repo in self.repos if value else ():
            place.git_output(["-C", repo, "config", "core.fsync", value])
        for disk in self.disks:
            disks.sync(disk)

    def run(self):
        self.mount()
        self.configure()
        try:
            for number in range(ROUNDS):
                self.round(number)
                if self.findings and not self.place.plain:
                    break
        finally:
            self.place.end_group()
            for disk in self.disks:
                disk.remove()
        self.findings += [("said", line.strip()) for line in
                          self.place.daemon_said()
                          if "Sanitizer" in line or "runtime error:" in line]
        return self.findings

    def round(self, number):
        plan, rng, place = self.plan, self.rng, self.place
        gate = load.Gate()
        disaster = rng.choice((CUT, CUT, CUT, CUT, KILL))
        dies = rng.random() < 0.5
        if self.options.disk_dies is not None:
            dies = self.options.disk_dies
        if place.plain:
            disaster = CUT
        elif dies and len(self.disks) > 1 and plan.cuts[0] in disks.HOW and \
                not self.options.table:
            disaster = DISK
        trick = rng.choice(("none", "none", "hold", "fail"))
        # A flush that never returns: that daemon would not live.
        if disaster == DISK and trick == "hold":
            trick = "none"
        nth = rng.randint(1, 60)
        kinds = rng.choice((pl.FDATASYNC, pl.FDATASYNC, 15))
        gate.moment = int(10 ** rng.uniform(0.5, 2.9))
        slack = rng.choice((0, 0, 0.002, 0.02, 0.3))
        place.page.set(delay_us=plan.delay_us)
        place.start_group()
        self.take_mode(plan.modes[number])
        if not place.plain and not self.start():
            return
        if trick == "hold":
            place.page.set(delay_us=plan.delay_us, kinds=kinds, hold_at=nth)
        elif trick == "fail":
            place.page.set(delay_us=plan.delay_us, kinds=kinds, fail_at=nth)
        if self.options.drop:
            place.page.set(drop=self.options.drop)
        threads = [a.again(gate) for a in self.actors]
        self.wait_for_the_moment(gate, trick, slack)
        gate.close()
        if disaster == DISK and not place.daemon_lives():
            disaster = CUT
        if disaster == DISK:
            self.disk_dies()
        else:
            self.disaster(disaster, rng.random() < 0.3)
        for thread in threads:
            thread.join(240)
        self.findings += gate.findings
        self.say("round %d: %s after %d acknowledgements%s" % (
            number, disaster, gate.acked,
            "" if trick == "none" or place.plain else ", %s the %dth %s" % (
                trick, nth, "sync" if kinds == 15 else "fdatasync")))
        self.counts["acknowledged"] += gate.acked
        if disaster == DISK:
            self.after_disk()
        else:
            self.after(disaster)

    def wait_for_the_moment(self, gate, trick, slack):
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            if gate.reached.wait(0.01):
                break
            if trick == "hold" and self.place.page.get("held"):
                return
            if not self.place.plain and not self.place.daemon_lives():
                return
        # More of the slack than the moment itself would be noise.
        time.sleep(slack)

    def take_mode(self, mode):
        """The table asks for what the answers would be worth if all of them
        were promises."""
        place = self.place
        place.durability = mode
        place.promises = mode not in WEAK or self.options.table
        place.strengthen = () if self.options.table or not place.has_modes \
            else [m for m in ALONE if MODES.index(m) > MODES.index(mode)]
        self.modes_used.add(mode)
        if mode != "journal":
            self.say("in mode %s" % mode)

    # ---- disasters ----

    def disaster(self, kind, to_the_end=False):
        """Everybody dies; with a cut, the disks forget as well."""
        place = self.place
        place.freeze(to_the_end)
        if kind == CUT:
            self.cuts += 1
            for disk, how in zip(self.disks, self.plan.cuts):
                disk.cut(how, self.rng)
        place.end_group()
        if kind == CUT:
            for disk in reversed(self.disks):
                disk.unmount()
            self.mount()
            if self.plan.boots:
                place.new_boot()

    def disk_dies(self):
        """That of the repositories, under a daemon that lives."""
        place = self.place
        place.freeze(False)
        place.page.set()
        self.cuts += 1
        self.disks[0].die_and_come_back(self.plan.cuts[0],
                                        place.end_all_but_the_daemon)
        look.forget()

    def start(self):
        """The daemon, until it serves."""
        place = self.place
        place.start_daemon(self.state)
        if place.served():
            return True
        self.findings.append(("serve", "the daemon does not serve: %s" % (
            "".join(place.daemon_said()[-3:]).strip())))
        return False

    # ---- afterwards ----

    def after(self, disaster):
        place, rng = self.place, self.rng
        if place.plain:
            return self.after_plain()
        self.look_before(disaster)
        said = len(place.daemon_said())
        if disaster == CUT and self.plan.beside and rng.random() < 0.5 and \
                not self.options.boots:
            self.remove_foreign_locks()
        if self.options.plant:
            self.options.plant.before_recovery(self)
        disaster = self.interrupt(disaster)
        if self.options.plant and self.options.plant.no_recovery:
            return self.compare(disaster)
        place.page.set()
        place.start_group()
        if not self.recover():
            return None
        if self.options.boots and disaster == CUT:
            self.look_who_waits(place.daemon_said()[said:])
        if self.plan.beside and self.remove_foreign_locks():
            # What they blocked is tried again by the next start.
            if place.stop_daemon() != 0 or not self.start():
                self.findings.append(("serve", "did not stop and start"))
                return None
        self.ask()
        if self.options.plant:
            self.options.plant.after_recovery(self)
        self.compare(disaster)
        if not self.findings and disaster == CUT and rng.random() < 0.3:
            self.cut_again()
        if self.findings:
            return None
        self.serves_on()
        self.new_history(disaster)
        if place.stop_daemon() != 0:
            self.findings.append(("serve", "the daemon did not stop well"))
        place.end_group()
        return None

    def after_disk(self):
        """The daemon finds out by itself, and does what a start would."""
        place = self.place
        self.remove_foreign_locks()
        self.serves_on(240)
        if not self.findings:
            self.ask()
            self.compare(CUT)
            self.new_history(CUT)
        if not self.findings and place.stop_daemon() != 0:
            self.findings.append(("serve", "the daemon did not stop well"))
        place.end_group()

    def after_plain(self):
        """git has no recovery: what is there is what is left."""
        self.compare(CUT)
        self.remove_foreign_locks()
        for disk in self.disks:
            disks.sync(disk)
        self.new_history(CUT)

    def look_before(self, disaster):
        """What git sees before refd has put it right."""
        if disaster != CUT:
            return
        for repo in self.repos:
            seen = judge.Judge(disaster, self.excuses(repo, disaster), False,
                               True)
            seen.repository(repo, self.families(repo))
            seen.locks(repo)
            self.before.update(seen.counts)
            self.excused.update(seen.excused)
            # A stack stays readable, whoever waits for recovery.
            if look.REFS == "reftable":
                self.findings += [
                    (kind, "before recovery: " + text)
                    for kind, text in seen.findings if kind == "empty"]
            if self.modes_used <= set(ALONE) and repo not in self.kept and \
                    self.plan.reference and not seen.excused:
                self.findings += [
                    (kind, "before recovery, though by %s: %s" % (
                        " and ".join(self.modes_used), text))
                    for kind, text in seen.findings
                    if kind in ("lost", "empty", "line")]

    def look_who_waits(self, said):
        """No repository waits for a hand, because all who had a lock are
        gone."""
        self.findings += [("lock", "waits: " + line.strip()) for line in said
                          if "lock stands" in line]
        self.counts["removed locks"] += sum(
            "older than this boot" in line for line in said)

    def interrupt(self, disaster):
        """Recovery that does not get to its end, up to twice. Returns what
        all of it together has been."""
        rng, place = self.rng, self.place
        while rng.random() < 0.3:
            again = rng.choice((CUT, CUT, KILL))
            nth = rng.choice((0, rng.randint(1, 12)))
            after = rng.uniform(0, 0.03)
            place.start_group()
            place.page.set(kinds=15 if nth else 0, hold_at=nth,
                           delay_us=rng.choice((0, 2000)))
            place.start_daemon(self.state)
            deadline = time.monotonic() + (1 if nth else after)
            while time.monotonic() < deadline and \
                    not place.page.get("held"):
                time.sleep(0.001)
            held = place.page.get("held")
            self.say("recovery: %s %s" % (
                again, "at the %dth sync" % nth if held else "at any time"))
            self.disaster(again)
            if again == CUT:
                disaster = CUT
        return disaster

    def recover(self):
        place = self.place
        if self.rng.random() < 0.3:
            done = subprocess.run(
                place.in_boot + [place.refd, "recover", "--state",
                                 self.state, "--root", place.disk_path],
                env=place.env, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, check=False)
            # Who reads what was found wants to know who put it there.
            place.note("refd recover", done.stdout)
            if done.returncode > 1:
                self.findings.append(("serve", "refd recover: %d: %s" % (
                    done.returncode, done.stdout.decode()[-300:])))
        return self.start()

    def ask(self):
        try:
            asking = wire.Wire(self.place.socket)
            self.findings += judge.resolve(asking, self.families(),
                                           self.excused)
            asking.close()
        except wire.Gone as error:
            self.findings.append(("serve", "queries: %s" % error))

    def remove_foreign_locks(self):
        """As an administrator would, once git is dead."""
        removed = 0
        for repo in self.repos:
            for path, ours in look.locks(repo).items():
                if not ours:
                    os.unlink("%s/%s" % (repo, path))
                    removed += 1
        return removed

    def excuses(self, repo, disaster):
        if self.place.plain:
            return judge.Excuses()
        # What an earlier cut left of objects is still there.
        if disaster == KILL:
            return judge.Excuses(raw_objects=self.plan.raw_objects,
                                 broken=repo in self.broken)
        kept = repo in self.kept
        weak = not self.options.table and bool(self.modes_used & set(WEAK))
        return judge.Excuses(
            packed_unsynced=kept and not self.plan.reference,
            wrote_unsynced=not self.plan.reference or weak,
            expired_logs=kept and look.REFS == "files", torn=weak,
            raw_objects=self.plan.raw_objects, broken=repo in self.broken,
            no_footers=self.plan.beside and look.REFS == "reftable")

    def compare(self, disaster):
        for repo in self.repos:
            seen = judge.Judge(disaster, self.excuses(repo, disaster),
                               self.place.plain)
            seen.repository(repo, self.families(repo))
            seen.locks(repo)
            seen.health(self.place, repo)
            self.counts.update(seen.counts)
            self.excused.update(seen.excused)
            if any("fsck" in why for why in seen.excused):
                self.broken.add(repo)
            if not self.options.table:
                self.findings += seen.findings
        if self.findings and self.options.keep:
            self.keep_evidence()

    def keep_evidence(self):
        """As it was found: what comes next puts some of it right."""
        kept = "%s/%d" % (self.options.keep, self.plan.seed)
        shutil.rmtree(kept, ignore_errors=True)
        for path in self.repos + [self.state]:
            shutil.copytree(path, "%s/%s" % (kept, os.path.basename(path)),
                            symlinks=True)
        with open(kept + "/told", "w", encoding="utf-8") as file:
            for line in self.told + [
                    "%s: %s" % finding for finding in self.findings] + [
                    "%s %s: %s" % (f.repo, f.names[0], f.told(99))
                    for f in self.families()]:
                file.write(line + "\n")
            file.writelines(self.place.daemon_said())

    def cut_again(self):
        """Right after recovery: what was there must still be there."""
        self.say("a second cut")
        seen = {r: look.Refs(r).values for r in self.repos}
        self.disaster(CUT)
        # git's locks, whose removal the cut has undone.
        if self.plan.beside:
            self.remove_foreign_locks()
        for repo in self.repos:
            now = look.Refs(repo).values
            for name in sorted(set(seen[repo]) | set(now)):
                if seen[repo].get(name) != now.get(name):
                    self.findings.append(("lost", "%s was %s after recovery "
                                          "and is %s after a second cut" % (
                                              name, seen[repo].get(name),
                                              now.get(name))))
        self.place.start_group()
        if self.start():
            self.ask()
            self.compare(CUT)

    def serves_on(self, patience=0):
        """Both refd and git go on here, refd after PATIENCE seconds."""
        place = self.place
        oid = place.oids[1]
        deadline = time.monotonic() + patience
        for repo in self.repos:
            while True:
                codes = self.update_after(repo, oid)
                if codes == {"refs/heads/after": "ok"}:
                    break
                if self.remove_lost_objects(repo):
                    continue
                if time.monotonic() > deadline:
                    self.findings.append((
                        "serve", "%s: an update afterwards is answered %s" % (
                            repo, codes)))
                    break
                time.sleep(0.1)
            done = subprocess.run(
                [place.git, "-C", repo, "update-ref", "-d",
                 "refs/heads/after"], env=place.env, stderr=subprocess.PIPE,
                check=False)
            if done.returncode != 0:
                self.findings.append(("serve", "%s: git does not go on: %s" % (
                    repo, done.stderr.decode())))

    def remove_lost_objects(self, repo):
        """As an administrator would, because the log asks for it. Returns the
        number of files removed. health() judges whether a ref needs them."""
        removed = 0
        said = "".join(self.place.daemon_said())
        # Where git syncs objects, none may be lost.
        for path in LOST.findall(said) if self.plan.raw_objects else ():
            if path.startswith(repo + "/") and os.path.exists(path) and \
                    not look.is_whole(path):
                os.unlink(path)
                removed += 1
        if removed:
            self.say("%d damaged objects removed" % removed)
        return removed

    def update_after(self, repo, oid):
        try:
            asking = wire.Wire(self.place.socket)
            codes = asking.transact(wire.Transaction(
                repo, [b"update refs/heads/after\0%s\0" % oid.encode()],
                "after"))
            asking.close()
            return codes
        except wire.Gone as error:
            return {None: str(error)}

    def new_history(self, disaster):
        if disaster == CUT:
            self.modes_used = set()
        else:
            # Nothing says that git's own is on disk now.
            return judge.after_kill(self.families())
        for repo in self.repos:
            self.tidy(repo)
            refs = look.Refs(repo)
            for family in self.families(repo):
                family.reset(refs.of(family.names),
                             {n: look.Log(repo, n).tags
                              for n in family.names})
        return None

    def tidy(self, repo):
        """Takes away what was excused, as somebody has to: empty refs of
        git's, an empty packed-refs, logs of refs that it lost, torn lines."""
        if look.REFS == "reftable":
            return
        refs = look.Refs(repo)
        if refs.complaints:
            os.unlink(repo + "/packed-refs")
        for name, value in refs.values.items():
            if value in (look.EMPTY, look.BROKEN):
                os.unlink("%s/%s" % (repo, name))
        refs = look.Refs(repo).values
        for family in self.families(repo):
            for name in family.names:
                log = "%s/logs/%s" % (repo, name)
                if name not in refs and os.path.isfile(log):
                    os.unlink(log)
                look.mend_log(log)
        look.mend_log(repo + "/logs/HEAD")
