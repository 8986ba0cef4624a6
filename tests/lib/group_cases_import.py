"""The cases of tests/scenario/group_nodes_import.sh (group_pair.py)."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (REPO, TABLES, a, b, back, both_connect,  # noqa: E402
                        both_start, log, make_repo, refused, report, run,
                        same, same_refs, stdin, updated)

CANNOT = 'do not have the refs'


def test_start():
    global one, two, three
    both_start()
    one, two, three = make_repo(REPO)
    both_connect()
    for ref in 'main', 'topic/one':
        updated('a ref', a, f'refs/heads/{ref}', one)
    same_refs('created')


def git(repo, *args):
    subprocess.run(['git', '-C', f'{a.root}/{repo}', *args], check=True,
                   capture_output=True)


def fork(repo):
    """A fork on a, as a forge makes it: with all kinds of refs."""
    subprocess.run(['git', 'clone', '-q', '--bare', f'{a.root}/{REPO}',
                    f'{a.root}/{repo}'], check=True, capture_output=True)
    git(repo, 'config', '--unset-all', 'remote.origin.url')
    git(repo, '-c', 'user.name=n', '-c', 'user.email=m', 'tag', '-a', '-m',
        't', 'v1', one)
    git(repo, 'pack-refs', '--all')
    git(repo, 'update-ref', 'refs/pull/1/head', one)
    git(repo, 'symbolic-ref', 'refs/remotes/up/HEAD', 'refs/heads/topic/one')
    git(repo, 'symbolic-ref', 'refs/remotes/up/none', 'refs/heads/none')
    git(repo, 'symbolic-ref', 'refs/remotes/up/more', 'refs/remotes/up/none')
    git(repo, 'symbolic-ref', 'refs/heads/master', 'refs/heads/main')
    git(repo, 'symbolic-ref', 'HEAD', 'refs/heads/master')


def enable(node, repo):
    return node.run('enable', f'{node.seen_root}/{repo}')


def is_marked(node, repo):
    return os.path.exists(f'{node.root}/{repo}/refd/import')


def head(node, repo):
    with open(f'{node.root}/{repo}/HEAD') as file:
        return file.read()


def put_mark_back(node, repo):
    """As if its removal had been lost."""
    node.link.close()
    node.kill()
    open(f'{node.root}/{repo}/refd/import', 'w').close()
    back(node)


def start_enable(repo):
    return subprocess.Popen(
        [*a.inside, 'enable', '--socket', a.socket_path,
         f'{a.seen_root}/{repo}'], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
        env={**os.environ, 'REFD_STATE': a.state})


def imported(name, repo):
    """The refs come to b, in one row, and as new refs."""
    before = len(log.rows)
    told = b.said().count('group-ref-diverged')
    done = enable(a, repo)
    report(f'{name}: refd enable', done.returncode == 0
           and 'refs are in the group' in done.stdout, done)
    same_refs(name, repo)
    same(f'{name}: HEAD', head(a, repo), head(b, repo))
    same(f'{name}: one row more', before + 1, len(log.rows))
    same(f'{name}: b finds no foreign ref', told,
         b.said().count('group-ref-diverged'))
    report(f'{name}: the mark is gone', not is_marked(a, repo))


def test_fork():
    fork('fork.git')
    refused('a fork takes no update yet', a, CANNOT, 'refs/heads/new', one,
            repo='fork.git')
    refused('nor the import of some refs', a, 'missing in the import',
            '--no-deref', '--stdin', repo='fork.git',
            **stdin(f'update refs/heads/main {one} {one}'))
    same('b has no such repository', False,
         os.path.exists(f'{b.root}/fork.git'))
    imported('a fork', 'fork.git')
    updated('an update', a, 'refs/heads/new', one, repo='fork.git')
    updated('a change', a, 'refs/pull/1/head', two, one, repo='fork.git')
    updated('a deletion', a, '-d', 'refs/heads/main', one, repo='fork.git')
    same_refs('changed', 'fork.git')
    again = enable(a, 'fork.git')
    report('enable once more: nothing to do', again.returncode == 0
           and 'in the group' not in again.stdout, again)


def test_others():
    """A copy with refd/, and an empty packed-refs."""
    shutil.copytree(f'{a.root}/fork.git', f'{a.root}/copy.git',
                    symlinks=True)
    refused('a copy takes no update', a, CANNOT, 'refs/heads/new', one,
            repo='copy.git')
    imported('a copy', 'copy.git')
    if not TABLES:
        shutil.copytree(f'{a.root}/{REPO}', f'{a.root}/bare.git')
        for name in 'refd', 'refs/heads':
            shutil.rmtree(f'{a.root}/bare.git/{name}')
        open(f'{a.root}/bare.git/packed-refs', 'w').write(
            '# pack-refs with: peeled fully-peeled sorted \n')
        updated('no ref: nothing to import', a, 'refs/heads/new', one,
                repo='bare.git')
        same_refs('no ref', 'bare.git')


def test_damaged():
    if TABLES:
        return
    fork('damaged.git')
    path = f'{a.root}/damaged.git/refs/heads/bad'
    open(path, 'w').write('no value\n')
    done = enable(a, 'damaged.git')
    report('a damaged ref is named', done.returncode != 0
           and "'refs/heads/bad'" in done.stderr, done)
    report('and the mark stays', is_marked(a, 'damaged.git'))
    os.unlink(path)
    imported('repaired', 'damaged.git')


def test_waits():
    """refd enable waits for a node that is away."""
    fork('late.git')
    a.link.holds = 'fail'
    asked = a.link.asked
    waiting = start_enable('late.git')
    report('the leader asks', wait_for(20, lambda: a.link.asked > asked + 1))
    same('it waits', None, waiting.poll())
    other = enable(a, 'fork.git')
    report('and holds up no other enable', other.returncode == 0, other)
    refused('and takes no update', a, CANNOT, 'refs/heads/new', one,
            repo='late.git')
    a.link.holds = 'copy'
    report('the node is back', waiting.wait(60) == 0
           and 'in the group' in waiting.stdout.read())
    same_refs('late', 'late.git')


def test_killed():
    """The leader dies when the log has the row, and it does not know."""
    fork('killed.git')
    a.link.policy = 'forget'
    before = len(log.rows)
    waiting = start_enable('killed.git')
    report('the log has the row', wait_for(
        20, lambda: len(log.rows) > before))
    a.kill()
    report('the mark is still there', is_marked(a, 'killed.git'))
    a.link.close()
    back(a)
    report('a leads', a.lead())
    waiting.wait(60)
    report('its row takes the mark away', wait_for(
        20, lambda: not is_marked(a, 'killed.git')), a.said()[-500:])
    same_refs('killed', 'killed.git')
    updated('an update', a, 'refs/heads/new', one, repo='killed.git')
    same_refs('killed and back', 'killed.git')


def test_next_leader():
    """The next leader has the imported refs, and no mark."""
    report('b leads', b.lead())
    updated('b takes updates', b, 'refs/heads/by-b', one, repo='fork.git')
    report('a has applied all', a.await_applied())
    same_refs('b leads', 'fork.git')


def test_mark_stays():
    """A mark that is there again holds up no row. The import can be done
    again."""
    put_mark_back(a, 'copy.git')
    a.link.begin(False)
    updated('a has the mark, b leads', b, 'refs/pull/1/head', three, two,
            repo='copy.git')
    report('a has applied all', a.await_applied(), a.said()[-500:])
    same_refs('a has the mark', 'copy.git')
    report('the row takes the mark away', not is_marked(a, 'copy.git'))
    put_mark_back(a, 'copy.git')
    a.link.begin(False)
    done = enable(a, 'copy.git')
    report('enable on a follower names the leader', done.returncode == 0
           and 'run "refd enable" on \'b\'' in done.stderr, done)
    report('a leads', a.lead())
    imported('once more', 'copy.git')


run(test_start, test_fork, test_others, test_damaged, test_waits, test_killed,
    test_next_leader, test_mark_stays)
