"""The cases of tests/scenario/group_nodes_leave.sh (group_pair.py): the way
from a group to a single machine, and to a new group. Each case goes on where
the one before has ended."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_nodes import GROUP  # noqa: E402
from group_pair import (REPO, TOP, a, b, back, lock_of, log,  # noqa: E402
                        make_repo, refused, report, run, same, same_refs,
                        stdin, updated)
import journal_copy  # noqa: E402

MARK = f'{REPO}/refd/group'


def test_start():
    global one, two, three, token, txn
    for node in (a, b):
        report(f'{node.name} starts', node.start(), node.said())
    one, two, three = make_repo(REPO)
    for node in (a, b):
        node.connect()
    report('a leads', a.lead())
    updated('refs of the group', a, '--stdin', **stdin(
        f'create refs/heads/main {one}', f'create refs/heads/side {one}'))
    out = json.loads(updated('a row', a, '--json', 'refs/heads/main', two,
                             one).stdout)
    token, txn = out['token'], out['txn']
    same_refs('created')
    for node in (a, b):
        report(f'the repository of {node.name} is marked',
               os.path.exists(f'{node.root}/{MARK}'))


def stop(node, number=signal.SIGTERM):
    node.kill(number)
    node.link.close()


def alone(node):
    """The configuration without a group."""
    config = open(f'{node.top}/config').read()
    with open(f'{node.top}/config', 'w') as f:
        f.write(config[:config.index('[group]')])


def verify(node):
    found = subprocess.run(
        [*node.inside, 'verify', '--state', node.state,
         f'{node.seen_root}/{REPO}'], capture_output=True, text=True)
    report(f'refd verify of {node.name}', found.returncode == 0, found)


def ends(name, node, text):
    before = len(node.said())
    node.launch()
    report(f'{name}: the daemon ends', node.ended() not in (None, 0))
    report(f'{name}: it says why', text in node.said()[before:],
           node.said()[before:])


# ---- consent ----

def ask(answer):
    """refd recover --leave at a terminal. The status and the output."""
    terminal, other = pty.openpty()
    asked = subprocess.Popen(
        [*a.inside, 'recover', '--state', a.state, '--leave'], stdin=other,
        stdout=other, stderr=other)
    os.close(other)
    os.write(terminal, answer.encode())
    said = b''
    try:
        while more := os.read(terminal, 4096):
            said += more
    except OSError:     # the end
        pass
    os.close(terminal)
    return asked.wait(20), said.decode()


def test_consent():
    stop(a)
    result = a.recover('--leave')
    report('without a terminal: nothing is changed', result.returncode == 1
           and '--yes leaves the group' in result.stderr, result)
    status, said = ask('n\n')
    report('no consent', status == 1 and f'up to LSN {len(log.rows)}' in said
           and 'nothing was changed' in said, (status, said))
    same('--yes alone is wrong', 129, a.recover('--yes').returncode)
    report('--leave and --join are wrong', a.recover(
        '--leave', '--join', '1', input='').returncode == 129)
    report('the mark is there', os.path.exists(f'{a.root}/{MARK}'))
    config = open(f'{a.top}/config').read()
    alone(a)
    ends('a node that has not left, without a group', a,
         'belongs to a node of a group')
    with open(f'{a.top}/config', 'w') as f:
        f.write(config)
    back(a)
    same('a is of the group', GROUP, a.link.group)
    report('a leads', a.lead())


def test_waiting():
    """A row that waits is an update that this node would lose."""
    lock = lock_of(b, 'refs/heads/side')
    open(lock, 'w').close()
    updated('a row for a ref that is locked on b', a, 'refs/heads/side', two,
            one)
    report('b has put the row off', b.await_said('group-row-waits'),
           b.said()[-500:])
    report('b has the row', wait_for(10, lambda: in_journal(
        'SELECT count(*) FROM waiting') == 1))
    stop(b)
    result = b.recover('--leave', '--yes')
    report('b does not leave', result.returncode == 74
           and 'rows of the group wait here' in result.stderr, result)
    os.unlink(lock)
    back(b)
    b.link.begin(False)
    same_refs('b has applied the row')
    updated('and back', a, 'refs/heads/side', one, two)
    same_refs('and back')


def in_journal(sql):
    return journal_copy.ask(b.state, sql)[0][0]


# ---- one machine ----

def left(result):
    """The words for a new group."""
    found = re.search(r'refd group create ((\d+):([0-9a-f]{32}))',
                      result.stderr)
    report('the node has left', result.returncode == 0 and found, result)
    return found


def test_leave():
    """After a crash: recovery comes first."""
    global origin, left_at
    updated('a last row', a, 'refs/heads/main', three, two)
    left_at = len(log.rows)
    stop(a, signal.SIGKILL)
    origin = left(a.recover('--leave', '--yes'))
    same('the last row', left_at, int(origin[2]))
    report('the mark is gone', not os.path.exists(f'{a.root}/{MARK}'))
    # As after a kill between the journal and the marks.
    open(f'{a.root}/{MARK}', 'w').close()
    report('a starts as a node', a.start(), a.said())
    a.connect()
    same('a names no other group', origin[3], a.link.group.hex())
    refused('a takes no update', a, 'refd-group', 'refs/heads/main', one)
    stop(a, signal.SIGKILL)
    same('again, without a question', origin[1],
         left(a.recover('--leave'))[1])
    report('and the mark is gone', not os.path.exists(f'{a.root}/{MARK}'))
    open(f'{a.root}/{MARK}', 'w').close()
    alone(a)
    report('a starts', a.start(), a.said())
    same('the last row is there', three, a.git(REPO, 'rev-parse', 'main'))
    updated('an update', a, 'refs/heads/main', one, three)
    report('the opening removes a mark', not os.path.exists(
        f'{a.root}/{MARK}'))
    same('git may write', '', a.git(REPO, 'update-ref', 'refs/heads/git', two)
         or a.git(REPO, 'update-ref', '-d', 'refs/heads/git'))
    told = a.run('query', txn)
    report('an id from the group', told.returncode == 0 and 'ok '
           in told.stdout, told)
    waited = a.run('wait', token)
    report('a token of the group', waited.returncode == 128
           and 'the token is of the log' in waited.stderr, waited)
    told = a.run('log', '--json', '--ref', 'refs/heads/main').stdout
    same('the history goes on', 4, len(told.splitlines()))


def test_crash_alone():
    """A single machine defers what it can't redo. A group would fail."""
    updated('an update', a, 'refs/heads/side', two, one)
    a.kill()
    report('a starts', a.start(), a.said())
    same('the value', two, a.git(REPO, 'rev-parse', 'side'))
    verify(a)


def test_restored():
    """An older copy on a single machine is no matter of a group."""
    a.kill(signal.SIGTERM)
    shutil.rmtree(f'{TOP}/kept', ignore_errors=True)
    subprocess.run(['cp', '-a', f'{a.root}/{REPO}', f'{TOP}/kept'], check=True)
    report('a starts', a.start(), a.said())
    updated('an update', a, 'refs/heads/side', one, two)
    a.kill(signal.SIGTERM)
    shutil.move(f'{a.root}/{REPO}', f'{TOP}/newest')
    subprocess.run(['cp', '-a', f'{TOP}/kept', f'{a.root}/{REPO}'], check=True)
    report('a starts with an older copy', a.start(), a.said())
    a.kill(signal.SIGTERM)
    shutil.rmtree(f'{a.root}/{REPO}')
    shutil.move(f'{TOP}/newest', f'{a.root}/{REPO}')


# ---- a new group ----

def test_new_group():
    a.configure()
    back(a)
    same('a is the beginning of a new group', (origin[3], left_at),
         (a.link.group.hex(), a.link.applied))
    log.group = bytes.fromhex(origin[3])
    b.link.close()
    report('a leads', a.lead())
    stop(a)
    copy(b)
    back(a)
    report('a leads again', a.lead())
    b.link.begin(False)
    updated('a row', a, 'refs/heads/main', two, one)
    same('it is the next row', left_at + 1, len(log.rows))
    same_refs('the new group')
    report('the repository of a is marked', os.path.exists(
        f'{a.root}/{MARK}'))
    verify(a)
    verify(b)
    out = json.loads(updated('a row', a, '--json', 'refs/heads/side', two,
                             one).stdout)
    same('the token is of the new group', f'{origin[3]}:{len(log.rows)}',
         out['token'])
    same('b has the row', 0, b.run('wait', '--timeout', '10',
                                   out['token']).returncode)


def copy(node):
    """Makes the node anew from a copy of a, which does not run."""
    node.kill(signal.SIGTERM)
    same(f'{node.name} gives its journal up', 0,
         node.recover('--discard').returncode)
    shutil.rmtree(f'{node.root}/team')
    subprocess.run(['cp', '-a', f'{a.root}/team', node.root], check=True)
    joined = node.recover('--join', str(len(log.rows)), input='')
    same(f'{node.name} joins', 0, joined.returncode)
    report(f'{node.name} starts', node.start(), node.said())
    node.connect()


def test_member_again():
    """Now a is a node of a group as every other one."""
    report('b leads', b.lead())
    updated('a row of b', b, 'refs/heads/main', three, two)
    report('a has applied all', a.await_applied())
    stop(a)
    config = open(f'{a.top}/config').read()
    alone(a)
    ends('without a group', a, 'belongs to a node of a group')
    with open(f'{a.top}/config', 'w') as f:
        f.write(config)
    back(a)
    a.link.begin(False)
    same_refs('again')
    stop(a)
    again = left(a.recover('--leave', '--yes'))
    report('another origin', again and again[1] != origin[1]
           and int(again[2]) == len(log.rows), again)


run(test_start, test_consent, test_waiting, test_leave, test_crash_alone,
    test_restored, test_new_group, test_member_again)
