"""The cases of tests/long/group_tables.sh (group_pair.py): nodes with refs in
reftables, and nodes with both formats. Each case can run alone, behind
test_start: GROUP_ONLY."""
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group_pair import (a, b, back, both_connect, both_start,  # noqa: E402
                        in_background, log, make_repo, new_commit, report,
                        run, same, same_refs, stdin, updated)

# The formats of a and b.
REPOS = {'tables.git': ('reftable', 'reftable'),
         'to-files.git': ('reftable', 'files'),
         'to-tables.git': ('files', 'reftable')}
KEPT = 'refs/refd/diverged'


def test_start():
    """a leads, and b follows."""
    global values
    values = {}
    both_start()
    for repo, formats in REPOS.items():
        values[repo] = make_repo(repo, formats=formats)
        for node, name in zip((a, b), formats):
            same(f'{repo}: the format of {node.name}', name, node.git(
                repo, 'rev-parse', '--show-ref-format'))
    both_connect()
    for repo in REPOS:
        updated(f'{repo}: the first refs', a, '--stdin', repo=repo, **stdin(
            f'create refs/heads/main {values[repo][0]}',
            f'create refs/heads/side {values[repo][0]}'))
        sound('the first refs', repo)


def refs(node, repo):
    """All refs of the group, and HEAD."""
    found = node.git(repo, 'for-each-ref', '--include-root-refs',
                     '--format=%(refname) %(objectname) %(symref)'
                     ' %(*objectname)')
    return [line.strip() for line in found.splitlines() if KEPT not in line]


def sound(name, repo):
    """Both nodes have the same refs, and git finds no fault."""
    report(f'{name}, {repo}: b has applied all', b.await_applied(30),
           b.said()[-700:])
    same(f'{name}, {repo}: the same refs', refs(a, repo), refs(b, repo))
    for node in (a, b):
        for args in (('fsck', '--strict'), ('refs', 'verify', '--strict')):
            result = subprocess.run(
                ['git', '-C', f'{node.root}/{repo}', *args],
                capture_output=True, text=True)
            report(f'{name}, {repo}: git {args[0]} of {node.name}',
                   result.returncode == 0 and 'error' not in result.stderr,
                   result)


def test_kinds():
    for repo in REPOS:
        one, two, three = values[repo]
        a.git(repo, 'tag', '-a', '-m', 'tag', 'made', one)
        tag = a.git(repo, 'rev-parse', 'made')
        a.git(repo, 'tag', '-d', 'made')
        for name, *lines in (
                ('a tag', f'create refs/tags/t {tag}'),
                ('a change', f'update refs/heads/main {two} {one}'),
                ('an atomic row', 'start', f'create refs/heads/x {three}',
                 f'delete refs/heads/side {one}', 'commit'),
                ('d', f'create refs/heads/d {one}'),
                ('d goes', f'delete refs/heads/d {one}'),
                ('d/e', f'create refs/heads/d/e {one}'),
                ('many', *(f'create refs/tags/m{i:04} {one}'
                           for i in range(2000))),
                ('fewer', *(f'delete refs/tags/m{i:04} {one}'
                            for i in range(0, 2000, 2)))):
            updated(f'{repo}: {name}', a, '--stdin', repo=repo,
                    **stdin(*lines))
        for branch in ('x', 'main'):
            updated(f'{repo}: HEAD to {branch}', a, '--no-deref', '--compat',
                    '2.55', '--stdin', repo=repo,
                    **stdin(f'symref-update HEAD refs/heads/{branch}'))
        sound('kinds', repo)
        same(f'{repo}: the tag is peeled on b', one, b.git(
            repo, 'rev-parse', 'refs/tags/t^{}'))


def test_foreign():
    """Another program writes refs of b: the values are kept."""
    for repo in REPOS:
        one, two, three = values[repo]
        main = a.git(repo, 'rev-parse', 'main')
        path = f'{b.root}/{repo}'
        for args in (('update-ref', 'refs/heads/main', three),
                     ('update-ref', 'refs/heads/way/deep', two),
                     ('symbolic-ref', 'refs/heads/link', 'refs/heads/main')):
            subprocess.run(['git', '-C', path, *args], check=True)
        updated(f'{repo}: a row for them', a, '--stdin', repo=repo, **stdin(
            f'update refs/heads/main {one} {main}',
            f'create refs/heads/way {one}', f'create refs/heads/link {one}'))
        sound('foreign values', repo)
        nth = len(log.rows)
        same(f'{repo}: they are kept', [three, two], [b.git(
            repo, 'rev-parse', f'{KEPT}/{nth}/heads/{name}')
            for name in ('main', 'way/deep')])
        updated(f'{repo}: and back', a, '--stdin', repo=repo, **stdin(
            f'update refs/heads/main {main} {one}',
            f'delete refs/heads/way {one}', f'delete refs/heads/link {one}'))


def test_killed():
    """kill -9 of one node after the other, during updates. After a kill of the
    leader, the other node leads."""
    leader, other = a, b
    for i in range(16):
        repo = random.choice(list(REPOS))
        main = leader.git(repo, 'rev-parse', 'main')
        if leader is a and i % 4 == 3:
            leader.git(repo, 'pack-refs')
        clients = []
        for name in ('main', f'k{i}'):
            value = new_commit(leader, repo, main)
            clients.append(in_background(
                leader, f'refs/heads/{name}', value, repo=repo))
        time.sleep(random.random() * 0.1)
        victim = leader if i % 2 else other
        victim.kill()
        victim.link.close()
        for client in clients:
            client.wait(60)
        if victim is leader:
            other.link.send_rows()
            report(f'{other.name} leads', other.lead(), other.said()[-500:])
            back(leader)
            leader.link.begin(False)
            leader, other = other, leader
        else:
            back(other)
            other.link.begin(False)
        report(f'kill {i}: {other.name} has applied all', other.await_applied(
            30), other.said()[-700:])
    if leader is b:
        report('a leads', a.lead(), a.said()[-500:])
    for repo in REPOS:
        updated(f'{repo}: after the kills', a, 'refs/heads/after',
                values[repo][0], repo=repo)
        sound('kills', repo)


def test_made():
    """b gets a new repository, of another format, with its first row."""
    subprocess.run(['git', 'init', '-q', '--bare', f'{a.root}/new.git'],
                   check=True)
    one = make_repo('new.git', 1, False)[0]
    updated('a new repository', a, 'refs/heads/main', one, repo='new.git')
    same_refs('a new repository', 'new.git')


run(test_start, test_kinds, test_foreign, test_killed, test_made)
