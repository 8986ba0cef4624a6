"""The cases of tests/long/group_join.sh.

    group_join.py REFD-GROUP DIRECTORY BINARIES UID"""
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import Postgres, wait_for  # noqa: E402
from group_console import (await_standbys, make_role, report,  # noqa: E402
                           run_cases, same)
import journal_copy  # noqa: E402

PROGRAM, TOP, BINARIES, UID = sys.argv[1:]
REFD = f'{os.path.dirname(PROGRAM)}/refd'
Q = 'team/deep/q.git'
REPOS = ['old.git', Q, 'long.git', 'sha256.git', 'empty.git']
# Its path is too long for a list, which has the uuid instead.
LONG, LONG_ID = '/'.join(['n' * 195] * 20), '5' * 32
# A join without them: Broken.
LEFT = {'old.git', Q, 'sha256.git', 'empty.git', LONG_ID}
# The other end of a fetch. A fetch of the node waits while there is a file, and
# another file says so. The repository that a third one names gets a new name
# before it is read.
SSH = f"""#!/bin/sh
for word; do :; done
while [ -e "{TOP}/shut" ]; do : >"{TOP}/waits"; sleep 0.05; done
if name=$(cat "{TOP}/name" 2>/dev/null); then
	case $word in
	*"/$name'"*)
		mv "{TOP}/a/root/$name" "{TOP}/a/root/new-$name"
		echo "new-$name" >"{TOP}/name"
		;;
	esac
fi
eval "$word"
"""
renaming = threading.Lock()


def git(*args, **more):
    result = subprocess.run(['git', *args], capture_output=True, text=True,
                            **more)
    assert result.returncode == 0, (args, result.stderr)
    return result.stdout.strip()


class Node:
    """A daemon and refd-group."""

    def __init__(self, name, others):
        self.name, self.top = name, f'{TOP}/{name}'
        self.root, self.state = f'{self.top}/root', f'{self.top}/state'
        self.daemon = self.group = None
        os.makedirs(self.root)
        self.configure(others)

    def configure(self, others, **more):
        keys = {'name': 'main', 'node': self.name, 'lease': '3s',
                'database': f'"host={TOP},{TOP} port=5601,5602 dbname=refd '
                'user=refd"', **more}
        with open(f'{self.top}/config', 'w') as f:
            f.write(f'[daemon]\n\tsocket = {self.top}/sock\n\tstate = '
                    f'{self.state}\n\troot = {self.root}\n[group]\n')
            for key, value in keys.items():
                f.write(f'\t{key} = {value}\n')
            for other in others:
                f.write(f'\tsource = {other} ssh://{other}{TOP}/{other}/root\n')

    def launch(self, log, *args):
        return subprocess.Popen(
            args, stdin=subprocess.DEVNULL, start_new_session=True,
            stdout=open(f'{self.top}/{log}', 'a'), stderr=subprocess.STDOUT)

    def start(self):
        self.daemon = self.launch('log', REFD, 'daemon', '--config',
                                  f'{self.top}/config')
        assert self.run('ping', '--wait', '20').returncode == 0, self.message()
        self.group = self.launch('group.log', *self.argv('serve'))

    @property
    def process(self):
        """For the end of the cases."""
        return self.daemon

    def argv(self, *args):
        return [PROGRAM, '--config', f'{self.top}/config', '--socket',
                f'{self.state}/group.sock', *args]

    def command(self, *args):
        """Exit status and output of refd-group."""
        result = subprocess.run(self.argv(*args), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        return result.returncode, result.stdout

    def run(self, command, *args, **more):
        return subprocess.run(
            [REFD, command, '--socket', f'{self.top}/sock', *args],
            capture_output=True, text=True, **more)

    def enable(self, repo):
        done = self.run('enable', f'{self.root}/{repo}')
        assert done.returncode == 0, done.stderr
        return done.stdout

    def role(self):
        return self.run('role').stdout.strip()

    def await_role(self, role):
        return bool(wait_for(30, lambda: self.role() == role))

    def git(self, repo, *args, **more):
        return git('-C', f'{self.root}/{repo}', *args, **more)

    def refs(self, repo):
        """With HEAD, and without values that this node has kept."""
        lines = self.git(repo, 'for-each-ref',
                         '--format=%(refname) %(objectname) %(symref)')
        return [self.git(repo, 'symbolic-ref', 'HEAD')] + [
            line for line in lines.splitlines()
            if not line.startswith('refs/refd/diverged/')]

    def message(self):
        return ''.join(open(f'{self.top}/{log}').read()[-1500:]
                       for log in ('log', 'group.log')
                       if os.path.exists(f'{self.top}/{log}'))

    def kill(self, number=signal.SIGKILL):
        for process in (self.daemon, self.group):
            if process and process.poll() is None:
                process.send_signal(number)
                if number != signal.SIGCONT:
                    process.wait(60)


class Writer(threading.Thread):
    """Updates refs of the leader's repositories, one after the other."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.random, self.seed = random.Random(seed), seed
        self.failed, self.times, self.tips = [], [], {}
        self.is_wanted = True

    def run(self):
        while self.is_wanted:
            with renaming:
                self.update(self.random.randrange(4))

    def update(self, nth):
        repo = REPOS[nth]
        name = f'refs/heads/w{self.seed}/{self.random.randrange(6)}'
        old = self.tips.get((nth, name))
        tree = a.git(repo, 'hash-object', '-w', '-t', 'tree', '/dev/null')
        choice = self.random.randrange(8) if old else 9
        # A forced update leaves objects that no ref has.
        parent = ['-p', old] if old and choice > 2 else []
        new = a.git(repo, 'commit-tree', '-m', str(self.random.random()),
                    *parent, tree)
        if choice == 0:
            new = '0' * len(old)
        began = time.monotonic()
        done = a.run('update', '--git-dir', f'{a.root}/{repo}', name, new,
                     old or '0' * len(new))
        self.times.append(time.monotonic() - began)
        if done.returncode != 0:
            self.failed.append((repo, name, done.stderr))
        self.tips[nth, name] = None if choice == 0 else new

    def end(self):
        self.is_wanted = False
        self.join()


def make_repositories():
    for repo in REPOS:
        more = ['--object-format=sha256'] if 'sha256' in repo else []
        git('init', '-q', '--bare', '-b', 'main', *more, f'{a.root}/{repo}')
    for repo in REPOS[:4]:
        tree = a.git(repo, 'hash-object', '-w', '-t', 'tree', '/dev/null')
        oid = a.git(repo, 'commit-tree', '-m', 'first', tree)
        a.git(repo, 'update-ref', 'refs/heads/main', oid)
        a.git(repo, 'symbolic-ref', 'refs/remotes/o/HEAD', 'refs/heads/main')
        a.git(repo, 'update-ref', '--stdin', input=''.join(
            f'create refs/tags/t{i} {oid}\n' for i in range(
                2000 if repo == 'long.git' else 5)))


def all_lsns():
    return pg.sql('SELECT count(DISTINCT applied) = 1 AND min(applied) = '
                  '(SELECT max(lsn) FROM refd.log) FROM refd.node')


def compare(name, nodes, repos):
    report(f'{name}: all nodes have all rows',
           wait_for(60, lambda: all_lsns() == 't'), pg.sql(
               'SELECT node, applied, seen FROM refd.node'))
    for repo in repos:
        for node in nodes[1:]:
            same(f'{name}: refs of {repo} on {node.name}', a.refs(repo),
                 node.refs(repo))
            node.git(repo, 'fsck', '--connectivity-only')


# ---- cases ----

def test_refused():
    """Nothing was written to the database then."""
    c.configure(['b'])
    status, said = c.command('join')
    report('no source', status == 128 and "does not name the leader 'a'"
           in said, said)
    c.configure(['a', 'b'], node='b')
    status, said = c.command('join')
    report('a node that runs', status == 128 and 'wrote to the database'
           in said, said)
    c.configure(['a', 'b'])
    git('init', '-q', '--bare', f'{c.root}/own.git')
    status, said = c.command('join')
    report('a repository of this machine', status == 1 and
           'does not have this repository' in said, said)
    subprocess.run(['rm', '-r', f'{c.root}/own.git'], check=True)
    for repo in REPOS:
        a.git(repo, 'config', 'transfer.hideRefs', 'refs/pull')
    status, said = c.command('join')
    report('no repository can be copied', status == 1 and 'hides refs' in said
           and 'no repository of the leader can be copied' in said, said)
    for repo in REPOS[1:]:
        a.git(repo, 'config', '--unset', 'transfer.hideRefs')
    # As that of a group which a node has made after refd recover --leave.
    uuid = pg.sql('SELECT uuid FROM refd.grp')
    pg.sql(f"UPDATE refd.grp SET uuid = 'ffff01{'0' * 26}'")
    status, said = c.command('join')
    pg.sql(f"UPDATE refd.grp SET uuid = '{uuid}'")
    report('nothing is left out in the group of a node that has left another',
           status == 1 and 'hides refs' in said and 'left out' not in said,
           said)
    a.git('old.git', 'config', '--unset', 'transfer.hideRefs')
    same('the group has two nodes', '2',
         pg.sql('SELECT count(*) FROM refd.node'))


def uuid_of(repo):
    with open(f'{a.root}/{repo}/refd/id') as f:
        return f.read().split()[1]


def updated(name, repo, ref):
    done = a.run('update', '--git-dir', f'{a.root}/{repo}', ref,
                 a.git(repo, 'rev-parse', 'main'))
    report(name, done.returncode == 0, done.stderr)


def mark():
    return pg.sql("SELECT damaged FROM refd.node WHERE node = 'c'")


def missed():
    """The paths that the group knows. A uuid of the join follows."""
    return {line.split(' ', 1)[1] for line in mark().splitlines()
            if ' ' in line}


def write_behind_refd(node, repo, *args):
    node.git(repo, '-c', 'core.hooksPath=/dev/null', 'update-ref', *args)


def copied_by_hand(*repos, lacks=None):
    """c starts again. LACKS: a ref that the first copy lacks."""
    c.kill()
    for repo in repos:
        subprocess.run(['rm', '-rf', f'{c.root}/{repo}'], check=True)
        os.makedirs(os.path.dirname(f'{c.root}/{repo}'), exist_ok=True)
        subprocess.run(['cp', '-a', f'{a.root}/{repo}', f'{c.root}/{repo}'],
                       check=True)
    if lacks:
        write_behind_refd(c, repos[0], '-d', lacks)
    c.start()
    for repo in repos[1:] if lacks else repos:
        report(f'{repo} goes on behind a copy by hand', wait_for(
            60, lambda: c.refs(repo) == a.refs(repo)), c.message())


class Broken:
    """Three repositories cannot be copied, one seems to await its import, one
    has a long path, and one directory is too deep."""

    def __enter__(self):
        a.git('old.git', 'config', 'transfer.hideRefs', 'refs/pull\n a b')
        for name in ('objects', 'refd'):
            os.makedirs(f'{a.root}/{LONG}/{name}')
        for name, text in (('HEAD', 'ref: refs/heads/main\n'),
                           ('refd/id', f'uuid {LONG_ID}\n'
                            f'journal {"0" * 32}\npath /x\n')):
            with open(f'{a.root}/{LONG}/{name}', 'w') as f:
                f.write(text)
        with open(f'{a.root}/{Q}/config', 'a') as f:
            self.end = f.tell()
            f.write('[broken')
        open(f'{a.root}/empty.git/refd/import', 'w').close()
        with open(f'{a.root}/sha256.git/shallow', 'w') as f:
            f.write(a.git('sha256.git', 'rev-parse', 'main') + '\n')
        os.makedirs(f'{a.root}/levels' + '/d' * 260)

    def __exit__(self, *_):
        shutil.rmtree(f'{a.root}/levels')
        shutil.rmtree(f'{a.root}/{LONG.split("/")[0]}')
        os.unlink(f'{a.root}/sha256.git/shallow')
        os.unlink(f'{a.root}/empty.git/refd/import')
        os.truncate(f'{a.root}/{Q}/config', self.end)
        a.git('old.git', 'config', 'transfer.hideRefs', 'refs/refd')


def join_without():
    """c has old copies of two, in the place and far away."""
    far = f'{c.root}/far/.refd-{uuid_of("sha256.git")}'
    os.makedirs(os.path.dirname(far))
    for repo, path in (('old.git', f'{c.root}/old.git'), ('sha256.git', far)):
        subprocess.run(['cp', '-a', f'{a.root}/{repo}', path], check=True)
        updated(f'{repo} goes on, so its copy is old', repo, 'refs/heads/late')
    report('the leader has all rows', wait_for(30, lambda: all_lsns() == 't'))
    with Broken():
        status, said = c.command('join')
        done = a.run('update', '--git-dir', f'{a.root}/sha256.git',
                     'refs/heads/x', a.git('sha256.git', 'rev-parse', 'main'))
    report('no update of a shallow repository', done.returncode != 0 and
           'shallow' in done.stderr, done.stderr)
    report('c is a node, and every repository is named that it lacks',
           status == 1 and
           "'old.git' is not copied: the leader hides" in said and
           f"'{Q}' is not copied: git cannot read" in said and
           "'sha256.git' is not copied: it is a shallow clone" in said and
           "'empty.git' is not copied: the group may not have its" in said and
           f"'{LONG_ID}' is not copied: its path" in said and
           'too deep for a search' in said and
           said.count("'old.git' is left out") == 1 and
           "'c' is a node of the group 'main', without" in said, said)
    same('the group knows them', LEFT, missed())
    report('no old copy is left', not os.path.exists(f'{c.root}/old.git') and
           not os.path.exists(far) and
           glob.glob(f'{c.root}/.refd-way-{uuid_of("old.git")}-*') and
           glob.glob(f'{c.root}/far/.refd-way-*'), said)


def handed_by_an_older_leader():
    """Its lease_hand() does not look whether c lacks repositories."""
    pg.sql("UPDATE refd.lease SET epoch = epoch + 1, owner = 'c', "
           "successor = 'c', until = clock_timestamp() + interval '3 s'")


def test_left_out():
    join_without()
    c.start()
    report('c follows without them', c.await_role('follower'), c.message())
    status, said = a.command('status')
    report('status tells', status == 1 and
           "the node 'c' has joined without 'old.git', and cannot lead" in said,
           said)
    status, said = a.command('promote', 'c')
    report('c is not promoted', status == 128 and 'joined without' in said,
           said)
    # As refd group promote of an older version.
    epoch = int(pg.sql('SELECT epoch FROM refd.lease'))
    pg.sql("UPDATE refd.lease SET successor = 'c', asked = clock_timestamp()")
    report('the wish ends', wait_for(30, lambda: pg.sql(
        'SELECT successor IS NULL FROM refd.lease') == 't'), a.message())
    same('a has kept the lead', ('a', str(epoch + 1)), (
        pg.sql('SELECT owner FROM refd.lease'),
        pg.sql('SELECT epoch FROM refd.lease')))
    report('a leads again', a.await_role('leader'), a.message())
    for node in (a, b):
        node.group.send_signal(signal.SIGSTOP)
        node.daemon.send_signal(signal.SIGSTOP)
    time.sleep(8)
    report('c does not lead, even alone', c.role() != 'leader', c.message())
    handed_by_an_older_leader()
    time.sleep(4)
    report('c does not lead, even asked', c.role() != 'leader', c.message())
    for node in (a, b):
        node.kill(signal.SIGCONT)
    report('a node with all of them leads again', wait_for(
        30, lambda: 'leader' in (a.role(), b.role())), a.message())
    report('a leads', wait_for(30, lambda: a.command('promote', 'a')[0] == 0)
           and a.await_role('leader'), a.message())
    updated('an update of a repository that c has', 'long.git',
            'refs/heads/late')
    report('c gets it', wait_for(30, lambda: c.refs('long.git') ==
                                 a.refs('long.git')), c.message())
    for repo in ('old.git', 'sha256.git'):
        updated(f'an update of {repo}', repo, 'refs/heads/later')
        report(f'the row of {repo} waits', wait_for(
            90, lambda: f"{c.root}/{repo}' had refs before this node joined"
            in open(f'{c.top}/log').read()), c.message())
        report(f'{repo} has no old refs', not os.path.exists(
            f'{c.root}/{repo}') or c.git(repo, 'for-each-ref') == '')
    copied_by_hand('old.git', 'sha256.git')
    status, said = c.command('verify')
    report('verify names the rest', status == 1 and
           f'{Q}: refd group join could not' in said, said)
    # The one with the long path is not there any more.
    same('the group knows the rest', {Q, 'empty.git'}, missed())
    wrongly_copied()
    copied_by_hand(Q)
    status, said = c.command('verify')
    # b does not have the empty one, of which no row has come.
    report('verify finds all', status == 1 and 'could not copy' not in said and
           said.endswith(', 1 with findings\n'), said)
    same('the group knows of none', '', mark())
    status, said = a.command('promote', 'c')
    report('c can lead now', status == 0 and c.await_role('leader'), said)
    a.command('promote', 'a')
    report('a leads again', a.await_role('leader'), a.message())


def wrongly_copied():
    """The copy lacks a ref, and so does a node that does not lead, or the
    leader hides the ref."""
    tag, value = 'refs/tags/t1', a.git(Q, 'rev-parse', 'refs/tags/t1')
    copied_by_hand(Q, 'empty.git', lacks=tag)
    write_behind_refd(b, Q, '-d', tag)
    status, said = c.command('verify')
    report('verify finds what the copy lacks', status == 1 and
           f"{Q}: {tag} is missing on 'c'" in said, said)
    same('the group knows the repository that lacks a ref', {Q}, missed())
    write_behind_refd(b, Q, tag, value)
    for node in (a, c):
        node.git(Q, 'config', 'transfer.hideRefs', 'refs/tags')
    status, said = c.command('verify')
    same('the group knows the repository with hidden refs', (1, {Q}),
         (status, missed()))
    for node in (a, c):
        node.git(Q, 'config', '--unset', 'transfer.hideRefs')


def begin(*args):
    """A command at c, which waits for its first answer of another node."""
    if os.path.exists(f'{TOP}/waits'):
        os.unlink(f'{TOP}/waits')
    open(f'{TOP}/shut', 'w').close()
    process = subprocess.Popen(c.argv(*args), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    assert wait_for(60, lambda: os.path.exists(f'{TOP}/waits'))
    return process


def join_without_a_journal():
    """A crash between the mark and the journal."""
    before = mark()
    with Broken():
        join = begin('join')
        same('the list of the former join stays', before, mark())
        with open(f'{c.state}/journal.db', 'w') as f:
            f.write('garbage!' * 1024)
        os.unlink(f'{TOP}/shut')
        said = join.communicate()[0]
    report('the journal is not made', join.returncode == 128 and
           'cannot make the journal' in said, said)
    report('the mark comes before the journal', mark() != before, before)
    same('the group knows them', LEFT, missed())


def test_left_out_again():
    """c joins again, with the disk of before."""
    verify = begin('verify')
    verify.send_signal(signal.SIGSTOP)
    os.unlink(f'{TOP}/shut')
    c.kill()
    time.sleep(16)
    with Broken():
        status, said = c.command('join')
    same('joined without', (1, LEFT), (status, missed()))
    verify.send_signal(signal.SIGCONT)
    said = verify.communicate()[0]
    report('a verify from before the join tells of it', verify.returncode == 1
           and 'has joined or left' in said, said)
    same('and takes no repository away', LEFT, missed())
    join_without_a_journal()
    status, said = c.command('join')
    report('a second join brings all', status == 0, said)
    same('the group knows of none', '', mark())
    # An owner renames his repository whenever it is copied.
    with open(f'{TOP}/name', 'w') as f:
        f.write('old.git\n')
    name = 'new-' * 4 + 'old.git'
    status, said = c.command('join')
    report('the join ends after four rounds', status == 1 and
           os.path.exists(f'{a.root}/{name}') and
           f"'{name}' is not copied" in said, said)
    same('the group knows the new name', {name}, missed())
    os.unlink(f'{TOP}/name')
    os.rename(f'{a.root}/{name}', f'{a.root}/old.git')
    status, said = a.command('leave', 'c')
    report('c leaves', status == 0, said)
    subprocess.run(['rm', '-r', c.state, c.root], check=True)
    os.makedirs(c.root)


def begin_join():
    """The process waits to copy a repository. Also returns what it has said."""
    open(f'{TOP}/shut', 'w').close()
    join = subprocess.Popen(c.argv('join'), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    said = ''
    while not said.endswith('\n') or '1 of ' not in said:
        line = join.stdout.readline()
        assert line, said
        said += line
    return join, said


def join_while_another_takes_a_path():
    """Git waits to copy a repository. Meanwhile the leader renames it, and
    another one comes to its path. Returns the path."""
    join, said = begin_join()
    path = said.splitlines()[-1].partition(': ')[2]
    with renaming:
        os.rename(f'{a.root}/{path}', f'{a.root}/moved.git')
        REPOS[REPOS.index(path)] = 'moved.git'
        git('init', '-q', '--bare', f'{a.root}/{path}')
        a.enable(path)
    os.unlink(f'{TOP}/shut')
    said += join.communicate()[0]
    report('join', join.returncode == 0, said)
    report('its progress', '5 of 5: ' in said, said)
    # A node gets a new repository with its first row.
    tree = a.git(path, 'hash-object', '-w', '-t', 'tree', '/dev/null')
    done = a.run('update', '--git-dir', f'{a.root}/{path}', 'refs/heads/main',
                 a.git(path, 'commit-tree', '-m', 'other', tree))
    report('an update of the other one', done.returncode == 0, done.stderr)
    return path


def test_join():
    writers = [Writer(i) for i in range(2)]
    for writer in writers:
        writer.start()
    # Later, b has the objects with the rows, and needs no fetch.
    assert wait_for(60, lambda: all(len(w.times) > 20 for w in writers))
    join, said = begin_join()
    report('the first attempt was killed', '1 of 5' in said, said)
    status, said = c.command('join')
    report('no second join beside it', status == 128 and
           'another refd group join' in said, said)
    join.kill()
    os.unlink(f'{TOP}/shut')    # the other end has the output open, too
    join.communicate()
    status = a.command('status')[1]
    report('status: c joins', 'joins the group' in status, status)
    other = join_while_another_takes_a_path()
    # After the copy, and before the start.
    with renaming:
        os.rename(f'{a.root}/{REPOS[0]}', f'{a.root}/renamed.git')
        REPOS[0] = 'renamed.git'
        git('init', '-q', '--bare', f'{a.root}/new.git')
        a.enable('new.git')
        REPOS.append('new.git')
        writers[0].update(5)
    c.start()
    report('c follows', c.await_role('follower'), c.role() + c.message())
    for writer in writers:
        writer.end()
    times = [t for w in writers for t in w.times]
    same('no update has failed', [], [f for w in writers for f in w.failed])
    print(f'# {len(times)} updates, the slowest took {max(times):.1f} s',
          flush=True)
    compare('join', [a, b, c], REPOS[:4] + ['new.git', other])
    # Refs that were written twice during the copy have left nothing.
    for repo in REPOS[:4]:
        same(f'c has kept nothing of {repo}', '', c.git(
            repo, 'for-each-ref', 'refs/refd/diverged'))
    same('c has values of refs that no row has changed since', [(2000,)],
         journal_copy.ask(c.state, "SELECT count(*) FROM value WHERE ref LIKE "
                          "'refs/tags/t%' AND repo = (SELECT id FROM repo "
                          f"WHERE path LIKE '%/{REPOS[2]}')"))


def test_lead():
    """The new node leads, and its git writes nothing behind refd's back."""
    status, said = a.command('promote', 'c')
    report('promote', status == 0, said)
    report('c leads', c.await_role('leader'), c.message())
    hook = subprocess.run(
        ['git', '-C', f'{c.root}/{REPOS[2]}', 'update-ref', 'refs/heads/x',
         c.git(REPOS[2], 'rev-parse', 'main')], capture_output=True,
        text=True)
    report('git may not write there', 'push to the leader' in hook.stderr,
           hook.stderr)
    main = c.git(REPOS[2], 'rev-parse', 'main')
    done = c.run('update', '--git-dir', f'{c.root}/{REPOS[2]}',
                 'refs/heads/by-c', main)
    report('c takes an update', done.returncode == 0, done.stderr)
    compare('c leads', [a, b, c], REPOS[:4])


def test_damaged():
    """A pack of the leader is overwritten. Another node leads as soon as refd
    group verify has found it, and nothing else stops."""
    # The damage can be anywhere in the pack, and a fetch of c may meet it. So
    # the later row names a commit that c has outside of the pack.
    tree = c.git(REPOS[2], 'hash-object', '-w', '-t', 'tree', '/dev/null')
    own = c.git(REPOS[2], 'commit-tree', '-m', 'own', tree)
    done = c.run('update', '--git-dir', f'{c.root}/{REPOS[2]}',
                 'refs/heads/own', own)
    report('an update before the damage', done.returncode == 0, done.stderr)
    compare('before the damage', [a, b, c], REPOS[2:3])
    pack = max(glob.glob(f'{c.root}/{REPOS[2]}/objects/pack/*.pack'),
               key=os.path.getsize)
    os.chmod(pack, 0o600)
    with open(pack, 'r+b') as f:
        f.seek(os.path.getsize(pack) // 2)
        f.write(b'damaged!' * 4)
    # The column is of text, and a path has any bytes.
    copy = os.fsencode(c.root) + b'/x\xff.git'
    shutil.copytree(os.fsencode(f'{c.root}/{REPOS[2]}'), copy, symlinks=True)
    done = subprocess.run([*c.argv('verify'), copy], capture_output=True)
    same('the path is no UTF-8', 'x%ff.git', pg.sql(
        "SELECT damaged FROM refd.node WHERE node = 'c'"))
    report('the path is no UTF-8: verify', done.returncode == 1, done)
    shutil.rmtree(copy)
    status, said = c.command('verify')
    report('verify finds the damage', status == 1 and
           f"{REPOS[2]}: is damaged on the node 'c'" in said, said)
    # The command of the administrator holds for a minute.
    report('c gives the lead away', wait_for(
        90, lambda: 'leader' in (a.role(), b.role())), c.message())
    leader = a if a.role() == 'leader' else b
    status, said = leader.command('status')
    report('status tells the node and the command', status == 1 and
           f"the node 'c' has damaged objects in '{REPOS[2]}'" in said and
           'refd group verify --repair there' in said, said)
    status, said = c.command('verify', f'{c.root}/sha256.git')
    report('another repository is whole', status == 0, said)
    done = leader.run('update', '--git-dir', f'{leader.root}/{REPOS[2]}',
                      'refs/heads/damaged', own)
    report('the new leader takes an update', done.returncode == 0, done.stderr)
    # A damaged node is better than none.
    for node in (a, b):
        node.group.send_signal(signal.SIGSTOP)
        node.daemon.send_signal(signal.SIGSTOP)
    report('c leads, as no other node can', c.await_role('leader'),
           c.message())
    for node in (a, b):
        node.kill(signal.SIGCONT)
    report('c gives the lead away again', wait_for(
        90, lambda: 'leader' in (a.role(), b.role())), c.message())
    # An owner can keep his repository from being read.
    alternates = f'{c.root}/sha256.git/objects/info/alternates'
    with open(alternates, 'w') as f:
        f.write(f'{c.root}/{REPOS[2]}/objects\n')
    status, said = c.command('verify', '--repair')
    report('verify --repair', f'{REPOS[2]}: repaired with' in said and
           'sha256.git: its objects were not checked' in said, said)
    os.unlink(alternates)
    said = leader.command('status')[1]
    report('a verify without damage takes it away', 'damaged' not in said,
           said)
    pg.sql("UPDATE refd.node SET damaged = 'gone.git' WHERE node = 'c'")
    c.command('verify', f'{c.root}/sha256.git')
    same('a run over one repository does not', 'gone.git', pg.sql(
        "SELECT damaged FROM refd.node WHERE node = 'c'"))
    c.command('verify')
    same('the repository is gone', '', pg.sql(
        "SELECT damaged FROM refd.node WHERE node = 'c'"))
    compare('damaged', [a, b, c], REPOS[:4])


def test_refused_lead():
    """No other node takes the lead that a damaged one gives away. A second
    attempt would cost the time of a takeover each minute."""
    leader = a if a.role() == 'leader' else b
    status, said = leader.command('promote', 'c')
    report('promote a node without damage', status == 0, said)
    report('c leads again', c.await_role('leader'), c.message())
    for node in (a, b):
        node.group.send_signal(signal.SIGSTOP)
        node.daemon.send_signal(signal.SIGSTOP)
    # A wish is made if the last one is older than a minute.
    pg.sql("UPDATE refd.lease SET asked = NULL;"
           "UPDATE refd.node SET damaged = 'x.git' WHERE node = 'c'")
    epoch = int(pg.sql('SELECT epoch FROM refd.lease'))
    report('c gives the lead away, and gets it back', wait_for(
        60, lambda: pg.sql("SELECT epoch FROM refd.lease WHERE owner = 'c'")
        == str(epoch + 2)) and c.await_role('leader'), c.message())
    for node in (a, b):
        node.kill(signal.SIGCONT)
    time.sleep(5)
    pg.sql('UPDATE refd.lease SET asked = NULL')
    time.sleep(10)
    same('c keeps the lead', (str(epoch + 2), 'leader'), (
        pg.sql('SELECT epoch FROM refd.lease'), c.role()))
    pg.sql('UPDATE refd.node SET damaged = NULL')


def test_again():
    """c has lost its state, and has an old copy of the repositories."""
    c.kill()
    assert wait_for(30, lambda: 'leader' in (a.role(), b.role()))
    time.sleep(15)
    leader = a if a.role() == 'leader' else b
    subprocess.run(['rm', '-r', c.state], check=True)
    main = leader.git(REPOS[2], 'rev-parse', 'main')
    for ref, value in (('refs/heads/by-c', '0' * 40),
                       ('refs/heads/later', main)):
        done = leader.run('update', '--git-dir', f'{leader.root}/{REPOS[2]}',
                          ref, value)
        assert done.returncode == 0, done.stderr
    # An old configuration, which somebody else can have written.
    for key, value in (('protocol.ext.allow', 'always'), (
            f'url.ext::touch {TOP}/followed .insteadOf', 'ssh:')):
        c.git(REPOS[2], 'config', key, value)
    c.git(REPOS[2], 'symbolic-ref', 'refs/tags/t1', 'refs/tags/t2')
    # Nobody has written to it, so the new leader may have none. Its path is
    # another one if test_join has moved it.
    subprocess.run(['rm', '-r', f'{c.root}/{REPOS[4]}'], check=True)
    status, said = c.command('join')
    report('join again', status == 0, said)
    report('the old configuration was not followed',
           not os.path.exists(f'{TOP}/followed'))
    same('the old repositories are kept', len(REPOS),
         said.count(' is now '))
    c.start()
    report('c follows again', c.await_role('follower'), c.message())
    compare('again', [a, b, c], REPOS[:4])


pg = Postgres(TOP, BINARIES, int(UID))
os.makedirs(f'{TOP}/bin')
with open(f'{TOP}/bin/ssh', 'w') as ssh:
    ssh.write(SSH)
os.chmod(f'{TOP}/bin/ssh', 0o755)
os.environ.update(PATH=f'{TOP}/bin:{os.path.dirname(PROGRAM)}:'
                  + os.environ['PATH'], GIT_CONFIG_NOSYSTEM='1',
                  GIT_AUTHOR_NAME='a', GIT_AUTHOR_EMAIL='a@x',
                  GIT_COMMITTER_NAME='a', GIT_COMMITTER_EMAIL='a@x')
a, b, c = nodes = [Node(name, set('abc') - {name}) for name in 'abc']


def test_begin():
    make_role(pg)
    pg.sql('GRANT pg_read_all_stats TO refd')
    pg.names()
    await_standbys(pg)
    make_repositories()
    status, said = a.command('create')
    report('create', status == 0, said)
    a.start()
    report('a leads', a.await_role('leader'), a.message())
    status, said = b.command('join')
    report('the second node joins an empty group', status == 0, said)
    b.start()
    report('b follows', b.await_role('follower'), b.message())
    for repo in REPOS:
        a.enable(repo)
    compare('begin', [a, b], REPOS[:4])


run_cases(pg, nodes, test_begin, test_refused, test_left_out,
          test_left_out_again, test_join, test_lead, test_damaged,
          test_refused_lead, test_again)
