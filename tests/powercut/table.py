"""What each way of writing refs leaves after power cuts, as a table."""
import copy
from collections import Counter

COLUMNS = (("lost", "lost"), ("empty", "empty"), ("lock", "stale locks"),
           ("torn", "torn groups"), ("line", "log lines"))
MODES = ("none", "periodic", "journal", "batch", "fsync")


def rows():
    yield "git as it comes", {"plain": True, "core_fsync": None}
    yield "git, `core.fsync=objects,reference`", {
        "plain": True, "core_fsync": "objects,reference"}
    for mode in MODES:
        yield "refd, `%s`" % mode, {"plain": False, "durability": mode}


def measure(place, options, settings, make_trial, seeds):
    after, before = Counter(), Counter()
    for seed in seeds:
        mine = copy.copy(options)
        mine.reference = True
        mine.durability = settings.get("durability", "journal")
        mine.core_fsync = settings.get("core_fsync")
        place.plain = settings["plain"]
        trial = make_trial(seed, place, mine)
        trial.run()
        after.update(trial.counts)
        before.update(trial.before)
        after["cuts"] += trial.cuts
        place.forget_log()
    place.plain = False
    return after, before


def cells(counts):
    return " | ".join(str(counts[key]) for key, _ in COLUMNS)


def print_table(place, options, make_trial, seeds):
    print("| | cuts | acknowledged | %s |" % " | ".join(
        title for _, title in COLUMNS))
    print("|---|---|---|%s" % ("---|" * len(COLUMNS)))
    for name, settings in rows():
        if options.durability not in ("any", settings.get("durability")):
            continue
        after, before = measure(place, options, settings, make_trial, seeds)
        print("| %s | %d | %d | %s |" % (name, after["cuts"],
                                         after["acknowledged"],
                                         cells(after)), flush=True)
        if not settings["plain"]:
            print("| - before recovery | | | %s |" % cells(before),
                  flush=True)
