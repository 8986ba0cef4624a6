"""The cases of tests/scenario/group_nodes_session.sh (group_pair.py)."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (HEX, REPO, TABLES, a, b, back,  # noqa: E402
                        both_connect, both_start, in_background, log,
                        make_repo, refused, report, run, same, same_refs,
                        stdin, updated)

NULL = '0' * HEX


class Session:
    """A session of refd update, which waits for each answer."""

    def __init__(self, node, *lines):
        self.process = subprocess.Popen(
            [*node.inside, 'update', '--socket', node.socket_path, '--git-dir',
             f'{node.seen_root}/{REPO}', '--stdin'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = [self.say(line) for line in lines
                     if line in ('start', 'prepare') or self.write(line)]

    def write(self, line):
        self.process.stdin.write(f'{line}\n')

    def say(self, command):
        """The answer, or '' at the end."""
        try:
            self.write(command)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.process.stdout.readline().strip()

    def end(self, command):
        """The exit status and what was said."""
        told = self.say(command)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        told += self.process.stdout.read() + self.process.stderr.read()
        return self.process.wait(30), told


def prepared(name, node, *lines):
    session = Session(node, 'start', *lines, 'prepare')
    report(f'{name}: prepared', session.said == ['start: ok', 'prepare: ok'],
           session.said)
    return session


def value(node, ref):
    return node.git(REPO, 'rev-parse', '-q', '--verify', ref)


def symref(name, node, *lines):
    updated(name, node, '--compat', '2.55', '--no-deref', '--stdin',
            **stdin(*lines))


def test_start():
    global one, two, three
    both_start()
    one, two, three = make_repo(REPO)
    for node in (a, b):
        node.git(REPO, 'config', 'core.logAllRefUpdates', 'true')
    both_connect()
    symref('HEAD', a, 'symref-update HEAD refs/heads/main')
    updated('main', a, 'refs/heads/main', one)
    same_refs('start')


# ---- sessions ----

def test_committed():
    """Beside other writers."""
    session = prepared('a session', a, f'update refs/heads/main {two} {one}',
                       f'create refs/heads/s {one}')
    rows = len(log.rows)
    updated('another ref goes on', a, 'refs/heads/other', one)
    refused('its ref waits', a, '', 'refs/heads/main', three, one)
    refused('a name below its new ref waits', a, '', 'refs/heads/s/x', one)
    same('nothing is in the log', rows + 1, len(log.rows))
    waiting = in_background(a, 'refs/heads/s/x', one)
    status, told = session.end('commit')
    report('a session: committed', (status, told.strip()) == (0, 'commit: ok'),
           (status, told))
    same('the name below is refused', True, waiting.wait(30) not in (0, None))
    same('main', two, value(a, 'main'))
    updated('its refs are free', a, 'refs/heads/main', one, two)
    updated('and its names', a, '-d', 'refs/heads/s', one)
    updated('so names below it are', a, 'refs/heads/s/x', one)
    same_refs('committed')


def test_aborted():
    session = prepared('aborted', a, f'update refs/heads/main {two} {one}',
                       f'create refs/heads/gone {one}')
    refs = a.refs(REPO)
    same('aborted: the end', (0, 'abort: ok'),
         tuple(t.strip() if isinstance(t, str) else t
               for t in session.end('abort')))
    same('aborted: no ref', refs, a.refs(REPO))
    updated('aborted: its refs are free', a, 'refs/heads/main', two, one)
    updated('back', a, 'refs/heads/main', one, two)
    same_refs('aborted')


def not_done(name, session, refs):
    status, told = session.end('commit')
    report(f'{name}: no ok', status != 0 and 'commit: ok' not in told,
           (status, told))
    same(f'{name}: no ref', refs, a.refs(REPO))


def test_another_epoch():
    """The node leads again, in an epoch that the session does not know. The
    commit may come before the daemon has given the session up."""
    for pause in (0, 1):
        session = prepared('an epoch', a, f'update refs/heads/main {two} {one}')
        refs, rows = a.refs(REPO), len(log.rows)
        report('a leads again', a.lead())
        time.sleep(pause)
        not_done('an epoch', session, refs)
        same('an epoch: no row with a value', [], [
            row for _, row in log.rows[rows:] if two.encode() in bytes(
                str(row), 'utf-8')])
    updated('an epoch: its ref is free', a, 'refs/heads/main', two, one)
    updated('back', a, 'refs/heads/main', one, two)
    same_refs('an epoch')


def test_refused():
    """The log takes no row at the commit."""
    session = prepared('refused', a, f'update refs/heads/main {two} {one}')
    refs = a.refs(REPO)
    a.link.policy = 'refuse'
    not_done('refused', session, refs)
    a.link.policy = 'commit'
    updated('refused: its ref is free', a, 'refs/heads/main', two, one)
    updated('back', a, 'refs/heads/main', one, two)


def test_takeover():
    """The locks of a session do not hold up the rows of the next leader."""
    session = prepared('a takeover', a, f'update refs/heads/main {two} {one}')
    report('b leads', b.lead())
    updated('b takes updates', b, 'refs/heads/main', three, one)
    report('a has applied the row', a.await_applied(5), a.said()[-500:])
    same('a has the value of b', three, value(a, 'main'))
    not_done('a takeover', session, b.refs(REPO))
    report('a leads', a.lead())
    updated('back', a, 'refs/heads/main', one, three)
    same_refs('a takeover')


def test_killed():
    session = prepared('killed', a, f'update refs/heads/main {two} {one}',
                       f'create refs/heads/killed {one}')
    a.kill()
    a.link.close()
    report('b leads', b.lead())
    status, told = session.end('commit')
    report('killed: no ok', status != 0 and 'commit: ok' not in told,
           (status, told))
    same('killed: b has nothing of it', (one, ''),
         (value(b, 'main'), value(b, 'killed')))
    updated('killed: b goes on', b, 'refs/heads/main', three, one)
    back(a)
    a.link.begin(False)
    report('a has applied all', a.await_applied(), a.said()[-500:])
    same('killed: the same refs', a.refs(REPO), b.refs(REPO))
    report('a leads', a.lead())
    updated('back', a, 'refs/heads/main', one, three)
    same_refs('killed')


# ---- symbolic refs ----

def lines_of(node, ref):
    """The new values in the log of the ref."""
    return node.git(REPO, 'log', '-g', '--format=%H', ref).split()


def test_followed():
    updated('through HEAD', a, '-m', 'by HEAD', 'HEAD', two, one)
    same_refs('through HEAD')
    same('main', two, value(b, 'refs/heads/main'))
    for node in (a, b):
        same(f'{node.name}: the log of HEAD', two,
             lines_of(node, 'HEAD')[0])
        same(f'{node.name}: the log of main', two,
             lines_of(node, 'refs/heads/main')[0])
    refused('with a wrong old value', a, 'is at', 'HEAD', three, one)
    symref('a symbolic ref', a, 'symref-create refs/heads/link refs/heads/main')
    updated('through it', a, 'refs/heads/link', three, two)
    same_refs('through it')
    same('main, through it', three, value(b, 'refs/heads/main'))


def test_ids():
    """The client of the next leader gets the same answer, for the same name."""
    new_id = f'{int(time.time() * 1000):012x}' + '6' * 20
    args = ('--txid', new_id, 'HEAD', one, three)
    updated('an id', a, *args)
    same_refs('an id')
    asked = a.run('query', new_id)
    report('the answer has HEAD', ' HEAD' in asked.stdout, asked)
    report('b leads', b.lead())
    same('the same answer at b', asked.stdout, b.run('query', new_id).stdout)
    rows = len(log.rows)
    updated('the id again', b, *args)
    same('no further row', rows, len(log.rows))
    report('a leads', a.lead())


def test_elsewhere():
    """A symbolic ref of b leads elsewhere: b changes what a has changed."""
    b.git(REPO, 'symbolic-ref', 'HEAD', 'refs/heads/elsewhere')
    lines = lines_of(b, 'HEAD')
    updated('HEAD of b is another one', a, 'HEAD', two, one)
    report('elsewhere: b has applied all', b.await_applied())
    same('elsewhere: main', two, value(b, 'refs/heads/main'))
    same('elsewhere: no branch', '', value(b, 'refs/heads/elsewhere'))
    same('elsewhere: no line for HEAD', lines, lines_of(b, 'HEAD'))
    symref('HEAD again', a, 'symref-update HEAD refs/heads/main')
    same_refs('elsewhere')
    same('HEAD of b', 'refs/heads/main', b.git(REPO, 'symbolic-ref', 'HEAD'))


def test_unborn():
    symref('a branch without a value', a, 'symref-update HEAD refs/heads/u/n')
    updated('its first value, through HEAD', a, 'HEAD', one, NULL)
    same('it is there', one, value(a, 'refs/heads/u/n'))
    same_refs('unborn')
    refused('a name below it', a, 'refs/heads/u/n', 'refs/heads/u/n/x', one)
    updated('its deletion, through HEAD', a, '-d', 'HEAD', one)
    same_refs('deleted')
    same('it is gone', '', value(b, 'refs/heads/u/n'))
    updated('now the name below it', a, 'refs/heads/u/n/x', one)
    refused('and HEAD has no room', a, 'refs/heads/u/n', 'HEAD', one, NULL)
    updated('d', a, '-d', 'refs/heads/u/n/x', one)
    same_refs('unborn, back')


def test_clash():
    """A new ref through HEAD, and names below it, at once: one of them wins,
    and no daemon ends."""
    ended = 0
    for i in range(20):
        clients = [in_background(a, *args, one) for args in (
            ('HEAD',), ('refs/heads/u/n/x',), ('HEAD',), ('refs/heads/u/n/y',))]
        for client in clients:
            ended += client.wait(30) is not None
        for ref in ('u/n', 'u/n/x', 'u/n/y'):
            if value(a, f'refs/heads/{ref}'):
                a.update(REPO, '-d', f'refs/heads/{ref}', one)
    same('all clients have ended', 80, ended)
    report('the daemon is there', a.process.poll() is None, a.said()[-500:])
    same_refs('clash')


def test_session_by_head():
    """A session makes the branch of HEAD."""
    session = prepared('by HEAD', a, f'create HEAD {one}')
    refused('by HEAD: the branch waits', a, '', 'refs/heads/u/n', two)
    refused('by HEAD: so does a name below', a, '', 'refs/heads/u/n/x', one)
    same('by HEAD: committed', 0, session.end('commit')[0])
    same('by HEAD', one, value(a, 'refs/heads/u/n'))
    same_refs('by HEAD')


def test_denied():
    refused('HEAD gets no value', a, 'only gets a new target', '--no-deref',
            'HEAD', one)
    refused('nor does another ref outside refs/', a, 'only gets a new target',
            'ORIG_HEAD', one)
    refused('nor a symbolic ref', a, 'only gets a new target', '--no-deref',
            'refs/heads/link', one)
    symref('to a kept value', a,
           'symref-create refs/heads/k refs/refd/diverged/1/heads/x')
    refused('no kept value through a symbolic ref', a, 'belong to one node',
            'refs/heads/k', one)
    symref('above the kept values', a, 'symref-create refs/heads/k2 refs/refd')
    refused('no name above them either', a, 'leave no room', 'refs/heads/k2',
            one)
    same_refs('denied')


run(test_start, test_committed, test_aborted, test_another_epoch, test_refused,
    test_takeover, test_killed, test_followed, test_ids, test_elsewhere,
    test_unborn, test_clash, test_session_by_head, test_denied)
