"""For tests/long/group_admin.py: a new group that begins with a node which has
left its group (refd group create LSN:UUID)."""
import os

from group import Node, new_row, wait_for
from group_console import expect, report, same

LSN = 41
UUID = b'\xff\xff' + LSN.to_bytes(6, 'little') + b'a-origin'
ORIGIN = f'{LSN}:{UUID.hex()}'
FORMER = b'a former group!!'


def check_origin(pg, program, console, top):
    """The group has the name second, beside the group of the other cases."""
    os.mkdir(f'{top}/second')
    nodes = {name: Node(name, program, console.config(
        f'{name}2', name='second', node=name), f'{top}/second')
        for name in ('a', 'b')}
    a, b = nodes['a'], nodes['b']

    def refuses(name, text, **hello):
        before = len(b.message()) if b.process else 0
        b.start(reads=False, **hello)
        same(f'origin: {name}: refused', 128, b.process.wait(20))
        report(f'origin: {name}: the reason', text in b.message()[before:],
               b.message()[before:])

    for wrong in ('b', LSN, f'{LSN}:', f'{LSN + 1}:{UUID.hex()}',
                  f'{LSN}:{FORMER.hex()}', f'0{ORIGIN}', f'{ORIGIN}0'):
        expect(f'origin: create {wrong}', 129, 'recover --leave has printed',
               console.run('create', str(wrong), node='a2'))
    refuses('no group yet', f'refd group create {ORIGIN}', group=UUID,
            applied=LSN)
    expect('origin: create', 0, "created the group 'second'",
           console.run('create', ORIGIN, node='a2'))
    expect('origin: create again', 128, 'exists already',
           console.run('create', ORIGIN, node='a2'))
    same('origin: the first row', f'{LSN}', pg.sql(
        "SELECT string_agg(lsn::text, ' ') FROM refd.log"
        " WHERE grp = 'second'"))
    refuses('a node of the former group', 'this node must join it',
            group=FORMER, applied=LSN)
    refuses('another node that has left', 'another uuid',
            group=UUID[:-1] + b'!', applied=LSN)
    refuses('an empty node', 'row 1 of the log is missing', applied=0)
    for lacks in (2, 1):
        refuses(f'a copy that lacks {lacks} rows',
                f'row {LSN - lacks + 1} of the log is missing',
                applied=LSN - lacks)
    a.group, a.applied = UUID, LSN
    a.start()
    report('origin: a leads', a.await_role(True), a.message())
    same('origin: the uuid', UUID, a.group)
    same('origin: a commits', 'COMMITTED', a.outcome(a.batch(new_row())))
    same('origin: the next row', LSN + 1, a.applied)
    b.applied = LSN     # refd recover --join
    b.start()
    report('origin: b follows', b.await_role(False), b.message()[-300:])
    report('origin: b has the row', wait_for(
        10, lambda: b.applied == LSN + 1), b.applied)
    same('origin: the uuid of b', UUID, b.group)
    b.end()
    refuses('an empty node, later', 'row 1 of the log is missing',
            group=bytes(16), applied=0)
    a.end()
