"""The cases of tests/scenario/group_nodes_together.sh (group_pair.py): b was
away, and gets many rows at once. Each case can run alone, behind test_start:
GROUP_ONLY."""
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (TABLES, a, b, back, lock_of, log,  # noqa: E402
                        make_repo, metric, new_commit, refused, report,
                        run, same, same_refs, stdin, updated)

REPOS = [f'{name}.git' for name in ('one', 'two', 'three')]
MAIN = 'refs/heads/main'
random.seed(int(os.environ.get('GROUP_SEED', '1')))
# Related names: one that is made needs others gone.
NAMES = [f'refs/heads/{name}' for name in
         ('a', 'a/b', 'a/b/c', 'a/d', 'a-b', 'e', 'e/f', 'g')]
values = {}
state = {repo: {} for repo in REPOS}


def test_start():
    report('a starts', a.start(), a.said())
    report('b starts', b.start(), b.said())
    a.connect()
    b.connect()
    report('a leads', a.lead())
    for repo in REPOS:
        values[repo] = make_repo(repo)
        updated(f'{repo} is new', a, MAIN, values[repo][0], repo=repo)
    all_same('start')


def all_same(name):
    for repo in REPOS:
        same_refs(f'{name}: {repo}', repo)
    written, known = journal(a), {row[0] for row in journal(a)}
    same(f'{name}: the journals', written,
         [row for row in journal(b) if row[0] in known])


def journal(node):
    """What each transaction did, in the order of each repository."""
    rows = []
    for repo in REPOS:
        told = node.run('log', '--json', '-n', '1000', '--repo',
                        f'{node.seen_root}/{repo}')
        for line in told.stdout.splitlines():
            row = json.loads(line)
            rows.append((row['txn'], repo, row['ref'], row.get('old'),
                         row.get('new')))
    return rows


def change(repo, *lines):
    result = a.update(repo, '--stdin', **stdin(*lines))
    assert result.returncode == 0, (lines, result)


def away():
    """b is not connected."""
    b.link.close()


def are_related(name, other):
    return name != other and (f'{other}/'.startswith(f'{name}/')
                              or f'{name}/'.startswith(f'{other}/'))


def random_change(repo):
    """One or two updates of a transaction, with their old values."""
    refs, lines = state[repo], {}
    for name in random.sample(NAMES, random.choice((1, 1, 2))):
        old = refs.get(name)
        if old and random.random() < 0.4:
            lines[name] = f'delete {name} {old}'
        elif not any(are_related(name, other) for other in [*refs, *lines]):
            new = random.choice([value for value in values[repo]
                                 if value != old])
            lines[name] = f'update {name} {new} {old or "0" * len(new)}'
    if lines:
        change(repo, *lines.values())
    for name, line in lines.items():
        refs[name] = line.split()[2]
        if line.startswith('delete'):
            del refs[name]


def write_much(changes):
    for _ in range(changes):
        random_change(random.choice(REPOS))


# ---- many rows ----

def test_together():
    """One flush for many rows, also of one repository."""
    away()
    for i in range(20):
        for repo in REPOS[:2]:
            change(repo, f'create refs/heads/together{i} {values[repo][0]}')
    flushes = metric(b, 'journal_flushes_total')
    b.connect().begin(False)
    all_same('together')
    flushes = metric(b, 'journal_flushes_total') - flushes
    report('together: few flushes', flushes <= 20, flushes)


def looks():
    """At new objects, before a transaction is applied."""
    return metric(b, 'barriers_total') + metric(b, 'barrier_copies_total')


def test_objects():
    """One look at the new objects of many rows."""
    repo = REPOS[0]
    away()
    for i in range(40):
        a.link.near(len(log.rows))
        change(repo, f'create refs/heads/objects{i} '
               f'{new_commit(a, repo, values[repo][0])}')
    report('objects: in the rows', log.rows[-1][1]['objects'])
    before = looks()
    b.connect().begin(False)
    all_same('objects')
    report('objects: few looks', looks() - before <= 5, looks() - before)


def test_related():
    """Rows that need the rows before them."""
    for i in range(3):
        away()
        write_much(30)
        b.connect().begin(False)
        all_same(f'related {i}')


def test_symref():
    """The same ref by its name, and through HEAD."""
    repo = REPOS[2]
    end = a.git(repo, 'symbolic-ref', 'HEAD')
    one, two = values[repo][:2]
    change(repo, f'update {end} {one}')
    all_same('HEAD')
    away()
    for _ in range(4):
        change(repo, f'update HEAD {two} {one}')
        change(repo, f'update {end} {one} {two}')
    b.connect().begin(False)
    all_same('HEAD and its branch')


# ---- rows that can't be applied ----

def test_lock():
    """One row waits, with the later ones of its repository alone."""
    away()
    write_much(10)
    first = len(log.rows) + 1
    old, new = values[REPOS[0]][:2]
    change(REPOS[0], f'update {MAIN} {new} {old}')
    for i in range(10):
        for repo in REPOS:
            change(repo, f'create refs/heads/lock{i} {values[repo][0]}')
    path = lock_of(b, MAIN, REPOS[0])
    open(path, 'w').close()
    b.connect().begin(False)
    for repo in REPOS[1:]:
        report(f'lock: {repo} goes on', wait_for(
            10, lambda: a.refs(repo) == b.refs(repo)), b.said()[-500:])
    if not TABLES:
        same('lock: b has the rows before', first - 1, b.link.applied)
    report('lock: the row waits', b.link.applied < len(log.rows))
    os.unlink(path)
    all_same('without the lock')
    change(REPOS[0], f'update {MAIN} {old} {new}')
    all_same('lock: another row')


def test_diverged():
    """A value of another program is kept, and the rows go on."""
    repo = REPOS[1]
    change(repo, f'create refs/heads/diverged {values[repo][0]}')
    all_same('diverged')
    away()
    write_much(5)
    change(repo, f'update refs/heads/diverged {values[repo][1]} '
           f'{values[repo][0]}')
    write_much(5)
    b.git(repo, 'update-ref', 'refs/heads/diverged', values[repo][2])
    b.connect().begin(False)
    report('diverged: b has applied all', b.await_applied(), b.said()[-500:])
    kept = b.git(repo, 'for-each-ref', '--format=%(objectname) %(refname)',
                 'refs/refd/diverged')
    report('diverged: the value is kept', values[repo][2] in kept, kept)
    for line in kept.splitlines():
        b.git(repo, 'update-ref', '-d', line.split()[1])
    all_same('diverged: the rows')


def test_missing():
    """b lacks a repository, which comes later."""
    away()
    write_much(5)
    b.others[0].link.holds = 'skip'
    new = make_repo('missing.git', 1, is_on_both=False)[0]
    updated('missing: a has a new one', a, MAIN, new, repo='missing.git')
    a.link.holds = 'copy'
    write_much(5)
    b.connect().begin(False)
    same_refs('missing', 'missing.git')
    all_same('missing')


def test_moved():
    """A repository is moved between two rows: b moves it once, too, when the
    row before is applied."""
    before = len(b.said())
    away()
    change(REPOS[0], f'create refs/heads/before {values[REPOS[0]][0]}')
    os.rename(f'{a.root}/{REPOS[0]}', f'{a.root}/moved.git')
    change('moved.git', f'create refs/heads/behind {values[REPOS[0]][0]}')
    b.connect().begin(False)
    same_refs('moved', 'moved.git')
    same('moved once', 1, b.said()[before:].count('event=group-moved'))
    for node in (a, b):
        os.rename(f'{node.root}/moved.git', f'{node.root}/{REPOS[0]}')
    change(REPOS[0], *(f'delete refs/heads/{name} {values[REPOS[0]][0]}'
                       for name in ('before', 'behind')))
    all_same('moved back')


# ---- ends ----

def test_killed():
    """b never applies a row twice, and leaves none out."""
    for i in range(8):
        away()
        write_much(12)
        b.connect().begin(False)
        time.sleep(random.random() * 0.06)
        b.kill()
        b.link.close()
        back(b)
        b.link.begin(False)
    all_same('killed')


def test_link():
    """The connection is lost while rows are in work."""
    for i in range(8):
        away()
        write_much(8)
        b.connect().begin(False)
        time.sleep(random.random() * 0.03)
        away()
        b.connect().begin(False)
    all_same('link')


def test_role():
    """b leads as soon as it has all rows, and not before."""
    away()
    write_much(20)
    b.connect()
    report('b leads', b.lead(), b.said()[-500:])
    all_same('role')
    old, new = values[REPOS[2]][:2]
    updated('b writes', b, MAIN, new, old, repo=REPOS[2])
    refused('a follows', a, 'this node follows', MAIN, old, new,
            repo=REPOS[2])
    report('a has the row', wait_for(
        10, lambda: a.git(REPOS[2], 'rev-parse', MAIN) == new))
    report('a leads again', a.lead(), a.said()[-500:])
    updated('a writes', a, MAIN, old, new, repo=REPOS[2])
    all_same('role: the former leader')


run(test_start, test_together, test_objects, test_related, test_symref,
    test_lock, test_diverged, test_missing, test_moved, test_killed, test_link,
    test_role)
