#!/usr/bin/python3
"""Makes bundles for an OCI runtime from a compose file and an unpacked image.

    compose.py FILE BUNDLE VOLUMES OUT

BUNDLE is an image that umoci has unpacked (config.json and rootfs/). The
command writes, for each service, OUT/SERVICE/config.json with the settings of
the compose file, and OUT/SERVICE/health with the words of the health check. A
named volume is a directory below VOLUMES; a new one has owner, mode and content
of the image's directory, as Docker's have. Variables of the compose file come
from the environment.

The published ports stay in the network namespace of the container: the caller
enters the namespace. "restart" and "depends_on" are the caller's business. Any
other key, or a value that this program does not translate, is an error. So the
file has no setting that a test of the bundles leaves out.
"""

import json
import os
import re
import shutil
import sys

import yaml

# Settings that say when to start and stop.
TIMING = {"restart", "depends_on", "stop_grace_period", "ports"}


def expand(text):
    """Replaces ${NAME:-DEFAULT} and ${NAME:?MESSAGE}."""

    def value(match):
        name, kind, rest = match.groups()
        if os.environ.get(name):
            return os.environ[name]
        if kind == "?":
            sys.exit(f"compose.py: {name} is not set: {rest}")
        return rest

    return re.sub(r"\$\{(\w+):([-?])([^}]*)\}", value, text)


def expand_all(node):
    if isinstance(node, dict):
        return {key: expand_all(value) for key, value in node.items()}
    if isinstance(node, list):
        return [expand_all(value) for value in node]
    return expand(node) if isinstance(node, str) else node


def account(rootfs, name):
    with open(os.path.join(rootfs, "etc/passwd"), encoding="ascii") as passwd:
        for line in passwd:
            fields = line.split(":")
            if fields[0] == name:
                return {"uid": int(fields[2]), "gid": int(fields[3])}
    sys.exit(f"compose.py: the image has no account {name}")


def copy_new(source, target):
    """Copies a directory with owners, as a new volume gets it."""
    shutil.copytree(source, target, symlinks=True)
    for path, names, files in os.walk(source):
        for name in [".", *names, *files]:
            one = os.path.join(path, name)
            st = os.lstat(one)
            os.chown(os.path.join(target, os.path.relpath(one, source)),
                     st.st_uid, st.st_gid, follow_symlinks=False)


class Volumes:
    def __init__(self, declared, where, rootfs):
        self.declared, self.where, self.rootfs = declared, where, rootfs

    def in_memory(self, name):
        """The options of the tmpfs that the volume is, or None."""
        options = dict((self.declared[name] or {}).get("driver_opts") or {})
        if not options:
            return None
        assert options.pop("type") == options.pop("device") == "tmpfs"
        return options["o"]

    def directory(self, name, target):
        path = os.path.join(self.where, name)
        if not os.path.exists(path):
            options = self.in_memory(name)
            if options is None:
                copy_new(self.rootfs + target, path)
            else:
                os.mkdir(path)
                if os.spawnlp(os.P_WAIT, "mount", "mount", "-t", "tmpfs",
                              "-o", options, "tmpfs", path):
                    sys.exit(f"compose.py: no tmpfs at {path}")
        return path

    def mount(self, entry):
        """The mount of an entry in "volumes" of a service."""
        if isinstance(entry, str):
            source, target, *mode = entry.split(":")
            assert mode in ([], ["ro"]), entry
            source, read_only = self.directory(source, target), bool(mode)
        else:
            assert entry.keys() == {"type", "source", "target", "read_only"}
            assert entry["type"] == "bind", entry
            source, target = entry["source"], entry["target"]
            read_only = entry["read_only"]
        return {"destination": target, "type": "bind", "source": source,
                "options": ["bind", "nosuid", "nodev",
                            "ro" if read_only else "rw"]}


def bundle(base, service, volumes, rootfs):
    """The configuration of the service's container."""
    left = {k: v for k, v in service.items() if k not in TIMING}
    config = json.loads(json.dumps(base))
    process = config["process"]
    del left["image"], left["healthcheck"]
    process["terminal"] = False
    process["args"] = left.pop("command")
    process["user"] = account(rootfs, left.pop("user"))
    process["noNewPrivileges"] = \
        left.pop("security_opt") == ["no-new-privileges:true"]
    assert left.pop("cap_drop") == ["ALL"]
    process["capabilities"] = {}
    config["root"] = {"path": rootfs, "readonly": left.pop("read_only")}
    for entry in left.pop("tmpfs"):
        target, options = entry.split(":")
        config["mounts"].append(
            {"destination": target, "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "nodev", *options.split(",")]})
    config["mounts"] += [volumes.mount(v) for v in left.pop("volumes")]
    assert left.pop("network_mode", "none") == "none"
    config["linux"] = {
        "namespaces": [{"type": kind} for kind in
                       ("pid", "ipc", "uts", "mount", "network")],
        "maskedPaths": base["linux"].get("maskedPaths", []),
        "readonlyPaths": base["linux"].get("readonlyPaths", [])}
    config.pop("hooks", None)
    if left:
        sys.exit(f"compose.py: cannot translate {', '.join(left)}")
    return config


def main():
    file, image, where, out = sys.argv[1:]
    rootfs = os.path.join(os.path.abspath(image), "rootfs")
    with open(file, encoding="utf-8") as stream:
        compose = expand_all(yaml.safe_load(stream))
    with open(os.path.join(image, "config.json"), encoding="utf-8") as stream:
        base = json.load(stream)
    volumes = Volumes(compose["volumes"], os.path.abspath(where), rootfs)
    for name, service in compose["services"].items():
        os.makedirs(os.path.join(out, name), exist_ok=True)
        health = service["healthcheck"]["test"]
        assert health[0] == "CMD"
        with open(os.path.join(out, name, "health"), "w",
                  encoding="utf-8") as stream:
            stream.writelines(word + "\n" for word in health[1:])
        with open(os.path.join(out, name, "config.json"), "w",
                  encoding="utf-8") as stream:
            json.dump(bundle(base, service, volumes, rootfs), stream, indent=1)


main()
