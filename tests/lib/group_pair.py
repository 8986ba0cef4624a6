"""For the cases of tests/scenario/group_nodes*.sh: the two nodes of a group,
and reports.

    CASES.py REFD DIRECTORY"""
import os
import re
import subprocess
import sys
import time

import group_nodes

REFD, TOP = sys.argv[1:]
a, b = group_nodes.pair(TOP, REFD)
log = a.log
REPO = 'team/one.git'
# The length of an id.
HEX = 64 if os.environ.get('GIT_DEFAULT_HASH') == 'sha256' else 40
# Are the refs in reftables? Otherwise in files.
TABLES = os.environ.get('GIT_DEFAULT_REF_FORMAT') == 'reftable'


def report(name, is_right, why=''):
    why = str(why).replace('\n', ' | ')[-1000:]
    print(f'ok {name}' if is_right else f'not ok {name}: {why}', flush=True)


def same(name, wanted, got):
    report(name, wanted == got,
           f'wanted {str(wanted)[:400]!r}, got {str(got)[:400]!r}')


def make_repo(repo, commits=3, is_on_both=True, formats=None):
    """The same repository on both nodes, or on a, without refs. FORMATS: of
    the refs of both nodes. Returns commits."""
    path = f'{a.root}/{repo}'
    run = {'check': True, 'capture_output': True, 'text': True}
    for node, name in zip((a, b), formats or ()):
        subprocess.run(['git', 'init', '-q', '--bare', f'--ref-format={name}',
                        f'{node.root}/{repo}'], **run)
    if not formats:
        subprocess.run(['git', 'init', '-q', '--bare', path], **run)
    tree = subprocess.run(['git', '-C', path, 'mktree'], input='', **run)
    made = []
    for i in range(commits):
        parent = ['-p', made[-1]] if made else []
        made.append(subprocess.run(
            ['git', '-C', path, 'commit-tree', tree.stdout.strip(), '-m',
             str(i), *parent], **run).stdout.strip())
    if formats:
        subprocess.run(['cp', '-a', f'{path}/objects', f'{b.root}/{repo}'],
                       **run)
    elif is_on_both:
        os.makedirs(os.path.dirname(f'{b.root}/{repo}'), exist_ok=True)
        subprocess.run(['cp', '-a', path, f'{b.root}/{repo}'], **run)
    return made


def lock_of(node, ref, repo=REPO):
    """The file that locks the ref."""
    return (f'{node.root}/{repo}/' +
            ('reftable/tables.list' if TABLES else ref) + '.lock')


def new_commit(node, repo, parent):
    tree = node.git(repo, 'rev-parse', f'{parent}^{{tree}}')
    return node.git(repo, 'commit-tree', tree, '-p', parent, '-m',
                    str(time.time()))


def same_refs(name, repo=REPO):
    report(f'{name}: b has applied all', b.await_applied(),
           (b.link and b.link.applied, len(log.rows), b.said()[-500:]))
    same(f'{name}: the same refs', a.refs(repo), b.refs(repo))


def both_start():
    report('a starts', a.start(), a.said())
    report('b starts', b.start(), b.said())


def both_connect():
    """a leads."""
    a.connect()
    b.connect()
    report('a leads', a.lead())


def metric(node, name):
    told = node.run('stats', '--prometheus').stdout
    return float(re.search(rf'^refd_{re.escape(name)} (\S+)$', told, re.M)[1])


def updated(name, node, *args, repo=REPO, **more):
    result = node.update(repo, *args, **more)
    report(name, result.returncode == 0, result)
    return result


def refused(name, node, text, *args, repo=REPO, **more):
    result = node.update(repo, '--timeout', '500', *args, **more)
    report(name, result.returncode != 0 and text in result.stderr, result)


def stdin(*lines):
    return {'input': ''.join(f'{line}\n' for line in lines)}


def back(node):
    """Starts the daemon that has ended, and connects it."""
    report(f'{node.name} starts again', node.start())
    node.connect()


def in_background(node, *args, repo=REPO, **more):
    return subprocess.Popen(
        [*node.inside, 'update', '--timeout', '5000', '--socket',
         node.socket_path, '--git-dir',
         f'{node.seen_root}/{repo}', *args], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, **more)


def is_traced(node):
    """Does strace watch all threads of the daemon?"""
    tasks = f'/proc/{node.process.pid}/task'
    return all('TracerPid:\t0\n' not in open(f'{tasks}/{task}/status').read()
               for task in os.listdir(tasks))


def run(*cases):
    """Runs the cases, or the first one and those named in GROUP_ONLY."""
    only = os.environ.get('GROUP_ONLY', '').split()
    try:
        for case in cases:
            if not only or case is cases[0] or case.__name__ in only:
                print(f'# {case.__name__}', flush=True)
                case()
    finally:
        for node in (a, b):
            node.end()
    open(f'{TOP}/ended', 'w').close()
