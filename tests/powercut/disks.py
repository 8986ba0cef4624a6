"""File systems whose power can be cut: images on an XFS, loop-mounted.

All images lie on one XFS of the rig's own, so a copy of one is a reflink: a
new file system takes no mkfs, and what a disk holds at a moment can be kept
while the file system on it goes on.

Kinds of cut:

nologflush  FS_IOC_SHUTDOWN: from now on nothing reaches the disk. What the
            file system's journal held in memory only is lost with it.
logflush    the same after its journal was written: names and sizes are there,
            contents may not be. The cut that leaves empty files.
reflink     the disk as it is at that moment is copied, and used from then on.
cache       see below.

The first three keep all that the disk was ever given, flushed or not: like a
disk whose cache has a battery. In `cache` the image is served by
tests/helper/lossy_disk, which has a cache of its own that a cut empties, or
of which it leaves some: what no flush asked for can be missing, in any order.
"""
import fcntl
import os
import signal
import struct
import subprocess
import time

FS_IOC_SHUTDOWN = 0x8004587D
FICLONE = 0x40049409
HOW = {"nologflush": 2, "logflush": 1}

SIZES = {"ext4": 96 << 20, "xfs": 300 << 20, "btrfs": 300 << 20}
MKFS = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"],
        "xfs": ["mkfs.xfs", "-q", "-f"],
        "btrfs": ["mkfs.btrfs", "-q", "-f"]}
OPTIONS = {"ext4": "loop", "xfs": "loop,nouuid", "btrfs": "loop"}
KINDS = tuple(SIZES)
# btrfs has no FS_IOC_SHUTDOWN yet.
CUTS = {"ext4": ("nologflush", "logflush", "reflink", "cache"),
        "xfs": ("nologflush", "logflush", "reflink", "cache"),
        "btrfs": ("reflink", "cache")}


def run(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise OSError("%s: %s" % (" ".join(argv),
                                  done.stdout.decode().strip()))


def clone(old, new):
    with open(old, "rb") as source, open(new, "wb") as target:
        fcntl.ioctl(target, FICLONE, source.fileno())


def unmount(where):
    """Who was killed may take a moment to let go of it."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return run("umount", where)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class Cellar:
    """The XFS that all images are on, and one new image of each kind."""

    def __init__(self, top):
        self.path = top + "/cellar"
        image = self.path + ".img"
        os.mkdir(self.path)
        make_sparse(image, 6 << 30)
        run("mkfs.xfs", "-q", "-m", "reflink=1", image)
        run("mount", "-o", "loop", image, self.path)

    def new(self, name, kind, size=None):
        """Makes the image NAME; two of one origin can't both be mounted, as
        they have the same id."""
        image = "%s/%s" % (self.path, name)
        make_sparse(image, size or SIZES[kind])
        run(*MKFS[kind], image)
        return image


def make_sparse(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


class Disk:
    """A copy of an image, mounted at a place."""

    def __init__(self, name, kind, origin, where, helper):
        self.name = name
        self.kind = kind
        self.where = where
        self.image = origin + ".used"
        self.helper = helper
        self.server = None
        self.kept = None
        self.mounted = False
        clone(origin, self.image)

    def mount(self, lossy=False):
        os.makedirs(self.where, exist_ok=True)
        source = self.image
        if lossy:
            source = self.serve()
        run("mount", "-o", OPTIONS[self.kind], source, self.where)
        self.mounted = True

    def serve(self):
        """The image behind a disk that has a cache."""
        disk = self.where + ".disk"
        make_sparse(disk, 0)
        self.server = subprocess.Popen(
            [self.helper, self.image, disk], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, start_new_session=True)
        if self.server.stdout.readline() != b"ready\n":
            raise OSError("lossy_disk does not serve " + self.image)
        return disk

    def cut(self, how, rng):
        """From now on nothing reaches this disk. Nobody may be writing who
        could still tell of it."""
        if how == "reflink":
            clone(self.image, self.image + ".kept")
            self.kept = self.image + ".kept"
        elif how == "cache":
            # Of what was not flushed, that many in a hundred survive.
            keep = rng.choice((0, 0, 50, 90))
            self.server.stdin.write(b"cut %d %d\n" % (
                keep, rng.randrange(1 << 30)))
            self.server.stdin.flush()
            if self.server.stdout.readline() != b"cut\n":
                raise OSError("lossy_disk did not cut " + self.image)
        else:
            self.shut_down(how)

    def shut_down(self, how):
        fd = os.open(self.where, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", HOW[how]))
        finally:
            os.close(fd)

    def unmount(self):
        """What was kept takes the place of what the disk became since."""
        if self.kept and self.kind != "btrfs":
            # So that the end of it does not take the time to write it all.
            self.shut_down("nologflush")
        unmount(self.where)
        self.mounted = False
        if self.server:
            self.end_server()
        if self.kept:
            os.replace(self.kept, self.image)
            self.kept = None

    def die_and_come_back(self, how, meanwhile):
        """It fails while somebody still uses it, and the file system that is
        found then is another one, from what the disk had got. MEANWHILE() is
        done as soon as it has failed."""
        self.cut(how, None)
        meanwhile()
        kept = self.image + ".kept"
        clone(self.image, kept)
        run("umount", "-l", self.where)
        self.mounted = False
        os.replace(kept, self.image)
        self.mount()

    def end_server(self):
        # The loop device lets go of its file a moment after the last user.
        unmount(self.where + ".disk")
        self.server.stdin.close()
        if self.server.wait(120) != 0:
            raise OSError("lossy_disk failed")
        self.server.stdout.close()
        self.server = None

    def remove(self):
        if self.mounted:
            unmount(self.where)
            self.mounted = False
        if self.server:
            self.server.send_signal(signal.SIGKILL)
            self.server.wait()
            run("umount", "-l", self.where + ".disk")
            self.server = None
        for path in (self.image, self.kept):
            if path and os.path.exists(path):
                os.unlink(path)


def sync(disk):
    run("sync", "-f", disk.where)


def why_not():
    """Why no file system can be mounted here; None where it can."""
    if os.geteuid() != 0:
        return "only root can mount"
    if not os.path.exists("/dev/loop-control"):
        return "no loop devices"
    for argv in MKFS.values():
        if not any(os.access(os.path.join(d, argv[0]), os.X_OK)
                   for d in os.environ.get("PATH", "").split(":") + [
                       "/usr/sbin", "/sbin"]):
            return "no " + argv[0]
    return None
