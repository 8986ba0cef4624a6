"""The cases of tests/scenario/group_nodes.sh (group_pair.py)."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
import group_nodes  # noqa: E402
from group_pair import (HEX, REFD, REPO, TABLES, TOP, a, b, back,  # noqa: E402
                        both_connect, both_start, in_background, lock_of, log,
                        make_repo, new_commit, refused, report, run, same,
                        same_refs, stdin, updated)


# ---- the order of an update ----

def test_lead():
    both_start()
    made = make_repo(REPO)
    refused('no refd-group: busy', a, 'waits for refd-group',
            'refs/heads/x', '1' * HEX)
    both_connect()
    report('b follows', b.await_said('group-follows'))
    global one, two, three
    one, two, three = made
    updated('a creates a ref', a, 'refs/heads/main', one)
    same('one row', 1, len(log.rows))
    same_refs('created')
    updated('a changes the ref', a, 'refs/heads/main', two, one)
    same_refs('changed')
    report('a says what it has applied', a.await_applied(5), a.link.applied)
    refused('b takes no updates', b, "the node 'a' leads",
            'refs/heads/main', three)


def test_kinds():
    updated('a symbolic ref', a, '--compat', '2.55', '--no-deref',
            '--stdin',
            **stdin('symref-update HEAD refs/heads/other'))
    same_refs('symbolic ref')
    same('HEAD of b', 'refs/heads/other', b.git(REPO, 'symbolic-ref', 'HEAD'))
    updated('many refs', a, '--stdin', **stdin(*(
        f'create refs/tags/t{i:04} {one}' for i in range(3000))))
    same_refs('many refs')
    updated('deletions from packed-refs', a, '--stdin', **stdin(*(
        f'delete refs/tags/t{i:04} {one}' for i in range(0, 3000, 2))))
    same_refs('deletions')
    updated('the same value', a, 'refs/heads/main', two, two)
    updated('verify', a, '--stdin', **stdin(f'verify refs/heads/main {two}'))
    updated('d', a, 'refs/heads/d', one)
    updated('d goes, d/e comes', a, '--stdin',
            **stdin(f'delete refs/heads/d {one}'))
    updated('d/e', a, 'refs/heads/d/e', one)
    same_refs('names below names')
    updated('HEAD to main', a, '--compat', '2.55', '--no-deref',
            '--stdin',
            **stdin('symref-update HEAD refs/heads/main'))
    updated('a symbolic ref', a, '--compat', '2.55', '--no-deref', '--stdin',
            **stdin('symref-create refs/heads/link refs/heads/main'))
    same_refs('symbolic refs')


def test_ids():
    """Outcomes are the same on both nodes, rejected ones too."""
    new_id = f'{int(time.time() * 1000):012x}' + '5' * 20
    out = a.update(REPO, '--txid', new_id, '--stdin', '--batch-updates', **stdin(
        f'update refs/heads/i {one}', f'update refs/heads/main {three} {one}'))
    asked_a = a.run('query', new_id)
    same_refs('an id')
    a.link.close()
    report('b leads', b.lead())
    asked_b = b.run('query', new_id)
    same('the same answer at b', asked_a.stdout, asked_b.stdout)
    report('the answer has both updates', 'refs/heads/main' in asked_b.stdout
           and 'refs/heads/i' in asked_b.stdout, (out, asked_b))
    rows = len(log.rows)
    again = b.update(REPO, '--txid', new_id, '--stdin', '--batch-updates',
                     **stdin(f'update refs/heads/i {one}',
                             f'update refs/heads/main {three} {one}'))
    same('a repeated id: the same result', (out.returncode, out.stdout),
         (again.returncode, again.stdout))
    same('a repeated id: no row', rows, len(log.rows))
    updated('b changes a ref', b, 'refs/heads/main', three, two)
    a.connect()
    a.link.begin(False)
    report('a has applied all',
           wait_for(20, lambda: a.link.applied >= len(log.rows)))
    same('a follows b', b.refs(REPO), a.refs(REPO))
    refused('a takes no updates', a, "the node 'b' leads", 'refs/heads/main',
            one)
    report('a leads again', a.lead())


# ---- failures ----

def test_refused():
    a.link.policy = 'refuse'
    refused('refused: busy', a, 'takes no writes now', 'refs/heads/r', one)
    same('refused: no ref', '', a.git(REPO, 'rev-parse', '-q', '--verify',
                                      'refs/heads/r'))
    a.link.policy = 'commit'
    updated('the lock is gone', a, 'refs/heads/r', one)
    a.link.holds = 'fail'
    refused('no follower has the objects: busy', a, 'the node b is away',
            'refs/heads/r', two)
    a.link.holds = 'copy'
    same_refs('after refusals')


def ends(client):
    """The daemon ends in doubt. Its client waits for an outcome."""
    same('the daemon ends', 74, a.ended())
    report('the client has no ok', client.poll() != 0)
    client.kill()
    client.wait()


def test_forgotten():
    """The row is in the log of the group, and the daemon does not know."""
    a.link.policy = 'forget'
    begun = time.monotonic()
    ends(in_background(a, 'refs/heads/main', one, three))
    report('after the patience', time.monotonic() - begun >= 1.5)
    report('the log says why', 'group.patience' in a.said())
    same('the ref has its old value', three, a.git(REPO, 'rev-parse', 'main'))
    a.link.close()
    back(a)
    report('a leads', a.lead())
    same('the row is applied', one, a.git(REPO, 'rev-parse', 'main'))
    b.link.send_rows()
    same_refs('forgotten')


def test_waits():
    """The row never gets into the log."""
    a.link.policy = 'wait'
    ends(in_background(a, 'refs/heads/main', two, one))
    a.link.close()
    back(a)
    report('a leads', a.lead())
    same('nothing has happened', one, a.git(REPO, 'rev-parse', 'main'))
    updated('the lock is gone', a, 'refs/heads/main', two, one)
    same_refs('never sent')


def test_killed():
    """kill -9 of the leader after the log of the group, before the journal."""
    a.link.policy = 'forget'
    batches, rows = a.link.batches, len(log.rows)
    client = in_background(a, 'refs/heads/main', three, two)
    report('the row is in the log',
           wait_for(10, lambda: len(log.rows) > rows), batches)
    a.kill()
    client.kill()
    client.wait()
    a.link.close()
    report('b leads', b.lead())
    same('b has the row', three, b.git(REPO, 'rev-parse', 'main'))
    updated('b goes on', b, 'refs/heads/main', one, three)
    back(a)
    a.link.begin(False)
    report('a follows', a.await_said('group-follows'))
    report('a has applied all', wait_for(
        20, lambda: a.refs(REPO) == b.refs(REPO)), a.refs(REPO))
    report('a leads', a.lead())


def test_link_lost():
    """A connection that is lost with a batch in work ends the daemon."""
    a.link.policy = 'wait'
    client = in_background(a, 'refs/heads/main', two, one)
    batches = a.link.batches
    wait_for(10, lambda: a.link.batches > batches or a.link.batches)
    time.sleep(0.2)
    a.link.close()
    ends(client)
    back(a)
    report('a leads', a.lead())
    same('nothing has happened', one, a.git(REPO, 'rev-parse', 'main'))
    a.link.close()
    refused('no connection: busy', a, 'refd-group', 'refs/heads/main', two)
    a.connect()
    report('a leads on the next connection', a.lead())
    updated('and takes updates', a, 'refs/heads/main', two, one)
    same_refs('link')


def test_old_epoch():
    """An update whose id was looked up in an earlier epoch is refused as busy.
    The client sends the update again, and the id is looked up again."""
    asked = a.link.asked
    a.run('pause')
    client = in_background(a, '--timeout', '20000', 'refs/heads/old', one)
    report('the update waits', wait_for(10, lambda: a.link.asked > asked))
    asked = a.link.asked
    report('b leads', b.lead())
    report('a leads again', a.lead())
    a.run('resume')
    client.wait(60)
    report('the id is looked up again', a.link.asked > asked)
    report('the update is made', client.returncode == 0)
    same('the ref', one, a.git(REPO, 'rev-parse', '-q', '--verify',
                               'refs/heads/old'))
    same_refs('old epoch')


def test_lock():
    lock = lock_of(b, 'refs/heads/main')
    open(lock, 'w').close()
    updated('a row for a ref that is locked on b', a, 'refs/heads/main',
            three, two)
    report('b says why it waits',
           b.await_said('is locked by another program', seconds=15))
    os.unlink(lock)
    same_refs('lock')

def test_repair():
    """A follower without the objects asks for them."""
    a.link.holds = 'skip'
    four = new_commit(a, REPO, three)
    updated('an object that b lacks', a, 'refs/heads/repair', four)
    report('b asks for it', wait_for(20, lambda: b.link.asked > 0))
    a.link.holds = 'copy'
    same_refs('repair')


def test_own_switch():
    """refd pack, and housekeeping by git, change nothing of the group."""
    for node in (a, b):
        node.git(REPO, 'pack-refs', '--all')
    updated('after pack-refs', a, 'refs/heads/main', two, three)
    same_refs('pack-refs')


def test_new_repo():
    """A node that has missed HOLD gets the repository with the row."""
    a.link.holds = 'skip'
    subprocess.run(['git', 'init', '-q', '--bare', f'{a.root}/new.git'])
    updated('a row that changes nothing', a, '--stdin', repo='new.git',
            **stdin(f'verify refs/heads/none {"0" * HEX}'))
    a.link.holds = 'copy'
    report('b has applied the row', b.await_applied(), b.said()[-500:])
    report('b has the repository', os.path.exists(f'{b.root}/new.git/refd/id'))


def test_modes():
    subprocess.run(
        ['sh', '-c', 'umask 077; exec "$@"', 'sh', *a.inside, 'update',
         '--socket', a.socket_path, '--git-dir', f'{a.seen_root}/{REPO}',
         'refs/heads/deep/secret', one], check=True)
    same_refs('modes')
    for path in () if TABLES else ('deep', 'deep/secret'):
        modes = [oct(os.stat(f'{node.root}/{REPO}/refs/heads/{path}').st_mode)
                 for node in (a, b)]
        report(f'{path}: not readable on b either', modes[0] == modes[1],
               modes)


def test_reverse():
    """The journal has the rows in the order of the group. With refs in
    reftables, a repository has one batch at a time."""
    if TABLES:
        return
    a.link.policy = 'reverse'
    clients = []
    for i in (1, 2):
        # Otherwise the second update could be in the batch of the first one.
        before = a.link.batches
        clients.append(in_background(a, f'refs/heads/reverse{i}', one))
        wait_for(10, lambda: a.link.batches > before)
    for client in clients:
        same('an update of two at once', 0, client.wait(60))
    a.link.policy = 'commit'
    same_refs('reverse')


def test_two_roles():
    """The last ROLE counts, even if two come at once."""
    with b.link.writing:
        role = [b.link.role_bytes(leads) for leads in (True, False)]
        b.link.socket.sendall(b''.join(role))
    time.sleep(0.5)
    refused('b follows', b, "the node 'a' leads", 'refs/heads/two', one)
    query = b.run('query', f'{int(time.time() * 1000):012x}' + '7' * 20)
    report('b answers no question about an id', query.returncode
           not in (0, 1) and 'never' not in query.stdout and
           'this node does not lead' in query.stderr, query)


def test_stop_waiting():
    """A clean stop while a row waits, and refd-group connects again."""
    lock = lock_of(b, 'refs/heads/main')
    open(lock, 'w').close()
    updated('a row for a ref that is locked on b', a, 'refs/heads/main',
            three, two)
    b.link.close()
    again = group_nodes.connect(b)
    time.sleep(0.5)
    same('b ends', 0, b.kill(signal.SIGTERM))
    again.close()
    os.unlink(lock)
    back(b)
    b.link.begin(False)
    same_refs('stop')
    updated('back', a, 'refs/heads/main', two, three)


def push(*args):
    """A push to a, by git and the hook of refd."""
    return subprocess.Popen(
        [*a.inside[:-1], 'git', '-C', f'{TOP}/clone', 'push', '-q',
         f'{a.seen_root}/{REPO}', *args], stderr=subprocess.PIPE, text=True)


def test_push():
    """git never writes in place of the daemon."""
    done = a.run('enable', f'{a.seen_root}/{REPO}')
    report('refd enable', done.returncode == 0, done)
    subprocess.run(['git', 'clone', '-q', f'{a.root}/{REPO}', f'{TOP}/clone'],
                   check=True, capture_output=True)
    a.kill()
    a.link.close()
    pushed = push(f'{one}:refs/heads/p')
    time.sleep(1)
    same('the daemon is away: git does not push', (None, ''),
         (pushed.poll(), a.git(REPO, 'rev-parse', '-q', '--verify', 'p')))
    back(a)
    report('a leads', a.lead())
    same('the push waits for the daemon', 0, pushed.wait(60))
    pushed = push(':refs/heads/absent')
    text = pushed.communicate()[1]
    report('only git can do this: refused', pushed.returncode != 0
           and 'not in a group of nodes' in text, text)
    a.link.holds = 'late'
    pushed = push(f'{two}:refs/heads/late')
    text = pushed.communicate()[1]
    report('a push that waits for other nodes says so', pushed.returncode == 0
           and text.count('remote: refd: no answer yet') == 1, text)
    a.link.holds = 'copy'
    result = a.update(REPO, 'refs/heads/p', two, one,
                      env={**os.environ, 'GIT_OBJECT_DIRECTORY': TOP})
    report('refd update with other objects: refused', result.returncode != 0
           and 'not in a group of nodes' in result.stderr, result)
    same_refs('pushes')


def values_of(node):
    """The refs of the copy, as refd group join gives them to refd recover."""
    with open(f'{node.root}/{REPO}/refd/id') as f:
        uuid = f.readline().split()[1]
    refs = node.git(REPO, 'for-each-ref',
                    '--format=%(objectname) %(refname) %(symref)%00')
    return (f'{len(log.rows)} {int(time.time() * 1000)}\0'
            f'repository {uuid} {node.seen_root}/{REPO}\0{refs}\n')


def test_unlisted():
    """The leader has not listed a repository to the node that joins, which
    begins no such repository, because it has only the later refs."""
    values = {repo: make_repo(repo, 2, is_on_both=False)
              for repo in ('unlisted.git', 'emptied.git', 'begun.git',
                           'fresh.git')}
    for repo in 'unlisted.git', 'emptied.git':
        updated(f'{repo}: a ref', a, 'refs/heads/main', values[repo][0],
                repo=repo)
    updated('the last ref goes', a, '-d', 'refs/heads/main',
            values['emptied.git'][0], repo='emptied.git')
    done = a.run('enable', f'{a.seen_root}/fresh.git')
    report('a repository without a row', done.returncode == 0
           and group_nodes.id_of(f'{a.root}/fresh.git'), done)
    lsn = len(log.rows)
    d = group_nodes.Node('d', TOP, REFD, log)
    subprocess.run(['cp', '-a', f'{a.root}/team', f'{a.root}/emptied.git',
                    f'{a.root}/fresh.git', d.root], check=True)
    os.makedirs(d.state)
    joined = d.recover('--join', str(lsn), input=values_of(d) + ''.join(
        f'repository {group_nodes.id_of(f"{a.root}/{repo}")} '
        f'{d.seen_root}/{repo}\0{"0" * 40} refs/heads/main \0'
        for repo in ('emptied.git', 'fresh.git')))
    report('d joins', joined.returncode == 0, joined)
    a.others, b.others, d.others = [b, d], [a, d], [a, b]
    report('d starts', d.start(), d.said())
    d.connect()
    d.link.begin(False)
    updated('the first row', a, 'refs/heads/main', values['begun.git'][0],
            repo='begun.git')
    updated('a row behind a deletion', a, 'refs/heads/main',
            values['emptied.git'][1], repo='emptied.git')
    for repo in 'begun.git', 'emptied.git':
        report(f'{repo}: d has it', wait_for(
            20, lambda: d.refs(repo) == a.refs(repo) != ''), d.said()[-900:])
    updated('a second ref', a, 'refs/heads/side', values['unlisted.git'][1],
            repo='unlisted.git')
    report('the row waits', d.await_said('had refs before this node joined'),
           d.said()[-900:])
    place = f'{d.root}/unlisted.git'
    report('d does not begin it',
           not os.path.exists(place) or d.refs('unlisted.git') == '')
    d.kill()
    d.link.close()
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run(['cp', '-a', f'{a.root}/unlisted.git', place], check=True)
    back(d)
    d.link.begin(False)
    report('d has all rows with the copy', d.await_applied(), d.said()[-900:])
    same('d has the same refs', a.refs('unlisted.git'), d.refs('unlisted.git'))
    report('d leads', d.lead())
    updated('the first row of a repository that d knows as empty', d,
            'refs/heads/main', values['fresh.git'][0], repo='fresh.git')
    report('a has it, too', a.await_applied(), a.said()[-900:])
    report('a leads again', a.lead())
    same('d ends', 0, d.kill(signal.SIGTERM))
    a.others, b.others = [b], [a]
    d.end()


def test_join():
    """A new node begins with a copy of another one. The copy has later rows
    than its position, and one of its refs is damaged behind the copy."""
    earlier = json.loads(updated('a row before the copy', a, '--json',
                                 'refs/heads/once', one).stdout)['txn']
    updated('a later one of the same ref', a, 'refs/heads/once', two)
    lsn = len(log.rows)
    updated('a row during the copy', a, 'refs/heads/twice', one)
    updated('a second one of the same ref', a, 'refs/heads/twice', two, one)
    updated('a name that goes', a, 'refs/heads/place', one)
    updated('its end', a, '-d', 'refs/heads/place', one)
    updated('a name below it', a, 'refs/heads/place/below', two)
    same('a ends', 0, a.kill(signal.SIGTERM))
    c = group_nodes.Node('c', TOP, REFD, log)
    subprocess.run(['cp', '-a', f'{a.root}/team', c.root], check=True)
    values = values_of(c)
    subprocess.run(['git', '-C', f'{c.root}/{REPO}', '-c',
                    'core.hooksPath=/dev/null', 'update-ref',
                    'refs/heads/main', three], check=True)
    back(a)
    report('a leads', a.lead())
    status = a.run('status', '-v').stdout
    report('the status has role and LSN', 'role' in status
           and 'leader' in status and str(len(log.rows)) in status, status)
    os.makedirs(c.state)
    joined = c.recover('--join', str(lsn),
                       input=values.replace(two, 'no id', 1))
    report('a wrong value is refused', joined.returncode == 74
           and 'no value of a ref: no' in joined.stderr, joined)
    joined = c.recover('--join', str(lsn), input=values)
    report('the journal is made', joined.returncode == 0, joined)
    again = c.recover('--join', '1', input='')
    report('another LSN is refused', again.returncode != 0, again)
    a.others, b.others, c.others = [b, c], [a, c], [a, b]
    report('c starts', c.start(), c.said())
    c.connect()
    c.link.begin(False)
    report('c has the rows of the copy', c.await_applied(), c.said()[-900:])
    # As refd-group, which tells the role again behind the rows.
    c.link.begin(False)
    report('c has the value of the group again', wait_for(
        20, lambda: c.git(REPO, 'rev-parse', 'refs/heads/main') == two),
        c.said()[-900:])
    same('c has kept the damaged value alone', [three], c.git(
        REPO, 'for-each-ref', '--format=%(objectname)',
        'refs/refd/diverged').split())
    c.git(REPO, 'update-ref', '-d', c.git(
        REPO, 'for-each-ref', '--format=%(refname)', 'refs/refd/diverged'))
    updated('a row behind the copy', a, 'refs/heads/joined', one)
    updated('a deletion', a, '-d', 'refs/heads/joined', one)
    updated('a change of an old ref', a, 'refs/heads/main', one, two)
    updated('and back', a, 'refs/heads/main', two, one)
    report('c has applied all', c.await_applied(), c.said()[-500:])
    same('c has the same refs', a.refs(REPO), c.refs(REPO))
    report('c leads', c.lead())
    updated('c takes updates', c, 'refs/heads/by-c', one)
    # After never-seen, the client would send it again.
    same('c does not have the outcome of an earlier id',
         f'txn {earlier} expired\n', c.run('query', earlier).stdout)
    again = c.update(REPO, '--txid', earlier, 'refs/heads/once', one)
    report('c does not do it again', again.returncode != 0
           and 'outcome unknown' in again.stderr, again)
    same('the later value stays', two, c.git(REPO, 'rev-parse',
                                             'refs/heads/once'))
    report('a has applied all', a.await_applied())
    same_refs('c leads', REPO)
    same('c ends', 0, c.kill(signal.SIGTERM))
    a.others, b.others = [b], [a]
    c.end()
    report('a leads again', a.lead())


def test_without_group():
    status = a.kill(signal.SIGTERM)
    same('a clean end', 0, status)
    config = open(f'{a.top}/config').read()
    open(f'{a.top}/config', 'w').write(config[:config.index('[group]')])
    a.process = subprocess.Popen(
        [*a.inside, 'daemon', '--config', f'{a.top}/config'],
        stdout=open(f'{a.top}/log', 'a'), stderr=subprocess.STDOUT)
    report('a start without the group ends', a.ended() not in (None, 0))
    report('and says why', 'belongs to a node of a group' in a.said())
    b.kill(signal.SIGTERM)


run(test_lead, test_kinds, test_ids, test_refused, test_forgotten, test_waits,
    test_killed, test_link_lost, test_old_epoch, test_lock, test_repair,
    test_own_switch, test_new_repo, test_modes, test_reverse, test_two_roles,
    test_stop_waiting, test_push, test_unlisted, test_join, test_without_group)
