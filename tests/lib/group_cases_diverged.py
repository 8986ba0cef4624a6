"""The cases of tests/scenario/group_nodes_diverged.sh (group_pair.py): other programs
write refs of a node. Each case can run alone, behind test_start: GROUP_ONLY."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (REPO, TABLES, a, b, back, both_connect,  # noqa: E402
                        both_start, lock_of, log, make_repo, new_commit,
                        refused, report, run, same, stdin, updated)

KEPT = 'refs/refd/diverged'


def test_start():
    """a leads, and b has the same refs."""
    global one, two, three
    both_start()
    one, two, three = make_repo(REPO)
    both_connect()
    updated('refs of the group', a, '--stdin', **stdin(
        f'create refs/heads/main {one}', f'create refs/heads/side {one}'))
    same_refs('created')


def value(node, ref, repo=REPO):
    return node.git(repo, 'rev-parse', '-q', '--verify', ref)


def kept(node):
    """What was kept on NODE for the last row, by name."""
    found = node.git(REPO, 'for-each-ref',
                     '--format=%(refname) %(objectname)',
                     f'{KEPT}/{len(log.rows)}')
    return dict(line.split() for line in found.splitlines())


def of_group(node):
    return [line.strip() for line in node.refs(REPO).splitlines()
            if KEPT not in line]


def same_refs(name):
    report(f'{name}: b has applied all', b.await_applied(30),
           (b.link and b.link.applied, len(log.rows), b.said()[-700:]))
    same(f'{name}: the same refs', of_group(a), of_group(b))


def name_of(ref):
    return f'{KEPT}/{len(log.rows)}/{ref[len("refs/"):]}'


def write(node, *args):
    """Plain git, without a hook."""
    subprocess.run(['git', '-C', f'{node.root}/{REPO}', *args], check=True)


def git_stdin(node, *lines):
    subprocess.run(['git', '-C', f'{node.root}/{REPO}', 'update-ref',
                    '--stdin'], check=True, text=True, **stdin(*lines))


def told(name, before, *texts):
    said = b.said()[before:]
    report(f'{name}: the log of b says so', all(
        text in said for text in ('group-ref-diverged', *texts)), said[-900:])


# ---- what was written ----

def test_value():
    before = len(b.said())
    write(b, 'update-ref', 'refs/heads/main', two)
    updated('a changes the ref', a, 'refs/heads/main', three, one)
    same_refs('a value')
    ref = name_of('refs/heads/main')
    same('the value is kept on b', {ref: two}, kept(b))
    same('and not on a', {}, kept(a))
    told('a value', before, two, ref)
    history = b.run('log', '--json', '-n', '2', '--ref', 'refs/heads/main')
    report('history of b has the value that was found', all(
        value in history.stdout for value in (one, two, three)), history)
    updated('and back', a, 'refs/heads/main', one, three)
    same_refs('after a value')


def test_same_value():
    """There is nothing to keep if the row has the value."""
    write(b, 'update-ref', 'refs/heads/main', two)
    updated('a gives the ref the same value', a, 'refs/heads/main', two, one)
    same_refs('the same value')
    same('nothing is kept', {}, kept(b))
    updated('and back', a, 'refs/heads/main', one, two)
    same_refs('after the same value')


def test_many():
    """Several refs in one atomic row: nothing of it is seen before all."""
    write(b, 'update-ref', 'refs/heads/main', two)
    write(b, 'update-ref', '-d', 'refs/heads/side')
    write(b, 'update-ref', 'refs/heads/ahead', three)
    before = len(b.said())
    updated('an atomic row', a, '--stdin', **stdin(
        'start', f'create refs/heads/ahead {one}', f'create refs/heads/x {one}',
        f'update refs/heads/main {three} {one}',
        f'update refs/heads/side {two} {one}', 'commit'))
    same_refs('several refs')
    same('the values are kept', {name_of('refs/heads/main'): two,
                                 name_of('refs/heads/ahead'): three}, kept(b))
    told('several refs', before, "'refs/heads/side' had no value")
    updated('and back', a, '--stdin', **stdin(
        f'delete refs/heads/ahead {one}', f'delete refs/heads/x {one}',
        f'update refs/heads/main {one} {three}',
        f'update refs/heads/side {one} {two}'))
    same_refs('after several refs')


def test_apart():
    """Several refs in a row that is not atomic."""
    write(b, 'update-ref', 'refs/heads/main', two)
    updated('a row', a, '--stdin', '--batch-updates', **stdin(
        f'update refs/heads/main {three} {one}',
        f'update refs/heads/side {two} {one}'))
    same_refs('apart')
    same('the value is kept', {name_of('refs/heads/main'): two}, kept(b))
    updated('and back', a, '--stdin', **stdin(
        f'update refs/heads/main {one} {three}',
        f'update refs/heads/side {one} {two}'))
    same_refs('after apart')


def test_deleted():
    before = len(b.said())
    write(b, 'update-ref', '-d', 'refs/heads/side')
    updated('a changes a ref that b lacks', a, 'refs/heads/side', two, one)
    same_refs('deleted')
    told('deleted', before, "'refs/heads/side' had no value")
    write(b, 'update-ref', '-d', 'refs/heads/side')
    updated('a deletes a ref that b lacks', a, '-d', 'refs/heads/side', two)
    same_refs('deleted on both')
    updated('a creates it again', a, 'refs/heads/side', one)
    same_refs('after deletions')


def test_changed_and_deleted():
    write(b, 'update-ref', 'refs/heads/side', two)
    updated('a deletes a ref that differs', a, '-d', 'refs/heads/side', one)
    same_refs('a deletion')
    same('the value is kept', {name_of('refs/heads/side'): two}, kept(b))
    updated('a creates it again', a, 'refs/heads/side', one)
    same_refs('after a deletion')


def test_packed():
    write(b, 'update-ref', 'refs/heads/side', two)
    write(b, 'pack-refs', '--all', '--prune')
    updated('a row for a ref that differs and is packed', a, 'refs/heads/side',
            three, one)
    same_refs('packed')
    same('the value is kept', {name_of('refs/heads/side'): two}, kept(b))
    updated('and back', a, 'refs/heads/side', one, three)
    same_refs('after packed')


# ---- names in the way ----

def test_below():
    write(b, 'update-ref', 'refs/heads/way/one', two)
    write(b, 'update-ref', 'refs/heads/way/deep/two', three)
    write(b, 'pack-refs', '--all', '--prune')
    write(b, 'update-ref', 'refs/heads/way/loose', two)
    updated('a ref, and b has refs below it', a, 'refs/heads/way', one)
    same_refs('refs below')
    same('the refs are kept', {
        name_of('refs/heads/way/one'): two,
        name_of('refs/heads/way/deep/two'): three,
        name_of('refs/heads/way/loose'): two}, kept(b))
    updated('and back', a, '-d', 'refs/heads/way', one)
    same_refs('after refs below')


def test_above():
    write(b, 'update-ref', 'refs/heads/way', two)
    updated('a ref below a ref of b', a, 'refs/heads/way/one', one)
    same_refs('a ref above')
    same('the ref is kept', {name_of('refs/heads/way'): two}, kept(b))
    write(b, 'update-ref', '-d', 'refs/heads/way/one')
    write(b, 'update-ref', 'refs/heads/way', three)
    updated('a change of a ref below a ref of b', a, 'refs/heads/way/one', two,
            one)
    same_refs('a ref above, instead')
    same('the ref is kept', {name_of('refs/heads/way'): three}, kept(b))
    updated('and back', a, '-d', 'refs/heads/way/one', two)
    same_refs('after a ref above')


def in_the_way(name, path, content, row, text):
    """The node waits until the file is gone."""
    path = f'{b.root}/{REPO}/{path}'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        f.write(content)
    before = len(b.said())
    updated(name, a, row, one)
    report(f'{name}: b says so', wait_for(40, lambda: text in
                                          b.said()[before:]), b.said()[before:])
    os.unlink(path)
    same_refs(name)
    updated(f'{name}: and back', a, '-d', row, one)
    same_refs(f'after {name}')


def test_no_ref():
    """A file in the way can't be kept. Reftables have no such files."""
    if TABLES:
        return
    in_the_way('a damaged ref above', 'refs/heads/way', 'garbage\n',
               'refs/heads/way/one', "'refs/heads/way' of ")
    in_the_way('a damaged ref below', 'refs/heads/way/two', 'garbage\n',
               'refs/heads/way', "'refs/heads/way/two' of ")
    in_the_way('a stray file', 'refs/heads/stray/x.lock', '',
               'refs/heads/stray', "the file 'refs/heads/stray/x.lock'")
    in_the_way('a ref with a bad name', 'refs/heads/bad/a..b', two + '\n',
               'refs/heads/bad', 'badname')


def test_symbolic():
    before = len(b.said())
    write(b, 'symbolic-ref', 'refs/heads/side', 'refs/heads/main')
    updated('a row for a ref that is symbolic on b', a, 'refs/heads/side', two,
            one)
    same_refs('a symbolic ref')
    same('it was not followed', one, value(b, 'refs/heads/main'))
    told('a symbolic ref', before, "'refs/heads/side' had the target "
         'refs/heads/main')
    write(b, 'symbolic-ref', 'refs/heads/way', 'refs/heads/main')
    updated('a ref below a symbolic ref of b', a, 'refs/heads/way/one', one)
    same_refs('a symbolic ref above')
    updated('and back', a, '--stdin', **stdin(
        f'delete refs/heads/way/one {one}',
        f'update refs/heads/side {one} {two}'))
    same_refs('after symbolic refs')


def symbolic(name, *lines):
    updated(name, a, '--compat', '2.55', '--no-deref', '--stdin',
            **stdin(*lines))


def test_to_symbolic():
    """A row makes a symbolic ref, where b has a value or nothing."""
    write(b, 'update-ref', 'refs/heads/link', two)
    symbolic('a new symbolic ref', 'symref-update refs/heads/link '
             'refs/heads/main')
    same_refs('a value in place of a new symbolic ref')
    same('the value is kept', {name_of('refs/heads/link'): two}, kept(b))
    write(b, 'symbolic-ref', '-d', 'refs/heads/link')
    write(b, 'update-ref', 'refs/heads/link', three)
    symbolic('another target', 'symref-update refs/heads/link refs/heads/side')
    same_refs('a value in place of a symbolic ref')
    same('the value is kept', {name_of('refs/heads/link'): three}, kept(b))
    write(b, 'symbolic-ref', '-d', 'refs/heads/link')
    symbolic('another target', 'symref-update refs/heads/link refs/heads/main')
    same_refs('nothing in place of a symbolic ref')


def test_detached():
    """Plain git has detached HEAD of the leader."""
    write(a, 'update-ref', '--no-deref', 'HEAD', one)
    for args in (('HEAD', two, one), ('-d', 'HEAD', one)):
        refused('a detached HEAD gets no value', a, "give 'HEAD' a target",
                '--no-deref', *args)
    symbolic('but a target', 'symref-update HEAD refs/heads/side')
    same_refs('a detached HEAD')
    for node in (a, b):
        same(f'HEAD of {node.name}', 'refs/heads/side',
             node.git(REPO, 'symbolic-ref', 'HEAD'))
    write(b, 'update-ref', '--no-deref', 'HEAD', two)
    symbolic('a new target', 'symref-update HEAD refs/heads/main')
    same_refs('a detached HEAD of a follower')
    same('its value is kept', {f'{KEPT}/{len(log.rows)}/HEAD': two}, kept(b))
    same('HEAD of b', 'refs/heads/main', b.git(REPO, 'symbolic-ref', 'HEAD'))


def test_missing_object():
    """What was written has no object, so no ref can keep it."""
    before = len(b.said())
    lost = new_commit(b, REPO, one)
    write(b, 'update-ref', 'refs/heads/main', lost)
    os.unlink(f'{b.root}/{REPO}/objects/{lost[:2]}/{lost[2:]}')
    updated('a changes the ref', a, 'refs/heads/main', two, one)
    same_refs('a missing object')
    same('nothing is kept', {}, kept(b))
    told('a missing object', before, f'{lost}, a missing object')
    updated('and back', a, 'refs/heads/main', one, two)
    same_refs('after a missing object')


# ---- moments ----

def test_killed():
    """kill -9 between the two steps: the ref is mended, and the lock of another
    ref holds the row up. Reftables have one lock for all refs."""
    if TABLES:
        return
    lock = lock_of(b, 'refs/heads/side')
    open(lock, 'w').close()
    write(b, 'update-ref', 'refs/heads/main', two)
    updated('a row', a, '--stdin', '--batch-updates', **stdin(
        f'update refs/heads/main {three} {one}',
        f'update refs/heads/side {two} {one}'))
    ref = name_of('refs/heads/main')
    report('b keeps the value', wait_for(20, lambda: value(b, ref) == two))
    b.kill()
    b.link.close()
    same('the row is not applied', (one, one), (value(b, 'refs/heads/main'),
                                                value(b, 'refs/heads/side')))
    os.unlink(lock)
    back(b)
    b.link.begin(False)
    same_refs('killed in between')
    same('it is kept once', {ref: two}, kept(b))
    updated('and back', a, '--stdin', **stdin(
        f'update refs/heads/main {one} {three}',
        f'update refs/heads/side {one} {two}'))
    same_refs('after a kill')


def test_name_taken():
    """The name has another value, or cannot be a ref."""
    write(b, 'update-ref', 'refs/heads/main', two)
    write(b, 'update-ref', 'refs/heads/side', two)
    nth = len(log.rows) + 1
    write(b, 'update-ref', f'{KEPT}/{nth}/heads/main', three)
    write(b, 'update-ref', f'{KEPT}/{nth}/heads/side/x', three)
    updated('a row', a, '--stdin', **stdin(
        f'update refs/heads/main {three} {one}',
        f'update refs/heads/side {three} {one}'))
    same('one row', nth, len(log.rows))
    same_refs('names that are taken')
    for name in ('main', 'side'):
        same(f'{name} is kept', two, value(b, f'{KEPT}/{nth}.2/heads/{name}'))
    updated('and back', a, '--stdin', **stdin(
        f'update refs/heads/main {one} {three}',
        f'update refs/heads/side {one} {three}'))
    same_refs('after names that are taken')


def test_no_name():
    """No name is free: the row waits, and the log says why."""
    write(b, 'update-ref', 'refs/heads/main', two)
    nth = len(log.rows) + 1
    taken = [f'{KEPT}/{nth}', *(f'{KEPT}/{nth}.{i}' for i in range(2, 101))]
    git_stdin(b, *(f'create {name} {three}' for name in taken))
    before = len(b.said())
    updated('a row', a, 'refs/heads/main', three, one)
    report('b says that no name is free', wait_for(
        30, lambda: 'no name is free' in b.said()[before:]), b.said()[before:])
    git_stdin(b, *(f'delete {name}' for name in taken))
    same_refs('no name')
    # b may have looked at the first names before git deleted them.
    report('the value is kept', two in b.git(
        REPO, 'for-each-ref', '--format=%(objectname)',
        f'{KEPT}/{nth}*/heads/main'), kept(b))
    updated('and back', a, 'refs/heads/main', one, three)
    same_refs('after no name')


def test_refused():
    """Refs of one node are no updates of the group."""
    for args in ((f'{KEPT}/1/heads/x', one), ('-d', f'{KEPT}/1/heads/x')):
        result = a.update(REPO, *args)
        report('refd update of a kept ref is refused', result.returncode != 0
               and 'belong to one node' in result.stderr, result)
    for line in (f'create {KEPT} {one}', f'update refs/refd {one}',
                 f'delete {KEPT} {one}',
                 f'symref-update {KEPT} refs/heads/main',
                 'symref-create refs/refd refs/heads/main'):
        result = a.update(REPO, '--compat', '2.55', '--no-deref', '--stdin',
                          **stdin(line))
        report(f'{line.split()[0]} above the kept refs is refused',
               result.returncode != 0 and 'no room' in result.stderr, result)
    result = a.update(REPO, 'refs/refd/mine', one)
    report('a new ref beside the kept refs is refused', result.returncode != 0
           and "refd's own" in result.stderr, result)


def test_row_above_kept():
    """A row of an older refd has such a ref: the node waits, and says so."""
    write(b, 'update-ref', 'refs/heads/main', two)
    updated('a row', a, 'refs/heads/main', three, one)
    same_refs('a kept value')
    b.link.close()
    old_name = 'refs/heads/diverge'
    updated('another row', a, old_name, one)
    epoch, row = log.rows[-1]
    log.rows[-1] = epoch, {**row, 'record': row['record'].replace(
        old_name.encode(), KEPT.encode())}
    before, count = len(b.said()), b.refs(REPO).count(KEPT)
    b.connect().begin(False)
    report('b says so', wait_for(30, lambda: 'is in the way' in
                                 b.said()[before:]), b.said()[before:])
    same('b makes no other ref', count, b.refs(REPO).count(KEPT))
    log.rows[-1] = epoch, row
    refs = b.git(REPO, 'for-each-ref', '--format=%(refname)', KEPT)
    git_stdin(b, *(f'delete {name}' for name in refs.split()))
    report('without the kept refs, b applies the row', b.await_applied(30))
    write(b, 'update-ref', '-d', KEPT)
    updated('and back', a, '--stdin', **stdin(
        f'delete {old_name} {one}', f'update refs/heads/main {one} {three}'))
    same_refs('after a row above the kept refs')


def at_leader(name, ref):
    """The values that a has kept for REF."""
    found = a.git(REPO, 'for-each-ref', '--format=%(refname) %(objectname)',
                  KEPT)
    return [line.split()[1] for line in found.splitlines()
            if line.split()[0].endswith(f'/{ref[len("refs/"):]}')]


def test_leader():
    """The leader itself is written to: the value of the group comes back, and
    the other one is kept."""
    before = len(a.said())
    write(a, 'update-ref', 'refs/heads/main', two)
    updated('an update with the old value of the group', a, 'refs/heads/main',
            three, one)
    same_refs('written at the leader')
    same('the value is kept on the leader', [two],
         at_leader('leader', 'refs/heads/main'))
    same('and b keeps nothing', {}, kept(b))
    said = a.said()[before:]
    report('the log of the leader says so', 'group-ref-diverged' in said and
           two in said, said[-900:])
    write(a, 'update-ref', 'refs/heads/main', two)
    refused('an update with the value that was found', a, three,
            'refs/heads/main', one, two)
    same('the value of the group is back', three, value(a, 'refs/heads/main'))
    write(a, 'update-ref', '-d', 'refs/heads/main')
    refused('a creation', a, 'exists', '--stdin', **stdin(
        f'create refs/heads/main {one}'))
    write(a, 'symbolic-ref', 'refs/heads/main', 'refs/heads/side')
    updated('an update of what has become a symbolic ref', a,
            'refs/heads/main', one, three)
    same_refs('after another value of the leader')
    same('nothing was followed', one, value(a, 'refs/heads/side'))


def test_leader_deleted():
    """packed-refs of an older copy brings a deleted ref back."""
    updated('a ref', a, 'refs/heads/gone/x', one)
    updated('is deleted', a, '-d', 'refs/heads/gone/x', one)
    write(a, 'update-ref', 'refs/heads/gone/x', two)
    updated('and made again', a, '--stdin', **stdin(
        f'create refs/heads/gone/x {three}'))
    same_refs('a ref that has come back')
    same('its value is kept', [two], at_leader('back', 'refs/heads/gone/x'))
    write(a, 'update-ref', '-d', 'refs/heads/gone/x')
    write(a, 'update-ref', 'refs/heads/gone', two)
    updated('a ref with another ref in its way', a, 'refs/heads/gone/x', one,
            three)
    same_refs('a ref in the way')
    same('which is kept', [two], at_leader('way', 'refs/heads/gone'))
    updated('and back', a, '-d', 'refs/heads/gone/x', one)


def test_leader_again():
    """The values outlive the daemon."""
    a.kill()
    a.link.close()
    write(a, 'update-ref', 'refs/heads/side', two)
    back(a)
    report('a leads again', a.lead())
    updated('an update with the value of the group', a, 'refs/heads/side',
            three, one)
    same_refs('after another start of the leader')
    updated('and back', a, 'refs/heads/side', one, three)
    same_refs('after the leader')


def test_verify():
    for node in (a, b):
        result = subprocess.run(
            [*node.inside, 'verify', '--state', node.state,
             f'{node.seen_root}/{REPO}'], capture_output=True, text=True)
        report(f'refd verify finds nothing on {node.name}',
               result.returncode == 0, result)
    b.kill()
    b.link.close()
    back(b)
    b.link.begin(False)
    same_refs('after another start')
    report('b leads', b.lead())
    updated('b takes updates', b, 'refs/heads/main', two, one)
    report('a has applied all', a.await_applied(), a.said()[-500:])
    same('the same refs', of_group(a), of_group(b))


run(test_start, test_value, test_same_value, test_many, test_apart,
    test_deleted, test_changed_and_deleted, test_packed, test_below, test_above,
    test_no_ref, test_symbolic, test_to_symbolic, test_detached,
    test_missing_object, test_killed, test_name_taken, test_no_name,
    test_row_above_kept, test_refused, test_leader, test_leader_deleted,
    test_leader_again, test_verify)
