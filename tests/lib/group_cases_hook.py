"""The cases of tests/scenario/group_nodes_hook.sh (group_pair.py): plain git in
a repository of a group. GIT names another git."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group_pair import (REPO, TABLES, TOP, a, b, back,  # noqa: E402
                        both_connect, both_start, make_repo, report, run, same,
                        same_refs, stdin, updated)

GIT = os.environ.get('GIT', 'git')
HOOK = 'hooks/reference-transaction'


def test_start():
    """a leads, and both nodes have the hook."""
    global one, two, three
    both_start()
    one, two, three = make_repo(REPO)
    both_connect()
    done = enabled(a)
    report('the first opening says that a is in a group',
           os.path.islink(f'{a.root}/{REPO}/{HOOK}'), done)
    updated('refs of the group', a, '--stdin', **stdin(
        f'create refs/heads/main {one}', f'create refs/heads/side {one}',
        f'create refs/heads/other {one}', f'create refs/tags/t {one}'))
    same_refs('created')
    done = enabled(b)
    report('b has the hook, too', os.path.islink(f'{b.root}/{REPO}/{HOOK}'),
           done)
    done = enabled(b)
    report('again: nothing to do', 'enabled already' in done.stdout, done)


def enabled(node):
    return node.run('enable', f'{node.seen_root}/{REPO}')


def disabled(node):
    return subprocess.run([*node.inside, 'disable', f'{node.seen_root}/{REPO}'],
                          capture_output=True, text=True,
                          env={**os.environ, 'REFD_STATE': node.state})


def git(node, *args, **more):
    return subprocess.run([GIT, '-C', f'{node.root}/{REPO}', *args],
                          capture_output=True, text=True, **more)


def value(node, ref):
    return git(node, 'rev-parse', ref).stdout.strip()


def done(name, node, *args, **more):
    before = node.refs(REPO)
    result = git(node, *args, **more)
    report(f'{name}: done', result.returncode == 0, result)
    same(f'{name}: the same refs', before, node.refs(REPO))


def not_done(name, node, ref, *args, **more):
    before = node.refs(REPO)
    result = git(node, *args, **more)
    report(f'{name}: refused', result.returncode != 0
           and f"'{ref}' of " in result.stderr
           and 'push to the leader' in result.stderr, result)
    same(f'{name}: the same refs', before, node.refs(REPO))
    locks = subprocess.run(['find', f'{node.root}/{REPO}', '-name', '*.lock'],
                           capture_output=True, text=True).stdout.split()
    same(f'{name}: no lock', [], locks)


def refused_all(node, when):
    def case(name, ref, *args, **more):
        not_done(f'{when}, {node.name}, {name}', node, ref, *args, **more)

    case('a new ref', 'refs/heads/new', 'update-ref', 'refs/heads/new', one)
    case('a changed ref', 'refs/heads/main', 'update-ref', 'refs/heads/main',
         three)
    case('the same with an old value', 'refs/heads/main', 'update-ref',
         'refs/heads/main', three, value(node, 'refs/heads/main'))
    case('a deleted ref', 'refs/heads/side', 'update-ref', '-d',
         'refs/heads/side')
    case('several refs', 'refs/heads/new', 'update-ref', '--stdin',
         **stdin(f'update refs/tags/t {one}',
                 f'create refs/heads/new {one}'))
    case('a tag', 'refs/tags/new', 'tag', 'new', one)
    case('a fetch', 'refs/heads/fetched', 'fetch', '-q', f'{TOP}/source',
         'HEAD:refs/heads/fetched')
    # With refs in reftables, git renames a branch without the hook.
    if not TABLES:
        case('a renamed branch', 'refs/heads/side', 'branch', '-m', 'side',
             'renamed')


def housekeeping(node, when):
    def case(name, *args):
        done(f'{when}, {node.name}, {name}', node, *args)

    case('gc', 'gc', '--quiet')
    case('pack-refs', 'pack-refs', '--all', '--prune')
    case('pack-refs again', 'pack-refs', '--all', '--prune')
    case('reflog expire', 'reflog', 'expire', '--all', '--expire=now')
    case('prune', 'prune', '--expire=2.weeks.ago')
    case('HEAD', 'symbolic-ref', 'HEAD', 'refs/heads/other')
    case('HEAD again', 'symbolic-ref', 'HEAD', 'refs/heads/main')
    case('ORIG_HEAD', 'update-ref', 'ORIG_HEAD', one)
    # The hook knows the values of files only, which git pack-refs repeats.
    if not TABLES:
        case('the same value', 'update-ref', 'refs/heads/main',
             value(node, 'refs/heads/main'))


def test_up():
    subprocess.run(['git', 'init', '-q', f'{TOP}/source'], check=True)
    subprocess.run(['git', '-C', f'{TOP}/source', 'commit', '-q',
                    '--allow-empty', '-m', '1'], check=True, env={
                        **os.environ, 'GIT_AUTHOR_NAME': 'a',
                        'GIT_AUTHOR_EMAIL': 'a@b', 'GIT_COMMITTER_NAME': 'a',
                        'GIT_COMMITTER_EMAIL': 'a@b'})
    for node in (a, b):
        refused_all(node, 'loose')
        housekeeping(node, 'loose')
        report(f'{node.name}: the refs are packed', not os.path.exists(
            f'{node.root}/{REPO}/refs/heads/main'))
        refused_all(node, 'packed')
    updated('refs that are packed and loose', a, '--stdin', **stdin(
        f'update refs/heads/main {two} {one}',
        f'update refs/heads/side {two} {one}'))
    same_refs('packed and loose')
    for node in (a, b):
        refused_all(node, 'both')
    updated('packed and loose with one value', a, 'refs/heads/side', one, two)
    same_refs('with one value')
    for node in (a, b):
        not_done(f'{node.name}, a deletion of such a ref', node,
                 'refs/heads/side', 'update-ref', '-d', 'refs/heads/side', one)
        housekeeping(node, 'both')


def test_away():
    """The daemon is away, and git may write nothing either."""
    same('b ends', 0, b.kill(signal.SIGTERM))
    refused_all(b, 'away')
    housekeeping(b, 'away')
    back(b)
    b.link.begin(False)
    same_refs('back')


def test_push():
    """A push goes through refd, with the hook there."""
    pushed = subprocess.run(
        [*a.inside[:-1], GIT, '-C', f'{TOP}/source', 'push', '-q', '--atomic',
         f'{a.seen_root}/{REPO}', 'HEAD:refs/heads/pushed',
         'HEAD:refs/heads/pushed2'], capture_output=True, text=True)
    report('a push', pushed.returncode == 0, pushed)
    same_refs('pushed')
    began = time.monotonic()
    pushed = subprocess.run(
        [*b.inside[:-1], GIT, '-C', f'{TOP}/source', 'push', '-q',
         f'{b.seen_root}/{REPO}', 'HEAD:refs/heads/pushed3'],
        capture_output=True, text=True)
    report('a push to the other node names the leader', pushed.returncode != 0
           and "the node 'a' leads" in pushed.stderr, pushed)
    took = time.monotonic() - began
    report('at once', took < 15, took)


def test_kept():
    """A kept value may be deleted on its node."""
    subprocess.run(['git', '-C', f'{b.root}/{REPO}', '-c',
                    'core.hooksPath=/dev/null', 'update-ref',
                    'refs/heads/other', three], check=True)
    updated('a row for a ref that differs on b', a, 'refs/heads/other', two)
    report('b has applied all', b.await_applied(30), b.said()[-500:])
    kept = b.git(REPO, 'for-each-ref', '--format=%(refname)', 'refs/refd')
    same('the value is kept', three, b.git(REPO, 'rev-parse', kept))
    not_done('a kept value is changed', b, kept, 'update-ref', kept, one)
    for packed in (False, True):
        if packed:
            git(b, '-c', 'core.hooksPath=/dev/null', 'update-ref', kept, three)
            git(b, 'pack-refs', '--all', '--prune')
        deleted = git(b, 'update-ref', '-d', kept)
        report(f'it is deleted, packed {packed}', deleted.returncode == 0
               and not b.git(REPO, 'for-each-ref', 'refs/refd'), deleted)
    same_refs('kept')


def test_doctor():
    """refd doctor names a repository without the file refd/group, or without
    the hook."""
    mark = f'{b.root}/{REPO}/refd/group'

    def finds():
        result = b.run('doctor', '--json', f'{b.seen_root}/{REPO}')
        return [found['id'] for found in json.loads(result.stdout)['findings']
                if found['id'].startswith('group-')]

    report('b is enabled', enabled(b).returncode == 0)
    same('a repository with the file', [], finds())
    os.unlink(mark)
    same('and without', ['group-unmarked'], finds())
    open(mark, 'w').close()
    os.unlink(f'{b.root}/{REPO}/{HOOK}')
    same('without the hook', ['group-unguarded'], finds())
    report('it comes back', enabled(b).returncode == 0)


def test_chained():
    """A hook that was there runs, and comes back."""
    hook = f'{b.root}/{REPO}/{HOOK}'
    report('disable', disabled(b).returncode == 0)
    report('the hook is gone', not os.path.lexists(hook))
    with open(hook, 'w') as f:
        f.write('#!/bin/sh\nread -r old new name\n'
                f'echo "$1 $name" >>{TOP}/calls\n')
    os.chmod(hook, 0o755)
    text = open(hook).read()
    report('enable', enabled(b).returncode == 0)
    report('it is chained', os.path.islink(hook) and
           open(f'{hook}.refd-chained').read() == text)
    not_done('a chained hook', b, 'refs/heads/new', 'update-ref',
             'refs/heads/new', one)
    calls = open(f'{TOP}/calls').read()
    report('the chained hook has run', 'prepared refs/heads/new' in calls
           and 'aborted refs/heads/new' in calls, calls)
    report('disable once more', disabled(b).returncode == 0)
    same('the hook has its name', text, open(hook).read())
    os.unlink(hook)


run(test_start, test_up, test_away, test_push, test_kept, test_doctor,
    test_chained)
