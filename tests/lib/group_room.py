"""For tests/long/group_admin.py: nodes whose file systems are full."""
import os
import subprocess
import time

from group import new_row, wait_for
from group_console import report, same
from group_disks import fill


class Room:
    """The root of NODE is a file system of its own."""

    def __init__(self, node, console, top):
        self.node, self.root = node, f'{top}/root-{node.name}'
        os.mkdir(self.root)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=80m', 'none',
                        self.root], check=True)
        head, console.head = console.head, f'[daemon]\n\troot = {self.root}\n'
        console.config(node.name)
        console.head = head

    def fill(self):
        self.full = fill(self.root)

    def leave(self, nr):
        """Keeps NR bytes of the file that fills the root."""
        os.truncate(self.full, nr)

    def end(self):
        subprocess.run(['umount', '-l', self.root], check=True)


def check_room(pg, nodes, console, top):
    rooms = [Room(node, console, top) for node in nodes]
    try:
        for node in nodes:
            node.end()
            node.start()
            assert wait_for(20, lambda n=node: n.role), node.message()[-400:]
        move_lead(pg, nodes, *rooms)
    finally:
        for room in rooms:
            room.end()


def move_lead(pg, nodes, a, b, c):
    def leads(name, room):
        report(f'room: {name}: {room.node.name} leads',
               room.node.await_role(True, 20), room.node.message()[-400:])
        assert room.node.role[0]
        same(f'room: {name}: {room.node.name} commits', 'COMMITTED',
             room.node.outcome(room.node.batch(new_row())))
        report(f'room: {name}: all have the row', wait_for(
            10, lambda: len({n.applied for n in nodes}) == 1),
               [n.applied for n in nodes])

    def epoch():
        return pg.sql("SELECT epoch FROM refd.lease WHERE grp = 'main'")

    def change(values):
        pg.sql(f"UPDATE refd.lease SET {values} WHERE grp = 'main'")

    def stays(name, room, seconds=10):
        before = epoch()
        time.sleep(seconds)
        same(f'room: {name}: {room.node.name} goes on leading', (before, True),
             (epoch(), room.node.role[0]))

    def later():
        """The last move was longer than a minute ago."""
        change("asked = asked - interval '61 s'")

    assert wait_for(20, lambda: any(n.role[0] for n in nodes))
    if not a.node.role[0]:
        change("successor = 'a', asked = now()")
    leads('the start', a)
    change('asked = NULL')
    a.fill()
    time.sleep(2)
    a.leave(0)
    stays('full for a moment', a)
    a.fill()
    leads('a is full', b)
    report('room: a says why', f"'{a.root}' is full" in a.node.message(),
           a.node.message()[-400:])
    report('room: a follows', a.node.await_role(False), a.node.role)
    b.fill()
    stays('within a minute', b)
    later()
    leads('a and b are full', c)
    c.fill()
    later()
    stays('all are full', c)
    a.leave(70 << 20)
    stays('a has little room', c)
    a.leave(0)
    leads('a has room', a)
