"""The cases of tests/scenario/group_objects.sh (group_pair.py). Each case can
run alone, behind test_start: GROUP_ONLY."""
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (REPO, a, b, back, both_connect,  # noqa: E402
                        both_start, in_background, log, make_repo, new_commit,
                        report, run, same, same_refs, stdin, updated)


def git(node, *args, **more):
    result = subprocess.run(['git', '-C', f'{node.root}/{REPO}', *args],
                            capture_output=True, **more)
    assert result.returncode == 0, (args, result)
    return result.stdout.strip().decode()


def commit(parents, files, node=a):
    """A commit of FILES, path to content, that only NODE has."""
    index = {**os.environ, 'GIT_INDEX_FILE': f'{node.top}/index'}
    git(node, 'read-tree', parents[0] if parents else '--empty', env=index)
    for path, content in files.items():
        blob = git(node, 'hash-object', '-w', '--stdin', input=content)
        git(node, 'update-index', '--add', '--cacheinfo',
            f'100644,{blob},{path}', env=index)
    return git(node, 'commit-tree', git(node, 'write-tree', env=index), '-m',
               str(time.time()), *[word for parent in parents
                                   for word in ('-p', parent)])


def loose(node, name):
    """The file of the object NAME."""
    return f'{node.root}/{REPO}/objects/{name[:2]}/{name[2:]}'


class Near:
    """Says to a, again and again, that b is near."""

    def __enter__(self):
        self.has_ended = threading.Event()
        self.thread = threading.Thread(target=self.tell)
        a.link.near(len(log.rows))
        self.thread.start()

    def tell(self):
        while not self.has_ended.wait(0.5):
            a.link.near(len(log.rows))

    def __exit__(self, *_):
        self.has_ended.set()
        self.thread.join()


def row_of(name, *update, asks):
    """Makes an update, and returns its row. ASKS: the number of HOLDs."""
    before, nr = a.link.asked, len(log.rows)
    updated(name, a, *update)
    same(f'{name}: HOLDs', asks, a.link.asked - before)
    same(f'{name}: rows', 1, len(log.rows) - nr)
    return log.rows[-1][1] if len(log.rows) > nr else {'objects': None}


def holds(name, *update):
    row = row_of(name, *update, asks=1)
    same(f'{name}: the row has no objects', b'', row['objects'])


def in_row(name, *update, objects):
    """OBJECTS: how many the row has."""
    row = row_of(name, *update, asks=0)
    same(f'{name}: objects in the row', objects, count(row['objects']))
    return row


def count(data):
    nr = 0
    while data:
        data = data[5 + int.from_bytes(data[1:5], 'little'):]
        nr += 1
    return nr


def test_start():
    """a leads, and refs/heads/main is in the log."""
    global main
    # The leader looks for the objects of a row for 10 ms at most, and then asks
    # the other nodes. On a busy machine it must not lose the processor.
    a.inside[:0] = ['nice', '-n', '-20']
    both_start()
    make_repo(REPO, 1)
    # Too large for a row, so nothing behind main is in a row later.
    main = commit([], {'f': b'1\n', 'dir/g': b'1\n', 'dir/sub/h': b'1\n',
                       'large': os.urandom(100000)})
    both_connect()
    holds('without a word about b', 'refs/heads/main', main)
    same_refs('a first value')


def push(name, files, objects, ref='refs/heads/main'):
    """Moves REF to a new commit of FILES."""
    old = git(a, 'rev-parse', ref)
    new = commit([old], files)
    row = in_row(name, ref, new, old, objects=objects)
    same_refs(name)
    git(b, 'fsck', '--connectivity-only')
    return new, row


def test_objects():
    """A commit, its trees, its files; nothing that b has."""
    with Near():
        push('one file', {'f': b'2\n'}, 3)
        push('a file far below', {'dir/sub/h': b'2\n'}, 5)
        push('a new directory', {'new/way/x': b'3\n'}, 5)
        push('the same file at another place', {'dir/f': b'2\n'}, 4)
        old = git(a, 'rev-parse', 'refs/heads/main')
        new = commit([old], {})
        in_row('an empty commit', 'refs/heads/main', new, old, objects=1)
        in_row('no new object', 'refs/heads/copy', new, objects=0)
        in_row('a new branch', 'refs/heads/branch',
               commit([new], {'f': b'3\n'}), objects=3)
        first = commit([new], {'f': b'4\n'})
        second = commit([first], {'dir/g': b'4\n'})
        in_row('two commits', 'refs/heads/main', second, new, objects=6)
        merge = commit([second, git(a, 'rev-parse', 'refs/heads/branch')],
                       {'f': b'3\n'})
        in_row('a merge', 'refs/heads/main', merge, second, objects=2)
        tag = git(a, 'mktag', input=(
            f'object {merge}\ntype commit\ntag t\n'
            'tagger T <t@example.org> 1 +0000\n\nT\n').encode())
        in_row('a tag', 'refs/tags/t', tag, objects=1)
        in_row('a deletion', '-d', 'refs/heads/copy', objects=0)
    same_refs('all kinds')
    git(b, 'fsck', '--full')


def test_forgets():
    """A value that is behind no ref any more is asked for again."""
    with Near():
        first = git(a, 'rev-parse', 'refs/heads/main')
        updated('a branch', a, 'refs/heads/gone', first)
        updated('its deletion', a, '-d', 'refs/heads/gone')
        start = commit([first], {'f': b'other\n'})
        holds('after a deletion', 'refs/heads/main', start)
        old, _ = push('known again', {'f': b'5\n'}, 3)
        new = commit([old], {'f': b'6\n'})
        in_row('without its old value', 'refs/heads/main', new, objects=3)
        forced = commit([old], {'f': b'7\n'})
        in_row('a forced update', 'refs/heads/main', forced, new, objects=3)
        holds('back to the old value', 'refs/heads/main', new, forced)
        other = commit([], {'z': b'no history\n'})
        in_row('a branch without history', 'refs/heads/other', other, objects=3)
        in_row('a value is left behind', 'refs/heads/other', new, other,
               objects=0)
        holds('the next update', 'refs/heads/main', commit([old], {'f': b'8'}))
    same_refs('forgets')


def test_stale():
    """An update that fails after HELD makes no value known."""
    with Near():
        old = git(a, 'rev-parse', 'refs/heads/main')
        updated('known', a, 'refs/heads/known', old)
        large = commit([old], {'large': os.urandom(100000)})
        before = a.link.asked
        result = a.update(REPO, 'refs/heads/main', large,
                          git(a, 'hash-object', '-w', '--stdin', input=b''))
        report('is stale', result.returncode != 0, result)
        same('asks', 1, a.link.asked - before)
        # The row of the stale update can come late.
        updated('on top', a, 'refs/heads/main',
                commit([large], {'f': b'24\n'}), old)
        same('asks again', 2, a.link.asked - before)
    same_refs('stale')


def test_bounds():
    """What is too large, or not provable, is fetched."""
    with Near():
        old, _ = push('small', {'f': b'8\n'}, 3)
        large = commit([old], {'large': os.urandom(100000)})
        holds('a large file', 'refs/heads/main', large, old)
        many = commit([large], {f'd{i}/x': b'%d' % i for i in range(40)})
        holds('many files', 'refs/heads/main', many, large)
        moved = commit([many], {'new place': b'0'})
        in_row('a file from another directory', 'refs/heads/main', moved, many,
               objects=3)
        tree = git(a, 'rev-parse', f'{moved}:dir')
        alone = git(a, 'commit-tree', tree, '-m', 'a directory', '-p', moved)
        row_of('a directory as the root', 'refs/heads/main', alone, moved,
               asks=0)
        same_refs('bounds')


def raw(kind, data):
    return git(a, 'hash-object', '-t', kind, '--literally', '-w', '--stdin',
               input=data)


def commit_of(tree, parent):
    return git(a, 'commit-tree', tree, '-p', parent, '-m', str(time.time()))


def test_revert():
    """A tree that comes again does not hide what was new in between."""
    with Near():
        old, _ = push('before', {'f': b'20\n'}, 3)
        b.link.holds = 'wait'
        added = commit([old], {'e': b'new\n', 'f': b'21\n'})
        changed = commit([added], {'f': b'22\n'})
        reverted = commit_of(git(a, 'rev-parse', f'{added}^{{tree}}'), changed)
        in_row('add, change, revert', 'refs/heads/main', reverted, old,
               objects=8)
        same_refs('revert')
        b.link.holds = 'copy'
        git(b, 'fsck', '--full')


def test_odd():
    """What git does not follow, or what no node can have."""
    with Near():
        old, _ = push('before', {'f': b'30\n'}, 3)
        holds('a null tree', 'refs/heads/odd', raw('commit', (
            f'tree {"0" * 40}\nparent {old}\nauthor T <t@e> 1 +0000\n'
            'committer T <t@e> 1 +0000\n\nx\n').encode()))
        tree = raw('tree', b'160755 sub\0' + b'\x11' * 20)
        before = a.link.asked
        odd = commit_of(tree, old)
        updated('a submodule of an odd mode', a, 'refs/heads/main', odd, old)
        blob = bytes.fromhex(git(a, 'hash-object', '-w', '--stdin',
                                 input=b'31\n'))
        tree = raw('tree', b'100644 f\0' + blob + b'160755 sub\0'
                   + b'\x11' * 20)
        updated('and again', a, 'refs/heads/main', commit_of(tree, odd), odd)
        same('no HOLD', before, a.link.asked)
        updated('it ends', a, '-d', 'refs/heads/odd')
        last = git(a, 'rev-parse', 'refs/heads/main')
        updated('known again', a, 'refs/heads/main', commit([last], {}), last)
        same_refs('odd modes')


def test_unopened():
    """The repository is away from b for a moment."""
    with Near():
        old, _ = push('before', {'f': b'32\n'}, 3)
        b.link.holds = 'wait'
        os.rename(f'{b.root}/{REPO}', f'{b.top}/away')
        in_row('an update', 'refs/heads/main', commit([old], {'f': b'33\n'}),
               old, objects=3)
        report('b says so', b.await_said(REPO))
        time.sleep(1)
        os.rename(f'{b.top}/away', f'{b.root}/{REPO}')
        same_refs('back')
        b.link.holds = 'copy'


def test_far():
    """While b is away, every update asks."""
    with Near():
        old, _ = push('near', {'f': b'9\n'}, 3)
    time.sleep(5.2)
    new = commit([old], {'f': b'10\n'})
    holds('nobody is near', 'refs/heads/main', new, old)
    a.link.near(0)
    log_before = len(log.rows)
    report('the log is short', log_before < 5000)
    with Near():
        push('near again', {'f': b'11\n'}, 3)
    same_refs('far')


def test_new_leader():
    """A node that leads anew knows nothing of other nodes."""
    a.lead()
    with Near():
        old = git(a, 'rev-parse', 'refs/heads/main')
        holds('after a new role', 'refs/heads/main',
              commit([old], {'f': b'12\n'}), old)
    same_refs('new leader')


def test_missing():
    """b lacks a file that the row's tree names: it asks, and does not apply
    the row before."""
    with Near():
        old, _ = push('before', {'f': b'13\n', 'lost': b'only here\n'}, 4)
        blob = git(a, 'rev-parse', f'{old}:lost')
        os.unlink(loose(b, blob))
        b.link.holds = 'wait'
        before = b.link.asked
        new = commit([old], {'f': b'14\n'})
        in_row('an update', 'refs/heads/main', new, old, objects=3)
        report('b asks', b.await_asked(before))
        same('b has not applied', old, git(b, 'rev-parse', 'refs/heads/main'))
        report('b says what is missing', b.await_said(blob))
        b.link.holds = 'copy'
        same_refs('brought')
    git(b, 'fsck', '--full')


def test_pruned():
    """While a row waits in b, git removes an object that the row has brought:
    the row brings it again, without an answer of another node."""
    with Near():
        old, _ = push('before', {'f': b'18\n', 'lost': b'and again\n'}, 4)
        lost = loose(b, git(a, 'rev-parse', f'{old}:lost'))
        os.rename(lost, f'{b.top}/lost')
        b.link.holds = 'wait'
        before = b.link.asked
        new = commit([old], {'f': b'19\n'})
        in_row('an update', 'refs/heads/main', new, old, objects=3)
        report('b asks', b.await_asked(before))
        brought = loose(b, git(a, 'rev-parse', f'{new}:f'))
        report('the row has brought the file',
               wait_for(5, lambda: os.path.exists(brought)))
        # Behind a second attempt of b to write it.
        time.sleep(0.5)
        os.unlink(brought)
        os.rename(f'{b.top}/lost', lost)
        same_refs('pruned')
        b.link.holds = 'copy'
    git(b, 'fsck', '--full')


def test_relinked():
    """refd-group of b starts again while a row waits for an object."""
    with Near():
        old, _ = push('before', {'f': b'40\n', 'lost': b'too\n'}, 4)
        blob = git(a, 'rev-parse', f'{old}:lost')
        os.unlink(f'{b.root}/{REPO}/objects/{blob[:2]}/{blob[2:]}')
        b.link.holds = 'wait'
        before = b.link.asked
        in_row('an update', 'refs/heads/main', commit([old], {'f': b'41\n'}),
               old, objects=3)
        report('b asks', b.await_asked(before))
        b.link.close()
        b.connect()
        b.link.begin(False)
        same_refs('a new connection')


def test_torn():
    """A torn object of b is written again by the row that brings it."""
    with Near():
        old = git(a, 'rev-parse', 'refs/heads/main')
        new = commit([old], {'f': b'torn\n'})
        blob = git(a, 'rev-parse', f'{new}:f')
        path = loose(b, blob)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, 'w').close()
        in_row('an update', 'refs/heads/main', new, old, objects=3)
        same_refs('torn')
        same('the content', 'torn', git(b, 'cat-file', 'blob', blob))
    git(b, 'fsck', '--full')


def inside(*args):
    """A program in the mount namespace of b."""
    return subprocess.run([*b.inside[:-1], *args], capture_output=True,
                          text=True, check=True).stdout.strip()


def test_full():
    """The disk of b is full when b writes the objects of a row: the row waits,
    and b has all of them when there is room again."""
    repo = 'full.git'
    path, filler = f'{b.seen_root}/{repo}', f'{b.seen_root}/{repo}/filler'
    first, second, _ = make_repo(repo)
    with Near():
        same('the first update asks', 1, asks('first', repo, first))
        same_refs('first', repo)
        inside('sh', '-ec', 'cp -a "$1" "$2"; mount -t tmpfs -o size=4m none '
               '"$1"; cp -a "$2/." "$1"', 'sh', path, f'{b.top}/copy')
        same('the second does not', 0, asks('second', repo, second, first))
        report('b has it', b.await_applied(), b.said()[-500:])
        inside('sh', '-c', 'cat /dev/zero >"$1"; true', 'sh', filler)
        before = b.link.applied
        same('nor the third', 0, asks('third', repo, new_commit(
            a, repo, second), second))
        report('b says so', b.await_said('No space left'), b.said()[-500:])
        same('b runs, and has not applied the row', (None, before),
             (b.ended(0), b.link.applied))
        same('b has the value before', second, inside(
            'git', '-C', path, 'rev-parse', 'refs/heads/x'))
        inside('rm', filler)
        report('b has the row', b.await_applied(), b.said()[-500:])
        same('and its objects', 'commit', inside(
            'git', '-C', path, 'cat-file', '-t', 'refs/heads/x'))
        inside('git', '-C', path, 'fsck', '--full')


def test_killed():
    """A row with objects is applied after a kill, of b and of a."""
    with Near():
        old, _ = push('before', {'f': b'15\n'}, 3)
        b.kill()
        b.link.close()
        middle = commit([old], {'f': b'16\n'})
        in_row('b is dead', 'refs/heads/main', middle, old, objects=3)
        back(b)
        b.link.begin(False)
        same_refs('b is back')
        new = commit([middle], {'f': b'17\n'})
        a.link.policy = 'forget'
        client = in_background(a, 'refs/heads/main', new, middle)
        report('a ends', a.ended() is not None)
        client.kill()
        client.wait()
    a.link.close()
    for name in git(a, 'rev-parse', new, f'{new}:f').split():
        os.unlink(loose(a, name))
    back(a)
    report('a leads', a.lead())
    same('a has the value', new, git(a, 'rev-parse', 'refs/heads/main'))
    git(a, 'fsck', '--full')
    same_refs('a is back')


def asks(name, repo, *update):
    """How often an update of REPO asks."""
    before = a.link.asked
    updated(name, a, 'refs/heads/x', *update, repo=repo)
    return a.link.asked - before


def test_stores():
    """The first update of a repository asks, and so does every one with a
    second object store, or in a partial clone."""
    with Near():
        for kind, wanted in ('plain', 0), ('partial', 1), ('alternates', 1):
            repo = f'team/{kind}.git'
            first, second, _ = make_repo(repo)
            if kind == 'partial':
                a.git(repo, 'config', 'extensions.partialClone', 'origin')
            if kind == 'alternates':
                with open(f'{a.root}/{repo}/objects/info/alternates', 'w') as f:
                    f.write('../../plain.git/objects\n')
            same(f'{kind}: first', 1, asks(f'{kind} first', repo, first))
            same(f'{kind}: second', wanted,
                 asks(f'{kind} second', repo, second, first))
            same_refs(kind, repo)


def test_order():
    """An update with objects in its row comes behind an update of the same
    repository that waits for HOLD."""
    with Near():
        old = git(a, 'rev-parse', 'refs/heads/main')
        updated('known', a, 'refs/heads/known', old)
        a.link.holds = 'wait'
        before, nr, short = a.link.asked, len(log.rows), ('--timeout', '2000')
        large = in_background(a, *short, 'refs/heads/large', commit(
            [old], {'large': os.urandom(100000)}))
        report('the large one asks', a.await_asked(before))
        small = in_background(a, *short, 'refs/heads/small',
                              commit([old], {'f': b'21\n'}))
        time.sleep(0.5)
        same('no row', nr, len(log.rows))
    a.link.close()
    report('both fail', large.wait(20) != 0 and small.wait(20) != 0)
    a.connect()
    report('a leads again', a.lead())
    same_refs('order')


def test_paid():
    """A repository with much in the log asks for the rest of the minute."""
    with Near():
        updated('known again', a, 'refs/heads/new',
                git(a, 'rev-parse', 'refs/heads/main'))
        old, _ = push('small', {'f': b'22\n'}, 3)
        new = commit([old], {'large': os.urandom(60000)})
        before = a.link.asked
        updated('many refs', a, '--stdin',
                **stdin(*[f'create refs/heads/many{i} {new}'
                          for i in range(40)]))
        same('many refs: HOLDs', 1, a.link.asked - before)
        holds('a small one', 'refs/heads/main', commit([old], {'f': b'23\n'}),
              old)
    same_refs('paid')


def test_asked_again():
    """b asks for a missing object again soon, if the fetch fails: the node
    that it was asked of may be lost, and b shall lead."""
    a.link.holds, b.link.holds = 'skip', 'fail'
    before = b.link.asked
    updated('asked again: a has the object', a, 'refs/heads/again',
            commit([main], {'again': b'again'}))
    report('asked again: b asks', wait_for(10, lambda: b.link.asked > before))
    a.link.holds = b.link.holds = 'copy'
    report('asked again: soon', b.await_applied(1.2), b.said()[-300:])
    same_refs('asked again')


run(test_start, test_objects, test_forgets, test_stale, test_bounds,
    test_revert, test_odd, test_unopened, test_far, test_new_leader,
    test_missing, test_pruned, test_relinked, test_torn, test_full,
    test_killed, test_stores, test_order, test_paid, test_asked_again)
