"""For tests/long/group_whole.py: the disk of a node, with repositories and
state: its power can be cut, it can be full, and an old copy can come back."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__))
                + '/../powercut')
import disks  # noqa: E402  (tests/powercut/disks.py)

KIND = 'ext4'
# The clients make a repository every two seconds, for as long as an hour.
SIZE = 1 << 30


def fill(directory):
    """Uses all free space. Returns the path of the file that has it."""
    path = f'{directory}/full'
    with open(path, 'w') as file:
        size, step = 0, 16 << 20
        while step >= 4096:
            try:
                os.posix_fallocate(file.fileno(), size, step)
                size += step
            except OSError:
                step //= 2
    return path


class NodeDisk:
    def __init__(self, where, name, cellar):
        self.where, self.kept = where, f'{where}.kept'
        helper = os.environ['BUILD'] + '/tests/helper/lossy_disk'
        self.disk = disks.Disk(name, KIND, cellar.new(name, KIND, SIZE),
                               where, helper)
        self.is_lossy = False
        self.disk.mount()

    def mount(self, random):
        self.is_lossy = random.random() < 0.5
        self.disk.mount(self.is_lossy)
        self.empty()    # the end of fill() can be lost with the power

    def cut(self, how, random):
        """HOW: as in tests/powercut/README.md."""
        self.disk.cut('cache' if self.is_lossy else how, random)

    def unmount(self):
        self.disk.unmount()

    def remove(self):
        self.disk.remove()

    def fill(self):
        fill(self.where)

    def empty(self):
        if os.path.exists(f'{self.where}/full'):
            os.unlink(f'{self.where}/full')

    # ---- an old copy ----

    def keep(self):
        """Nobody may write."""
        shutil.rmtree(self.kept, ignore_errors=True)
        subprocess.run(['cp', '-a', self.where, self.kept], check=True)

    def bring_back(self, *names):
        """Puts back what was kept, or a part of it."""
        for name in names or ('root', 'state'):
            # The root is the source of a mount.
            subprocess.run(
                ['find', f'{self.where}/{name}', '-mindepth', '1', '-delete'],
                check=True)
            subprocess.run(['cp', '-a', f'{self.kept}/{name}/.',
                            f'{self.where}/{name}'], check=True)
        # A power loss comes later.
        subprocess.run(['sync', '-f', self.where], check=True)
