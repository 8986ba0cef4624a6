"""Random repositories, and random things to do to them.

A case is plain data: what the repository is like at first, and a list of
steps. A step is a dictionary whose "do" says what it is:

  update   update-ref by both: args, lines of standard input or None, how
           they are written (z, quoted), cwd, env, umask
  git      a git command in both repositories
  put      a file made in both ("what" as in state.py), or taken away (None)

A value ("now", NAME) stands for what NAME leads to when its turn comes, so
that a step means the same after another one was dropped."""
import names
import state as st
from objects import MISSING, REFS, ZERO

TOP, SUB, GIT_DIR, WT1, WT1_GIT_DIR, WT2, OUTSIDE = (
    "top", "sub", "git-dir", "wt1", "wt1-git-dir", "wt2", "outside")


class Features:
    """What the git that is compared with can do."""

    def __init__(self, version):
        self.symref_commands = version >= (2, 46)
        self.batch = version >= (2, 50)


# ---- the repository at first ----

def make_setup(rng, objs):
    bare = rng.random() < 0.3
    setup = {
        "bare": bare,
        "worktrees": rng.choice([0, 0, 1, 1, 2]),
        "config": {},
        "files": {},
        "hooked": rng.random() < 0.04,
    }
    config = setup["config"]
    config["core.logAllRefUpdates"] = rng.choice(names.LOG_VALUES)
    config["core.sharedRepository"] = rng.choice(names.SHARED_VALUES)
    if rng.random() < 0.5:
        config["user.name"] = "Con Fig"
        config["user.email"] = "config@example.com"
    config["core.filesRefLockTimeout"] = "5"
    config["core.packedRefsTimeout"] = "5"
    files = setup["files"]
    for dir_ in ("refs", "refs/heads", "refs/tags"):
        files[dir_] = ("d", 0o755, b"")
    files["HEAD"] = plain(rng.choice([
        "ref: refs/heads/main", "ref: refs/heads/main",
        "ref: refs/heads/main", "ref: refs/heads/sym",
        "ref: refs/heads/unborn", objs.c2]) + "\n")
    # git does not migrate a repository with worktrees.
    if REFS == "reftable":
        setup["worktrees"] = 0
    for i in range(1, setup["worktrees"] + 1):
        files["worktrees"] = ("d", 0o755, b"")
        files["worktrees/wt%d" % i] = ("d", 0o755, b"")
        files["worktrees/wt%d/HEAD" % i] = plain(rng.choice([
            "ref: refs/heads/b\n", "ref: refs/heads/wt%d\n" % i,
            "ref: refs/heads/main\n", objs.c1 + "\n"]))
    first_refs(rng, objs, files)
    return setup


def plain(text, mode=0o644):
    return ("f", mode, text.encode("utf-8", "surrogateescape"))


def conflicts(name, others):
    return any(o == name or o.startswith(name + "/") or
               name.startswith(o + "/") for o in others)


def first_refs(rng, objs, files):
    loose, packed = {}, {}
    for name in rng.sample(names.USUAL, rng.randrange(0, 12)):
        if conflicts(name, list(loose) + list(packed)):
            continue
        value = rng.choice(objs.commits)
        if name.startswith("refs/tags/") and rng.random() < 0.3:
            value = rng.choice([objs.tag, objs.tree, objs.blob])
        if "sym" in name or rng.random() < 0.08:
            loose[name] = "ref: " + rng.choice(names.TARGETS)
            continue
        if rng.random() < 0.7:
            loose[name] = value
        if name not in loose or rng.random() < 0.3:
            packed[name] = rng.choice(objs.commits) if name in loose else value
    for name, value in loose.items():
        parents(files, name)
        files[name] = plain(value + "\n")
        if rng.random() < 0.4:
            parents(files, "logs/" + name)
            files["logs/" + name] = plain("")
    if packed or rng.random() < 0.2:
        files["packed-refs"] = plain(packed_text(rng, objs, packed))


def parents(files, path):
    parts = path.split("/")[:-1]
    for i in range(1, len(parts) + 1):
        files.setdefault("/".join(parts[:i]), ("d", 0o755, b""))


def packed_text(rng, objs, packed):
    text = "# pack-refs with: peeled fully-peeled sorted \n"
    order = sorted(packed, key=lambda n: n.encode("utf-8", "surrogateescape"))
    if rng.random() < 0.05:
        text = rng.choice(["", "# pack-refs with: peeled \n"])
        rng.shuffle(order)
    for name in order:
        text += "%s %s\n" % (packed[name], name)
        if objs.peeled(packed[name]):
            text += "^%s\n" % objs.peeled(packed[name])
    return text


# ---- what is done to it ----

class Chooser:
    """Makes the next step of a case, knowing what is there."""

    def __init__(self, rng, objs, features, setup):
        self.rng = rng
        self.objs = objs
        self.features = features
        self.setup = setup
        self.count = 0

    def step(self, state):
        self.state = state
        self.count += 1
        # Most steps are meant to succeed, or all would soon be the same.
        self.calm = self.rng.random() < 0.6
        if REFS == "reftable":
            # Nothing can be put into a table.
            return names.pick(self.rng, [
                (90, self.update), (4, self.pack), (4, self.symbolic_ref),
                (2, self.configure)])
        return names.pick(self.rng, [
            (78, self.update), (4, self.pack), (4, self.symbolic_ref),
            (9, self.junk), (3, self.unlock), (2, self.configure)])

    # -- updates --

    def update(self):
        rng = self.rng
        step = {"do": "update", "args": [], "lines": None, "z": False,
                "cwd": self.cwd(), "umask": rng.choice(names.UMASKS),
                "env": dict(rng.choice(names.WHO)) if rng.random() < 0.1
                else {}}
        self.worktree = {WT1: "wt1", WT1_GIT_DIR: "wt1",
                         WT2: "wt2"}.get(step["cwd"])
        step["env"]["GIT_COMMITTER_DATE"] = names.date(rng, self.count)
        if rng.random() < 0.06:
            override(step["env"], [rng.choice(names.OVERRIDES)])
        args = step["args"]
        if step["cwd"] == OUTSIDE:
            step["env"]["GIT_DIR"] = "@git-dir@"
        if rng.random() < 0.35:
            args += ["-m", rng.choice(names.MESSAGES)]
        if rng.random() < 0.12:
            args.append("--no-deref")
        if rng.random() < 0.08:
            args.append("--create-reflog")
        form = names.pick(rng, [(25, "arguments"), (10, "deletion"),
                                (65, "standard input")])
        if form == "arguments":
            self.arguments(args)
        elif form == "deletion":
            self.deletion(args)
        else:
            self.standard_input(step)
        return step

    def cwd(self):
        places = [TOP] * 8 + [GIT_DIR, OUTSIDE]
        if not self.setup["bare"]:
            places.append(SUB)
        if self.setup["worktrees"] >= 1:
            places += [WT1, WT1, WT1_GIT_DIR]
        if self.setup["worktrees"] >= 2:
            places.append(WT2)
        return self.rng.choice(places)

    def arguments(self, args):
        name = self.name()
        args += [name, self.new(name)]
        if self.rng.random() < 0.5:
            args.append(self.old(name))
        if not self.calm and self.rng.random() < 0.03:
            args.append("more")

    def deletion(self, args):
        name = self.name(there=True)
        args += ["-d", name]
        if self.rng.random() < 0.5:
            args.append(self.old(name))

    def standard_input(self, step):
        rng = self.rng
        step["z"] = rng.random() < 0.3
        step["args"] += ["--stdin"] + (["-z"] if step["z"] else [])
        if self.features.batch and rng.random() < 0.3:
            step["args"].append("--batch-updates")
        step["lines"] = []
        for _ in range(names.pick(rng, [(9, 1), (1, 2), (.3, 3)])):
            self.transaction(step["lines"])
        if not self.calm and rng.random() < 0.05:
            step["mangle"] = rng.randrange(1 << 30)

    def transaction(self, lines):
        rng = self.rng
        words = names.pick(rng, [
            (50, ()), (14, ("start", "prepare", "commit")),
            (12, ("start", "commit")), (4, ("start", "abort")),
            (5, ("start", "prepare", "abort")), (3, ("start",)),
            (2, ("start", "prepare")), (3, ("prepare", "commit")),
            (2, ("prepare",)), (2, ("commit",)), (1, ("abort",))])
        if words[:1] == ("start",):
            lines.append(["start"])
        taken = set()
        for _ in range(names.pick(rng, [(40, 1), (25, 2), (15, 3), (10, 4),
                                        (6, 7), (4, 12), (3, 0)])):
            self.change(lines, taken)
        lines += [[word] for word in words if word != "start"]
        if not self.calm and rng.random() < 0.05:
            lines.insert(rng.randrange(len(lines) + 1), [rng.choice([
                "start", "prepare", "commit", "abort", "option", "", "nonsense",
                "update", "option no-deref", "commit now"])])

    def change(self, lines, taken):
        rng = self.rng
        command = names.pick(rng, [
            (40, "update"), (25, "create"), (18, "delete"), (10, "verify"),
            (10, self.symref_command)])
        symref = command.startswith("symref-")
        must = command in ("symref-delete", "symref-verify")
        if rng.random() < (0.95 if must else 0.4 if symref else 0.12):
            lines.append(["option", "no-deref"])
        name = self.name(command in ("delete", "verify"), taken,
                         absent=command in ("create", "symref-create"))
        line = [command, name]
        if symref:
            self.symref_fields(line, name)
        elif command in ("update", "create"):
            line.append(self.new(name, zero_ok=command == "update"))
        if command in ("update", "delete", "verify") and \
                (rng.random() < 0.5 or command == "verify"):
            line.append(self.old(name))
        if not self.calm and rng.random() < 0.02:
            line.append("extra")
        lines.append(line)

    def symref_command(self):
        if not self.features.symref_commands:
            return "update"
        return self.rng.choice(["symref-update", "symref-create",
                                "symref-delete", "symref-verify"])

    def target(self):
        if self.calm or self.rng.random() < 0.8:
            return self.rng.choice(names.TARGETS)
        return self.rng.choice(names.ODD_TARGETS)

    def old_target(self, name):
        found = st.loose_value(self.state, name, self.worktree)
        if found and found[0] == "ref" and self.rng.random() < 0.8:
            return found[1]
        return self.target()

    def symref_fields(self, line, name):
        rng = self.rng
        if line[0] in ("symref-update", "symref-create"):
            line.append(self.target())
        if line[0] == "symref-update" and rng.random() < 0.5:
            line += rng.choice([["ref", self.old_target(name)],
                                ["oid", self.old(name)]])
            if rng.random() < 0.03:
                line.pop()
        if line[0] in ("symref-delete", "symref-verify") and \
                rng.random() < 0.7:
            line.append(self.old_target(name))

    # -- names and values --

    def name(self, there=False, taken=None, absent=False):
        rng = self.rng
        for _ in range(20):
            name = self.any_name(there)
            if not self.calm:
                return name
            value = st.value_of(self.state, name, self.worktree)
            if there and value is None or absent and value is not None:
                continue
            if name in (taken or ()) or value is None and \
                    conflicts(name, st.ref_names(self.state)):
                continue
            if taken is not None:
                final = st.final_name(self.state, name, self.worktree)
                if final in taken or final is None:
                    continue
                taken.update((name, final))
            return name
        return rng.choice(names.USUAL)

    def any_name(self, there):
        rng = self.rng
        if there and rng.random() < 0.8:
            have = st.ref_names(self.state)
            if have:
                return rng.choice(have)
        return names.pick(rng, [
            (60, lambda: rng.choice(names.USUAL)),
            (22, lambda: rng.choice(names.OWN)),
            (4, lambda: rng.choice(names.OTHERS)),
            (0 if self.calm else 18, lambda: rng.choice(names.ODD)),
            (5, lambda: "refs/heads/gen/%d/%d" % (rng.randrange(3),
                                                  rng.randrange(20)))])

    def new(self, name, zero_ok=True):
        rng, objs = self.rng, self.objs
        if self.calm:
            return names.pick(rng, [
                (75, lambda: rng.choice(objs.commits)), (10, ("now", name)),
                (8 if "tags" in name else 0,
                 lambda: rng.choice([objs.tag, objs.tree, objs.blob])),
                (4 if zero_ok else 0, ZERO)])
        return names.pick(rng, [
            (50, lambda: rng.choice(objs.commits)), (10, ("now", name)),
            (5, objs.tag), (3, objs.tree), (3, objs.blob), (4, MISSING),
            (6, ZERO), (3, ""), (2, "nosuch"), (3, "HEAD"),
            (2, "refs/heads/main"), (2, objs.c2[:10]), (2, objs.c2.upper()),
            (1, objs.c2 + "0"), (1, objs.c3 + "~1"), (1, "0"),
            (1, "refs/heads/main^{tree}"), (1, "@"), (1, ":/nothing")])

    def old(self, name):
        rng, objs = self.rng, self.objs
        if self.calm:
            if st.value_of(self.state, name, self.worktree) is None:
                return rng.choice([ZERO, ZERO, ""])
            return ("now", name)
        return names.pick(rng, [
            (45, ("now", name)), (20, lambda: rng.choice(objs.commits)),
            (10, ZERO), (8, ""), (4, MISSING), (3, "nosuch"), (3, "HEAD"),
            (3, objs.c1[:12]), (2, objs.c1.upper()), (2, "0")])

    # -- everything else --

    def pack(self):
        return {"do": "git", "args": self.rng.choice([
            ["pack-refs", "--all"], ["pack-refs", "--all", "--no-prune"],
            ["pack-refs"]])}

    def symbolic_ref(self):
        name = self.rng.choice(["HEAD", "HEAD", "refs/heads/sym", "refs/sym",
                                "refs/tags/sym", "refs/heads/b"])
        target = self.rng.choice(names.TARGETS) if name != "HEAD" else \
            self.rng.choice(["refs/heads/main", "refs/heads/a",
                             "refs/heads/sym", "refs/heads/unborn"])
        if name == "HEAD" and self.rng.random() < 0.2:
            if REFS == "reftable":
                return {"do": "git", "args": [
                    "update-ref", "--no-deref", "HEAD",
                    self.rng.choice(self.objs.commits)]}
            return {"do": "put", "path": "HEAD",
                    "what": plain(self.rng.choice(self.objs.commits) + "\n")}
        return {"do": "git", "args": ["symbolic-ref", name, target]}

    def configure(self):
        key, values = self.rng.choice([
            ("core.logAllRefUpdates", names.LOG_VALUES),
            ("core.sharedRepository", names.SHARED_VALUES)])
        value = self.rng.choice(values)
        return {"do": "git", "args": ["config", key, value] if
                value is not None else ["config", "--unset-all", key]}

    def unlock(self):
        """What stands in the way leaves, or the rest would be refusals."""
        junk = [p for p in self.state if p.endswith(".lock") or
                p == "packed-refs.new"]
        if not junk:
            return self.update()
        return {"do": "put", "path": self.rng.choice(sorted(junk)),
                "what": None}

    def junk(self):
        rng, objs = self.rng, self.objs
        name = rng.choice(names.USUAL + ["HEAD"])
        if rng.random() < 0.5:
            name = rng.choice(st.ref_names(self.state) or [name])
        if name in self.state and name != "HEAD" and rng.random() < 0.15:
            return {"do": "put", "path": name, "what": None}
        what = names.pick(rng, [
            (6, "empty directory"), (3, "directory"), (4, "contents"),
            (3, "lock"), (3, "log"), (2, "link"), (2, "log directory"),
            (1, "packed lock"), (1, "symref")])
        return {"do": "put", **self.junk_file(what, name, objs)}

    def junk_file(self, what, name, objs):
        rng = self.rng
        empty = ("d", 0o755, b"")
        if what == "empty directory" and name not in self.state:
            return {"path": name + rng.choice(["", "/x", "/x/y"]),
                    "what": empty}
        if what == "directory" and name not in self.state:
            return {"path": name + "/junk.lock", "what": plain("")}
        if what == "log directory" and "logs/" + name not in self.state:
            return {"path": "logs/" + name + rng.choice(["", "/x", "/x/y"]),
                    "what": rng.choice([empty, plain("")])}
        if what == "lock":
            return {"path": name + ".lock", "what": plain("")}
        if what == "packed lock":
            return {"path": rng.choice(["packed-refs.lock",
                                        "packed-refs.new"]),
                    "what": plain("")}
        if what == "link" and name != "HEAD" and self.free(name):
            return {"path": name, "what": ("l", 0, rng.choice(
                names.TARGETS + ["main", "../../nowhere"]).encode())}
        if what == "symref" and name != "HEAD" and self.free(name):
            return {"path": name,
                    "what": plain("ref: " + self.target() + "\n")}
        if what == "contents" and name != "HEAD" and self.free(name):
            return {"path": name, "what": plain(rng.choice([
                "", "\n", "garbage\n", objs.c1 + "\r\n", objs.c1,
                objs.c1.upper() + "\n", objs.c1 + " trailing\n",
                objs.c1[:20] + "\n", "ref: refs/heads/main",
                "ref:refs/heads/main\n", "ref: refs/heads/main  \r\n",
                "ref:  \n", "ref: ../outside\n", MISSING + "\n",
                "\0" * 41, objs.c1 + "\n" + objs.c2 + "\n"]))}
        return {"path": "logs/" + name, "what": plain("")} \
            if self.free("logs/" + name) else {"path": name + ".lock",
                                               "what": plain("")}

    def free(self, path):
        """May PATH be a file, for what is there?"""
        if self.state.get(path, ("f",))[0] == "d":
            return False
        parts = path.split("/")
        return all(self.state.get("/".join(parts[:i]), ("d",))[0] == "d"
                   for i in range(1, len(parts)))


def override(env, pairs):
    """As git -c would hand it to a child."""
    env["GIT_CONFIG_COUNT"] = str(len(pairs))
    for i, (key, value) in enumerate(pairs):
        env["GIT_CONFIG_KEY_%d" % i] = key
        env["GIT_CONFIG_VALUE_%d" % i] = value
