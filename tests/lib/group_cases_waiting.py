"""The cases of tests/scenario/group_nodes_waiting.sh (group_pair.py): rows of a
repository can't be applied on b. Each case can run alone, behind test_start:
GROUP_ONLY."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_nodes import id_of  # noqa: E402
from group_pair import (TABLES, TOP, a, b, back,  # noqa: E402
                        is_traced, lock_of, log, make_repo, new_commit, report,
                        run, same, same_refs, updated)

MAIN = 'refs/heads/main'
FREE = 'free.git'


def test_start():
    report('a starts', a.start(), a.said())
    report('b starts', b.start(), b.said())
    a.connect()
    b.connect()
    report('a leads', a.lead())
    begun(FREE)
    same_refs('a repository', FREE)


def begun(repo):
    """A new repository of a, with a ref."""
    value = make_repo(repo, 1, is_on_both=False)[0]
    updated(f'{repo} is new', a, MAIN, value, repo=repo)


def goes_on(name, repo):
    """Another update of the repository. Returns its token."""
    old = a.git(repo, 'rev-parse', MAIN)
    result = updated(f'{name}: an update of {repo}', a, '--json', MAIN,
                     new_commit(a, repo, old), old, repo=repo)
    return json.loads(result.stdout)['token'] if result.stdout else ''


def is_same(repo):
    return a.refs(repo) == b.refs(repo)


def status(key):
    for line in b.run('status', '-v').stdout.splitlines():
        words = line.replace(':', ' ').split()
        if words and words[0] == key:
            return words[-1]
    return None


def free_goes_on(name):
    """The repository that does not wait. Returns the token of an update."""
    token = goes_on(name, FREE)
    report(f'{name}: {FREE} is applied at once',
           wait_for(3, lambda: is_same(FREE)), b.said()[-700:])
    return token


def waits(name, repo, first, repos=1):
    """b lacks the rows of the repository from LSN FIRST on, and says so."""
    report(f'{name}: {repo} is not applied', not is_same(repo))
    same(f'{name}: b says what it has applied', first - 1, b.link.applied)
    same(f'{name}: repositories that wait', str(repos),
         status('group_waiting_repos'))
    same(f'{name}: the last row', str(first - 1), status('group_lsn'))


def is_applied(token):
    return b.run('wait', '--timeout', '1', token).returncode == 0


def lock(repo):
    """Somebody has left a lock behind."""
    path = lock_of(b, MAIN, repo)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').close()
    return path


def stopped():
    b.kill()
    b.link.close()


def started():
    back(b)
    b.link.begin(False)


# ---- the others go on ----

def test_lock():
    begun('lock.git')
    same_refs('lock', 'lock.git')
    path, before = lock('lock.git'), len(b.said())
    first = len(log.rows) + 1
    token = goes_on('lock', 'lock.git')
    free_goes_on('lock')
    goes_on('lock', 'lock.git')
    later = free_goes_on('lock, a later row')
    waits('lock', 'lock.git', first)
    report('lock: a token of the row is not applied', not is_applied(token))
    report('lock: nor is a later one', not is_applied(later))
    report('lock: the log says so', b.await_said('group-row-waits', before),
           b.said()[before:])
    line = [line for line in b.said()[before:].splitlines()
            if 'group-row-waits' in line][0]
    report('lock: which row, where, why, and the remedy', all(
        part in line for part in (
            f'row {first} of the group cannot be applied: ', 'lock.git',
            'is locked by another program', 'remove the cause')), line)
    os.unlink(path)
    same_refs('without the lock', 'lock.git')
    report('and the tokens are applied', is_applied(token)
           and is_applied(later))
    same('nothing waits', '0', status('group_waiting_repos'))


def test_many():
    """No repository waits for the patience with another one."""
    repos = [f'many/{i}.git' for i in range(20)]
    for repo in repos:
        begun(repo)
    same_refs('many', repos[-1])
    paths = [lock(repo) for repo in repos]
    first = len(log.rows) + 1
    for repo in repos:
        goes_on('many', repo)
    free_goes_on('many')
    waits('many', repos[0], first, len(repos))
    for path in paths:
        os.unlink(path)
    for repo in repos:
        same_refs('many', repo)


def test_killed():
    """The rows that wait are in the journal."""
    begun('killed.git')
    same_refs('killed', 'killed.git')
    path, first = lock('killed.git'), len(log.rows) + 1
    goes_on('killed', 'killed.git')
    goes_on('killed', 'killed.git')
    free_goes_on('killed')
    last = len(log.rows)
    stopped()
    back(b)
    same('b has all rows', last, b.link.sent)
    same('and has applied those before', first - 1, b.link.applied)
    b.link.begin(False)
    goes_on('after the kill', 'killed.git')
    free_goes_on('after the kill')
    waits('after the kill', 'killed.git', first)
    stopped()
    os.unlink(path)
    started()
    same_refs('after another kill', 'killed.git')


def test_objects():
    """b lacks the repository, and nobody brings it."""
    b.link.holds, a.link.holds = 'wait', 'skip'
    first = len(log.rows) + 1
    begun('objects.git')
    goes_on('objects', 'objects.git')
    a.link.holds = 'copy'
    free_goes_on('objects')
    waits('objects', 'objects.git', first)
    b.link.holds = 'copy'
    same_refs('objects', 'objects.git')
    same('objects: the repository is in its place',
         id_of(f'{a.root}/objects.git'), id_of(f'{b.root}/objects.git'))


def test_link():
    """A directory of refs is a link: formerly the daemon ended."""
    begun('link.git')
    same_refs('link', 'link.git')
    heads = f'{b.root}/link.git/' + ('reftable' if TABLES else 'refs/heads')
    os.rename(heads, f'{heads}.away')
    os.symlink(f'{os.path.basename(heads)}.away', heads)
    first = len(log.rows) + 1
    goes_on('link', 'link.git')
    free_goes_on('link')
    report('link: the daemon lives', b.ended(4) is None)
    waits('link', 'link.git', first)
    os.unlink(heads)
    os.rename(f'{heads}.away', heads)
    same_refs('without the link', 'link.git')


# ---- the time that attempts take ----

LINKS = f'{TOP}/links'


def attempts(seconds, slow):
    """The attempts of b to lock a ref within SECONDS, if each takes SLOW."""
    tracer = subprocess.Popen(
        ['strace', '-f', '-q', '-o', LINKS, '-e', 'trace=linkat', '-e',
         f'inject=linkat:delay_enter={int(slow * 1e6)}', '-p',
         str(b.process.pid)], stderr=subprocess.DEVNULL)
    report('strace watches', wait_for(20, lambda: is_traced(b)))
    time.sleep(seconds)
    tracer.terminate()
    tracer.wait()
    return open(LINKS).read().count('EEXIST')


def test_time():
    """Slow attempts of repositories that wait leave the time to others."""
    if shutil.which('strace') is None:
        print('skip slow attempts: no strace', flush=True)
        return
    repos = [f'time/{i}.git' for i in range(15)]
    for repo in repos:
        begun(repo)
    same_refs('time', repos[-1])
    paths = [lock(repo) for repo in repos]
    goes_on('time', repos[0])
    free_goes_on('time')
    time.sleep(2)
    nr = attempts(10, 1)
    report('time: one repository: a tenth of the time', nr <= 1, nr)
    for repo in repos[1:]:
        goes_on('time', repo)
    free_goes_on('time')
    nr = attempts(6, 0.2)
    report('time: all repositories: a quarter of the time', 1 <= nr <= 10, nr)
    for path in paths:
        os.unlink(path)
    for repo in repos:
        same_refs('time', repo)


# ---- places ----

def test_replaced():
    """Another repository comes to the place of one that waits."""
    begun('place.git')
    same_refs('place', 'place.git')
    uuid = id_of(f'{a.root}/place.git')
    lock('place.git')
    goes_on('place', 'place.git')
    os.rename(f'{a.root}/place.git', f'{a.root}/moved.git')
    begun('place.git')
    report('place: the new one is in its place', wait_for(
        5, lambda: is_same('place.git')), b.said()[-700:])
    aside = f'.refd-{uuid}'
    os.unlink(lock_of(b, MAIN, aside))
    report('place: the row is applied', b.await_applied(), b.said()[-700:])
    same('place: where its repository is', a.refs('moved.git'), b.refs(aside))
    same('place: the new one stays', id_of(f'{a.root}/place.git'),
         id_of(f'{b.root}/place.git'))
    goes_on('place', 'moved.git')
    same_refs('place', 'moved.git')
    same_refs('place', 'place.git')


def test_late_place():
    """A repository comes late to a place that had another one. The rows of
    both wait."""
    for name, place in (('at', 'late/x.git'), ('above', 'late'),
                        ('below', 'late/x.git/y.git')):
        begun('late/x.git')
        same_refs(name, 'late/x.git')
        uuid = id_of(f'{a.root}/late/x.git')
        lock('late/x.git')
        goes_on(name, 'late/x.git')
        former = a.refs('late/x.git')
        shutil.rmtree(f'{a.root}/late')
        b.link.holds, a.link.holds = 'wait', 'skip'
        begun(place)
        a.link.holds = 'copy'
        free_goes_on(name)
        aside = f'{b.root}/late/.refd-{uuid}'
        if name == 'at':
            os.rename(f'{b.root}/late/x.git', aside)
        else:
            os.rename(f'{b.root}/late', f'{b.root}/away')
            aside = f'{b.root}/.refd-{uuid}'
            os.rename(f'{b.root}/away/x.git', aside)
        aside = os.path.relpath(aside, b.root)
        os.unlink(lock_of(b, MAIN, aside))
        report(f'{name}: the row of the former one is applied', wait_for(
            30, lambda: b.refs(aside) == former), b.said()[-700:])
        b.link.holds = 'copy'
        same_refs(name, place)
        same(f'{name}: the repository', id_of(f'{a.root}/{place}'),
             id_of(f'{b.root}/{place}'))
        same(f'{name}: the former one stays', former, b.refs(aside))
        shutil.rmtree(f'{a.root}/late')
        shutil.rmtree(f'{b.root}/late')


# ---- the lead ----

def test_lead():
    """refd-group gives such a node no lease. If it did, nothing is written."""
    begun('lead.git')
    same_refs('lead', 'lead.git')
    path, rows = lock('lead.git'), len(log.rows) + 1
    goes_on('lead', 'lead.git')
    free_goes_on('lead')
    before = len(b.said())
    b.lead(0)
    report('lead: the daemon ends', b.ended() is not None)
    report('lead: b does not lead', 'group-leads' not in b.said()[before:])
    same('lead: no row', rows + 1, len(log.rows))
    b.link.close()
    os.unlink(path)
    back(b)
    report('a leads again', a.lead())
    same_refs('lead', 'lead.git')


run(test_start, test_lock, test_many, test_killed, test_objects, test_link,
    test_time, test_replaced, test_late_place, test_lead)
