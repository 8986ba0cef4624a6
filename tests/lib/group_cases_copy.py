"""The cases of tests/scenario/group_nodes_copy.sh (group_pair.py): the
repositories of a node, or its journal, are an older copy. Each case can run
alone, behind test_start: GROUP_ONLY."""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (REPO, TOP, a, b, back, log,  # noqa: E402
                        make_repo, new_commit, report, run, same, same_refs,
                        stdin, updated)

OTHER = 'team/other.git'


def test_start():
    """a leads. b has two repositories, and both have rows."""
    global one, two, three
    for node in (a, b):
        report(f'{node.name} starts', node.start(), node.said())
    one, two, three = make_repo(REPO)
    make_repo(OTHER, 0)
    for node in (a, b):
        subprocess.run(['cp', '-a', f'{node.root}/{REPO}/objects',
                        f'{node.root}/{OTHER}'], check=True)
        node.connect()
    report('a leads', a.lead())
    for repo in (REPO, OTHER):
        updated('refs of the group', a, '--stdin', repo=repo, **stdin(
            f'create refs/heads/main {one}', f'create refs/heads/side {one}',
            f'create refs/heads/deep/er {one}', f'create refs/tags/t {one}'))
    same_refs('created', OTHER)


# ---- copies ----

def stop(node):
    node.kill(signal.SIGTERM)
    node.link.close()


def again(name, node=b):
    """Starts the node, which must work as before."""
    before = len(node.said())
    report(f'{name}: {node.name} starts', node.start(),
           node.said()[before:][-900:])
    node.connect()
    node.link.begin(False)


def keep(what, name='kept', flags='-a'):
    """A copy of a file or directory of b, which does not run."""
    path = f'{TOP}/{name}'
    shutil.rmtree(path, ignore_errors=True)
    subprocess.run(['cp', flags, what, path], check=True)
    return path


def put_back(kept, what, flags='-a'):
    """Replaces WHAT, or its content: a root is a mount point."""
    subprocess.run(['find', what, '-mindepth', '1', '-delete'], check=True)
    subprocess.run(['cp', flags, f'{kept}/.', what], check=True)


def refused(name, *texts, node=b):
    """The daemon ends at its start, and says why."""
    before = len(node.said())
    node.launch()
    report(f'{name}: the daemon ends', node.ended() not in (None, 0))
    said = node.said()[before:]
    report(f'{name}: it says why', all(text in said for text in texts),
           said[-900:])
    recovered = node.recover()
    report(f'{name}: refd recover says so, too', recovered.returncode == 74
           and texts[0] in recovered.stderr, recovered)


def kept_before(work):
    """The root of b from before WORK, which a does. b is stopped."""
    same_refs('before the copy')
    stop(b)
    kept = keep(b.root)
    again('after the copy')
    work()
    same_refs('after the rows')
    same_refs('after the rows', OTHER)
    stop(b)
    keep(b.root, 'newest')
    return kept


def newest_again(name):
    put_back(f'{TOP}/newest', b.root)
    again(name)
    same_refs(name)
    same_refs(name, OTHER)


def changes(name, work, *texts, flags='-a', prepare=None):
    """WORK changes refs, and b gets its repositories from before."""
    kept = kept_before(work)
    put_back(kept, b.root, flags)
    if prepare:
        prepare()
    refused(name, 'an older copy', *texts)
    newest_again(f'{name}, and the newest copy')


def flip():
    """A change of a ref, and later its opposite."""
    main = a.git(REPO, 'rev-parse', 'refs/heads/main')
    updated('a changes a ref', a, 'refs/heads/main',
            two if main == one else one, main)


def test_value():
    changes('an older value', flip, 'refs/heads/main', REPO)


def test_new_times():
    """cp -r gives every file the present time."""
    changes('a copy with new times', flip, 'refs/heads/main', flags='-r')


def test_created():
    number = len(log.rows)

    def create():
        updated('a creates a ref', a, f'refs/heads/new{number}', one)

    for flags in ('-a', '-r'):
        changes(f'a missing ref ({flags})', create,
                f'refs/heads/new{number}', flags=flags)
        number = len(log.rows)


def test_deleted():
    def delete():
        updated('a deletes a ref', a, '-d', 'refs/heads/gone', one)

    for flags in ('-a', '-r'):
        updated('a creates a ref', a, 'refs/heads/gone', one)
        changes(f'a ref that was deleted ({flags})', delete,
                'refs/heads/gone', flags=flags)


def pack(node=b, repo=REPO):
    subprocess.run(['git', '-C', f'{node.root}/{repo}', 'pack-refs', '--all',
                    '--prune'], check=True)


def test_packed():
    """The copy has the older value in packed-refs."""
    stop(b)
    pack()
    again('packed')
    changes('an older value in packed-refs', flip, 'refs/heads/main')
    changes('git packs the copy', flip, 'refs/heads/main', prepare=pack)


def test_symref():
    def work():
        head = a.git(REPO, 'symbolic-ref', 'refs/heads/sym')
        updated('a changes a symbolic ref', a, '--no-deref', '--stdin',
                **stdin('symref-update refs/heads/sym refs/heads/'
                        + ('side' if 'main' in head else 'main')))

    work()
    changes('an older symbolic ref', work, 'refs/heads/sym')


def test_one_repository():
    """Only one of them is older, and its row is not the last one."""
    kept = kept_before(lambda: (flip(), updated(
        'a row of the other', a, f'refs/heads/n{len(log.rows)}', one,
        repo=OTHER)))
    put_back(f'{kept}/{REPO}', f'{b.root}/{REPO}')
    refused('one repository', 'an older copy', REPO)
    newest_again('one repository')


def test_leader():
    """The same at the node that leads."""
    stop(a)
    kept, newest = keep(a.root), f'{TOP}/newest'
    back(a)
    report('a leads', a.lead())
    flip()
    same_refs('the leader')
    stop(a)
    keep(a.root, 'newest')
    put_back(kept, a.root)
    refused('the leader', 'an older copy', node=a)
    put_back(newest, a.root)
    back(a)
    report('a leads again', a.lead())
    same_refs('the leader is back')


# ---- beside the daemon ----

def of_group(node):
    return [line for line in node.refs(REPO).splitlines()
            if 'refs/refd/diverged' not in line]


def test_beside():
    """One repository of a running follower becomes an older copy, without its
    newer objects, and this node leads. What the clients have been told is there
    on both nodes."""
    path, main = f'{b.root}/{REPO}', a.git(REPO, 'rev-parse', 'main')
    updated('a makes a ref', a, 'refs/heads/brief', one)
    same_refs('before the copy')
    older = keep(path, 'older')
    new = new_commit(a, REPO, one)
    updated('a changes refs', a, '--stdin', **stdin(
        f'update refs/heads/main {new} {main}',
        f'create refs/heads/late {new}', f'delete refs/heads/brief {one}'))
    same_refs('after the row')
    wanted = of_group(a)
    before = len(b.said())
    os.rename(path, f'{TOP}/aside')
    os.rename(older, path)
    report('b leads', b.lead())
    updated('b takes an update from the value of the group', b,
            'refs/heads/late', two, new)
    updated('and back', b, 'refs/heads/late', new, two)
    report('all refs are back', wait_for(20, lambda: of_group(b) == wanted),
           of_group(b))
    report('a has both rows', a.await_applied(), a.said()[-500:])
    same('and those of a are as they were', wanted, of_group(a))
    report('b says so', main in b.said()[before:] and 'group-ref-diverged' in
           b.said()[before:], b.said()[before:][-900:])
    for ref in b.git(REPO, 'for-each-ref', '--format=%(refname)',
                     'refs/refd').split():
        write('update-ref', '-d', ref)
    report('a leads again', a.lead())
    updated('the refs as before', a, '--stdin', **stdin(
        f'update refs/heads/main {main} {new}',
        f'delete refs/heads/late {new}'))
    same_refs('after the older copy')


# ---- a journal ----

def test_older_both():
    """The node lacks rows, and gets them again."""
    same_refs('before the copies')
    stop(b)
    kept, state = keep(b.root), keep(b.state, 'state')
    again('after the copies')
    flip()
    same_refs('after the row')
    stop(b)
    put_back(kept, b.root)
    put_back(state, b.state)
    again('an older copy of both')
    same_refs('an older copy of both')


def test_older_journal():
    same_refs('before the copy')
    stop(b)
    state = keep(b.state, 'state')
    again('after the copy')
    flip()
    same_refs('after the row')
    stop(b)
    newest = keep(b.state, 'state-newest')
    put_back(state, b.state)
    before = len(b.said())
    b.launch()
    report('an older journal: the daemon ends', b.ended() not in (None, 0))
    report('it says why', all(text in b.said()[before:] for text in (
        'an older copy', 'refd group join')),
        b.said()[before:])
    put_back(newest, b.state)
    again('the newest journal')
    same_refs('the newest journal')


def test_older_copy_of_older_journal():
    """Repositories of the first moment, and a journal of the second."""
    same_refs('before the copies')
    stop(b)
    kept = keep(b.root)
    again('after the copy')
    flip()
    same_refs('after a row')
    stop(b)
    state = keep(b.state, 'state')
    again('after the second copy')
    flip()
    updated('another row', a, f'refs/heads/n{len(log.rows)}', one)
    same_refs('after the rows')
    stop(b)
    keep(b.root, 'newest')
    newest = keep(b.state, 'state-newest')
    put_back(kept, b.root)
    put_back(state, b.state)
    refused('both older', 'an older copy')
    put_back(newest, b.state)
    newest_again('both older')


# ---- what is no older copy ----

def write(*args, repo=REPO):
    """Plain git, without a hook."""
    subprocess.run(['git', '-C', f'{b.root}/{repo}', *args], check=True)


def test_foreign():
    """Another program has written refs, also earlier values."""
    updated('a makes a ref', a, 'refs/heads/foreign', one)
    updated('a changes it', a, 'refs/heads/foreign', two, one)
    updated('a makes a ref', a, 'refs/heads/lost', one)
    updated('a makes a ref', a, 'refs/heads/deleted', one)
    updated('a deletes it', a, '-d', 'refs/heads/deleted', one)
    same_refs('foreign')
    b.run('checkpoint')
    time.sleep(1.1)
    stop(b)
    write('update-ref', 'refs/heads/foreign', one)
    write('update-ref', '-d', 'refs/heads/lost')
    write('update-ref', 'refs/heads/deleted', one)
    again('values of another program')
    updated('rows for them', a, '--stdin', **stdin(
        f'update refs/heads/foreign {three} {two}',
        f'delete refs/heads/lost {one}',
        f'create refs/heads/deleted {two}'))
    report('b has applied all', b.await_applied(30), b.said()[-500:])
    same('the row wins', [three, two], [b.git(REPO, 'rev-parse', ref) for ref
                                        in ('foreign', 'deleted')])
    for ref in b.git(REPO, 'for-each-ref', '--format=%(refname)',
                     'refs/refd').split():
        write('update-ref', '-d', ref)
    same_refs('foreign')


def test_kept():
    """b has kept a value of another program. Then it gets the repository of a,
    which has no such ref."""
    updated('a makes a ref', a, 'refs/heads/kept', one)
    same_refs('kept')
    stop(b)
    write('update-ref', 'refs/heads/kept', new_commit(b, REPO, one))
    again('a value of another program')
    updated('a row for it', a, 'refs/heads/kept', three, one)
    report('b has applied it', b.await_applied(30), b.said()[-500:])
    report('b has kept a value', 'refs/refd/diverged/' in b.refs(REPO),
           b.refs(REPO))
    # No checkpoint knows this row, so the start replays it in the copy, whose
    # tables have lower indices than those of b.
    updated('a last row', a, 'refs/heads/last', one)
    report('b has applied the last row', b.await_applied(30), b.said()[-500:])
    b.kill()
    b.link.close()
    put_back(f'{a.root}/{REPO}', f'{b.root}/{REPO}')
    again('the copy of a')
    # The rows before the copy count at no later start, either.
    updated('a row for the copy', a, '-d', 'refs/heads/last', one)
    report('b has applied it, too', b.await_applied(30), b.said()[-500:])
    b.run('checkpoint')
    stop(b)
    again('the copy of a, again')
    same_refs('the copy of a')


def test_moved():
    """A repository is moved, replaced or removed while b is stopped."""
    flip()
    same_refs('moved')
    stop(b)
    os.rename(f'{b.root}/{OTHER}', f'{b.root}/team/moved.git')
    again('moved')
    stop(b)
    subprocess.run(['git', 'init', '-q', '--bare', f'{b.root}/{OTHER}'],
                   check=True)
    again('replaced')
    stop(b)
    shutil.rmtree(f'{b.root}/{OTHER}')
    os.rename(f'{b.root}/team/moved.git', f'{b.root}/{OTHER}')
    again('and back')
    same_refs('and back', OTHER)


def test_crash():
    """Rows of the last moment before a crash, again and again."""
    for i in range(6):
        flip()
        updated('a row', a, f'refs/heads/crash{i}', one)
        updated('its end', a, '-d', f'refs/heads/crash{i}', one)
        report('b has applied all', b.await_applied())
        b.kill()
        b.link.close()
        again('after a crash')
    same_refs('crashes')


def test_twice():
    """A ref that has its earlier value again, by rows."""
    flip()
    flip()
    same_refs('twice')
    stop(b)
    again('an earlier value by a row')


run(test_start, test_value, test_new_times, test_created, test_deleted,
    test_packed, test_symref, test_one_repository, test_leader, test_beside,
    test_older_both, test_older_journal, test_older_copy_of_older_journal,
    test_foreign, test_kept, test_moved, test_crash, test_twice)
