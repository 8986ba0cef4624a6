"""The cases of tests/scenario/group_nodes_place.sh (group_pair.py). Each case
can run alone, behind test_start: GROUP_ONLY."""
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_nodes import id_of  # noqa: E402
from group_pair import (TABLES, TOP, a, b, back, both_connect,  # noqa: E402
                        both_start, log, make_repo, new_commit, refused,
                        report, run, same, same_refs, updated)

MAIN = 'refs/heads/main'


def test_start():
    both_start()
    both_connect()
    begun('first.git')


def begun(repo):
    """A new repository of a, with a ref. Returns its value."""
    value = make_repo(repo, 1, is_on_both=False)[0]
    updated(f'{repo} is new', a, MAIN, value, repo=repo)
    return value


def goes_on(name, repo):
    """A later update of the repository. Returns the value."""
    old = a.git(repo, 'rev-parse', MAIN)
    value = new_commit(a, repo, old)
    updated(f'{name}: an update', a, MAIN, value, old, repo=repo)
    return value


def both_have(name, *repos):
    for repo in repos:
        same_refs(f'{name}: {repo}', repo)
        same(f'{name}: the repository {repo}', id_of(f'{a.root}/{repo}'),
             id_of(f'{b.root}/{repo}'))
        report(f'{name}: {repo} has refs', a.refs(repo) != '')


def move(node, old, new):
    os.makedirs(os.path.dirname(f'{node.root}/{new}'), exist_ok=True)
    os.rename(f'{node.root}/{old}', f'{node.root}/{new}')


def aside(path):
    """Where a follower keeps the repository which is at the path now."""
    return os.path.join(os.path.dirname(path),
                        f'.refd-{id_of(f"{a.root}/{path}")}')


def stopped():
    """b is away: its rows wait."""
    b.kill()
    b.link.close()


def started(node=b):
    back(node)
    node.link.begin(False)


def moves(path):
    """What b says about moves from PATH, or to PATH."""
    return [line for line in b.said().split('\n') if 'event=group-moved' in line
            and f'/{path} ' in line.replace('"', ' ')]


# ---- moves ----

def test_replaced():
    value = begun('replaced.git')
    both_have('replaced', 'replaced.git')
    same('b tells of no new repository', [], moves('replaced.git'))
    former = aside('replaced.git')
    shutil.rmtree(f'{a.root}/replaced.git')
    begun('replaced.git')
    both_have('replaced', 'replaced.git')
    same('the former one is aside', value, b.git(former, 'rev-parse', MAIN))
    report('b tells of the former one alone', [former in line for line in
                                               moves('replaced.git')]
           == [True], moves('replaced.git'))


def test_renamed():
    begun('old/name.git')
    both_have('renamed', 'old/name.git')
    move(a, 'old/name.git', 'new/deep/name.git')
    goes_on('renamed', 'new/deep/name.git')
    both_have('renamed', 'new/deep/name.git')
    report('the former path is free', not os.path.exists(
        f'{b.root}/old/name.git'))
    begun('old/name.git')
    both_have('a new one at the former path', 'old/name.git',
              'new/deep/name.git')


def test_removed():
    """A row that changes nothing brings the repository out of sight on both
    nodes. Then it can be deleted on each."""
    begun('unwanted.git')
    both_have('removed', 'unwanted.git')
    move(a, 'unwanted.git', 'trash/unwanted.git')
    updated('an update that changes nothing', a, '--stdin',
            repo='trash/unwanted.git', input='verify refs/none\n')
    both_have('removed', 'trash/unwanted.git')
    report('the former path is free', not os.path.exists(
        f'{b.root}/unwanted.git'))
    for node in a, b:
        shutil.rmtree(f'{node.root}/trash')
    begun('unwanted.git')
    both_have('a new one', 'unwanted.git')
    b.kill()
    back(b)
    b.link.begin(False)
    goes_on('removed', 'unwanted.git')
    both_have('after a start', 'unwanted.git')


def test_swap():
    begun('left.git')
    begun('other/right.git')
    both_have('swap', 'left.git', 'other/right.git')
    for _ in range(2):
        move(a, 'left.git', 'tmp.git')
        move(a, 'other/right.git', 'left.git')
        move(a, 'tmp.git', 'other/right.git')
        goes_on('swap', 'left.git')
        goes_on('swap', 'other/right.git')
        both_have('swap', 'left.git', 'other/right.git')
    same('nothing stays aside', [], glob.glob(f'{b.root}/**/.refd-*',
                                              recursive=True)
         if os.environ.get('GROUP_ONLY') else [])


def test_unknown():
    """The journal of b does not know the path of a repository."""
    begun('unknown/x.git')
    both_have('unknown', 'unknown/x.git')
    move(b, 'unknown/x.git', 'copied/from/elsewhere.git')
    goes_on('unknown', 'unknown/x.git')
    both_have('unknown', 'unknown/x.git')
    report('moved', not os.path.exists(
        f'{b.root}/copied/from/elsewhere.git'))


def test_chain():
    """Rows from before and behind renames come late, and in order."""
    begun('chain.git')
    both_have('chain', 'chain.git')
    stopped()
    a.link.holds = 'skip'
    goes_on('chain', 'chain.git')
    move(a, 'chain.git', 'chain/2.git')
    goes_on('chain', 'chain/2.git')
    begun('chain.git')
    move(a, 'chain/2.git', 'chain/3.git')
    move(a, 'chain.git', 'chain/2.git')
    goes_on('chain', 'chain/3.git')
    goes_on('chain', 'chain/2.git')
    begun('chain.git')
    started()
    both_have('chain', 'chain.git', 'chain/2.git', 'chain/3.git')
    a.link.holds = 'copy'


# ---- failures ----

def test_lost():
    """b has lost a repository, or has it elsewhere for a while. The empty one
    that refd-group makes does not replace it."""
    value = begun('lost.git')
    updated('another ref', a, 'refs/heads/side', value, repo='lost.git')
    both_have('lost', 'lost.git')
    place, lost = f'{b.root}/lost.git', f'{TOP}/lost.git'
    empty = f'{b.root}/{aside("lost.git")}'
    for name in ('copied', 'moved back', 'claimed'):
        os.rename(place, lost)
        if name == 'claimed':
            subprocess.run(['git', 'init', '-q', '--bare', place], check=True)
        before = len(b.said())
        goes_on(name, 'lost.git')
        report(f'{name}: the row waits',
               b.await_said('has lost it', before), b.said()[before:])
        same(f'{name}: nothing is written', '', b.refs(os.path.relpath(
            place if name == 'claimed' else empty, b.root)))
        shutil.rmtree(place if name == 'claimed' else empty)
        if name == 'moved back':
            os.rename(lost, place)
        else:
            subprocess.run(['cp', '-a', lost, place], check=True)
            shutil.rmtree(lost)
        both_have(name, 'lost.git')
    report('another ref is there', 'refs/heads/side' in b.refs('lost.git'))


def test_crash():
    """b is killed between the moves of a row. Its journal has the former
    paths, and rows that no checkpoint has made unnecessary."""
    begun('crash/x.git')
    begun('crash/y.git')
    both_have('crash', 'crash/x.git', 'crash/y.git')
    for moves in (1, 2):
        former = aside('crash/y.git')
        stopped()
        move(a, 'crash/y.git', f'crash/{moves}.git')
        move(a, 'crash/x.git', 'crash/y.git')
        move(b, 'crash/y.git', former)
        if moves == 2:
            move(b, 'crash/x.git', 'crash/y.git')
        a.link.holds = 'skip'
        goes_on(f'move {moves}', 'crash/y.git')
        a.link.holds = 'copy'
        started()
        both_have(f'killed behind move {moves}', 'crash/y.git')
        goes_on(f'move {moves}', f'crash/{moves}.git')
        both_have(f'killed behind move {moves}', f'crash/{moves}.git')
        begun('crash/x.git')
        both_have(f'killed behind move {moves}', 'crash/x.git')


def way_of(path):
    """Where a follower keeps what was in the way of the last row."""
    return os.path.join(os.path.dirname(path), f'.refd-way-{len(log.rows)}')


def test_in_the_way():
    """What is no repository of the group is moved, and not changed."""
    begun('way/x.git')
    both_have('way', 'way/x.git')
    move(a, 'way/x.git', 'way/y.git')
    os.makedirs(f'{b.root}/victim/refd')
    with open(f'{b.root}/victim/refd/id', 'w') as f:
        f.write(f'uuid {"7" * 32}\njournal {"0" * 32}\npath /x\n')
    way = f'{b.root}/way/y.git'
    os.symlink(f'{TOP}/root/victim', way)
    before = len(b.said())
    goes_on('a link', 'way/y.git')
    report('the row waits for a link', b.await_said('way/y.git', before),
           b.said()[before:])
    report('the link is not touched', os.path.islink(way))
    os.unlink(way)
    both_have('without a link', 'way/y.git')
    move(a, 'way/y.git', 'way/z.git')
    goes_on('a link', 'way/z.git')
    both_have('a link', 'way/z.git')
    move(a, 'way/z.git', 'way/y.git')
    for name, make in (
            ('a file', lambda: open(way, 'w').close()),
            ('a directory', lambda: os.makedirs(f'{way}/below/it'))):
        make()
        made = os.lstat(way)
        before = len(b.said())
        goes_on(name, 'way/y.git')
        both_have(name, 'way/y.git')
        kept = way_of(way)
        report(f'{name} is kept', os.path.lexists(kept)
               and os.lstat(kept).st_ino == made.st_ino, os.listdir(
                   os.path.dirname(way)))
        report(f'{name}: b tells', kept.split('/')[-1] in b.said()[before:],
               b.said()[before:])
        move(a, 'way/y.git', 'way/z.git')
        goes_on(name, 'way/z.git')
        both_have(name, 'way/z.git')
        move(a, 'way/z.git', 'way/y.git')
    report('a directory is whole', os.path.isdir(f'{kept}/below/it'))
    report('what the link named is whole',
           os.path.exists(f'{b.root}/victim/refd/id'))
    shutil.rmtree(f'{b.root}/victim')


def test_name_of_the_way_taken():
    """Nothing is replaced: then the row waits."""
    begun('taken.git')
    both_have('taken', 'taken.git')
    move(a, 'taken.git', 'taken/x.git')
    os.mkdir(f'{b.root}/taken')
    for path in ('taken/x.git', f'taken/.refd-way-{len(log.rows) + 1}'):
        open(f'{b.root}/{path}', 'w').close()
    before = len(b.said())
    goes_on('taken', 'taken/x.git')
    report('b says what is in the way', b.await_said('is in the way', before),
           b.said()[before:])
    os.unlink(f'{b.root}/taken/x.git')
    both_have('taken', 'taken/x.git')


def test_directory_in_the_way():
    """A repository moves to a path above or below its own, or is new there."""
    for name, old, new in (('up', 'up/x.git', 'up'),
                           ('down', 'down', 'down/y'),
                           ('new', 'gone/x.git', 'gone')):
        value = begun(old)
        both_have(name, old)
        if name == 'new':
            shutil.rmtree(f'{a.root}/gone')
        else:
            os.rename(f'{a.root}/{old}', f'{a.root}/moving')
        if name == 'up':
            os.rmdir(f'{a.root}/up')
        if name == 'new':
            begun(new)
        else:
            move(a, 'moving', new)
            goes_on(name, new)
        both_have(name, new)
    same('the removed one is kept', value,
         b.git(f'{way_of("gone")}/x.git', 'rev-parse', MAIN))


def test_link_on_the_way():
    """A link in place of a directory of the path leads to nothing."""
    begun('plain/x.git')
    both_have('link', 'plain/x.git')
    move(a, 'plain/x.git', 'link/x.git')
    os.mkdir(f'{b.root}/target')
    os.symlink('target', f'{b.root}/link')
    before = len(b.said())
    goes_on('link', 'link/x.git')
    report('the row waits', b.await_said('group-row-waits', before),
           b.said()[before:])
    same('nothing is moved', [], os.listdir(f'{b.root}/target'))
    os.unlink(f'{b.root}/link')
    both_have('without the link', 'link/x.git')


def new_boot(node):
    """The last values of refs need not be on the disk, as after a power
    loss. False: a container has mounted its own id, and forbids another."""
    with open(f'{TOP}/boot_id', 'w') as f:
        f.write(open('/proc/sys/kernel/random/uuid').read())
    return subprocess.run([*node.inside[:-1], 'mount', '--bind',
                           f'{TOP}/boot_id',
                           '/proc/sys/kernel/random/boot_id']).returncode == 0


def test_gone():
    """The leader loses power when a repository with new rows is gone, and
    another one is at a new path, with an older value in a file."""
    if TABLES:
        return
    begun('gone.git')
    kept = begun('kept.git')
    both_have('gone', 'gone.git', 'kept.git')
    goes_on('gone', 'gone.git')
    moved = goes_on('gone', 'kept.git')
    both_have('gone', 'gone.git', 'kept.git')
    a.kill()
    a.link.close()
    shutil.rmtree(f'{a.root}/gone.git')
    ref = f'{a.root}/kept.git/{MAIN}'
    with open(ref, 'w') as f:
        f.write(f'{kept}\n')
    os.utime(ref, (1, 1))
    move(a, 'kept.git', 'moved.git')
    if not new_boot(a):
        print('skip a leader that loses power: no new boot id', flush=True)
        return
    back(a)
    report('the leader tells of both', a.said().count('repository-missing') > 1,
           a.said()[-800:])
    report('a leads', a.lead())
    later = new_commit(a, 'moved.git', moved)
    updated('an update at the new path', a, MAIN, later, moved,
            repo='moved.git')
    both_have('moved', 'moved.git')
    refused('a removed repository', a, 'gone.git', MAIN, later,
            repo='gone.git')
    begun('gone.git')
    both_have('a new one', 'gone.git')


run(test_start, test_lost, test_replaced, test_renamed, test_removed, test_swap,
    test_unknown, test_chain, test_crash, test_in_the_way,
    test_name_of_the_way_taken, test_directory_in_the_way,
    test_link_on_the_way, test_gone)
