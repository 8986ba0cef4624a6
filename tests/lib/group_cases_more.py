"""The cases of tests/scenario/group_nodes_more.sh (group_pair.py). Each case
can run alone, behind test_start: GROUP_ONLY."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__))
                + '/../../client/python')
import refd  # noqa: E402
from group import wait_for  # noqa: E402
from group_pair import (REPO, TABLES, TOP, a, b, back,  # noqa: E402
                        both_connect, both_start, in_background, is_traced,
                        log, make_repo, metric, refused, report, run, same,
                        same_refs, stdin, updated)
import journal_copy  # noqa: E402

OTHER = 65534   # an account
BUSY = 'busy_total{cause="group"}'


def new_id():
    return f'{int(time.time() * 1000):012x}' + os.urandom(10).hex()


def value(node, ref, repo=REPO):
    return node.git(repo, 'rev-parse', '-q', '--verify', ref)


def test_start():
    """a leads, and refs/heads/main has its first value."""
    global one, two, three
    with open(f'{a.top}/config', 'a') as config:
        config.write('[durability]\n\tmode = none\n')
    both_start()
    one, two, three = make_repo(REPO)
    both_connect()
    updated('a creates a ref', a, 'refs/heads/main', one)
    same_refs('created')


def await_row(ref):
    """The row of the group that changes REF."""
    name = f'{ref}\0'.encode()
    return wait_for(10, lambda: [row for _, row in log.rows
                                 if name in row['record']])


# ---- durability ----

def flushes(node, work):
    """The flushes of a daemon during WORK, a line each."""
    path = f'{TOP}/flushes'
    tracer = subprocess.Popen(
        ['strace', '-f', '-y', '-q', '-o', path, '-e',
         'trace=fsync,fdatasync,syncfs', '-p', str(node.process.pid)],
        stderr=subprocess.DEVNULL)
    report('strace watches', wait_for(20, lambda: is_traced(node)))
    work()
    tracer.terminate()
    tracer.wait()
    return open(path).read()


def five_updates():
    for i in range(5):
        updated('an update', a, f'refs/heads/flush{i}', one)
        same_refs('flushed')


def many_objects():
    """So many that a flush of the journal does not cover them."""
    blob = a.git(REPO, 'rev-parse', f'{one}^{{tree}}')
    trees = subprocess.run(
        ['git', '-C', f'{a.root}/{REPO}', 'mktree', '--batch'], check=True,
        input=''.join(f'040000 tree {blob}\tt{i}\n\n' for i in range(300)),
        capture_output=True, text=True).stdout.split()
    commit = a.git(REPO, 'commit-tree', trees[-1], '-m', 'many')
    updated('an update with many objects', a, 'refs/heads/many', commit)


def test_flushes():
    """Each row is flushed on both nodes, and its objects on the leader, even
    if the daemon is configured to flush nothing."""
    if shutil.which('strace') is None:
        print('skip flushes of nodes: no strace', flush=True)
        return
    for node in (a, b):
        traced = flushes(node, five_updates)
        nr = len(re.findall(r'fdatasync\(\d+<[^>]*/journal.db-wal', traced))
        report(f'{node.name} flushes each row', nr >= 5, traced)
        for i in range(5):
            updated('clean', a, '-d', f'refs/heads/flush{i}', one)
    traced = flushes(a, many_objects)
    report('a flushes objects', 'syncfs(' in traced, traced)


def inject(call, fault, ref):
    """An update of REF whose row a does not know yet, and a fault of a."""
    a.link.policy = 'later'
    client = in_background(a, ref, one)
    report('the row is in the log', await_row(ref))
    tracer = subprocess.Popen(
        ['strace', '-f', '-q', '-o', '/dev/null', '-e', f'trace={call}',
         '-e', f'inject={call}:{fault}', '-P', f'{a.state}/journal.db-wal',
         '-p', str(a.process.pid)], stderr=subprocess.DEVNULL)
    report('strace is there', wait_for(20, lambda: is_traced(a)))
    return client, tracer


def test_levels():
    """Every update is logged, and a request can't ask for more."""
    path = f'{a.root}/{REPO}'
    repo = refd.Repository(f'{a.seen_root}/{REPO}', os.stat(path).st_dev,
                           os.stat(path).st_ino)
    found = {}
    with refd.connect(a.socket_path) as client:
        for level in 'local', 'logged', 'held=1', 'applied=1':
            txn = refd.Transaction(repo, level=level)
            txn.create(f'refs/heads/level/{level[:3]}', one)
            try:
                client.transact(txn)
                found[level] = 'ok'
            except refd.Error as error:
                found[level] = type(error).__name__
    same('levels', {'local': 'ok', 'logged': 'ok', 'held=1': 'Unsupported',
                    'applied=1': 'Unsupported'}, found)
    same_refs('levels')


def test_full():
    """The disk of the leader gets full after the row is in the log."""
    if shutil.which('strace') is None:
        print('skip a full disk: no strace', flush=True)
        return
    client, tracer = inject('pwrite64', 'error=ENOSPC', 'refs/heads/full')
    a.link.answer_kept()
    same('the daemon ends', 74, a.ended())
    report('the client gets no ok', client.wait(60) != 0)
    report('the log says why', 'takes no row that the group has' in a.said(),
           a.said()[-500:])
    tracer.wait()
    a.link.close()
    back(a)
    report('a leads', a.lead())
    same('the row is published', one, value(a, 'refs/heads/full'))
    b.link.send_rows()
    same_refs('full')


def test_hello():
    """HELLO names no row that a power loss could take away."""
    if shutil.which('strace') is None:
        print('skip a slow flush: no strace', flush=True)
        return
    client, tracer = inject('fdatasync', 'delay_enter=3000000',
                            'refs/heads/hello')
    began = time.monotonic()
    a.link.answer_kept()
    time.sleep(0.5)
    a.link.close()
    a.connect()
    took = time.monotonic() - began
    report('HELLO comes after the flush', took > 2, took)
    same('and has the row', len(log.rows), a.link.sent)
    tracer.terminate()
    tracer.wait()
    client.wait(60)
    report('a leads', a.lead())
    same_refs('hello')


# ---- failures behind the commit ----

def test_cannot_publish():
    """A row that is committed can't be undone. The daemon ends once. Then the
    repository waits, and a counts no row until its ref has the value."""
    if TABLES:
        return
    a.link.policy = 'later'
    client = in_background(a, 'refs/heads/way', one)
    report('the row is in the log', await_row('refs/heads/way'))
    way = f'{a.root}/{REPO}/refs/heads/way'
    os.makedirs(way)
    open(f'{way}/file', 'w').close()
    a.link.answer_kept()
    same('the daemon ends', 74, a.ended())
    report('the client gets no ok', client.wait(60) != 0)
    report('the log says why', "can't be published" in a.said(),
           a.said()[-500:])
    a.link.close()
    before = len(a.said())
    back(a)
    report('the next start names the ref', a.await_said(
        "refs/heads/way: another reference stands", before), a.said()[before:])
    same('a counts no row', 0, a.link.applied)
    b.link.send_rows()
    report('b leads', b.lead())
    updated('b goes on', b, 'refs/heads/beside', one)
    report('a stays', a.ended(1) is None, a.said()[before:])
    same('and counts no row', 0, a.link.applied)
    os.unlink(f'{way}/file')
    report('a has applied all', a.await_applied(), a.said()[before:])
    same('the row is published', one, value(a, 'refs/heads/way'))
    same('and the later one', one, value(a, 'refs/heads/beside'))
    report('a leads', a.lead())
    same_refs('published')


# ---- what no node does, and git must not either ----

def test_unsupported():
    path = f'{a.root}/{REPO}'
    if not TABLES:
        os.makedirs(f'{path}/refs/heads/real')
        os.symlink('real', f'{path}/refs/heads/link')
        denied('a directory that is a link', 'refs/heads/link/x')
        os.unlink(f'{path}/refs/heads/link')
    os.makedirs(f'{TOP}/elsewhere/objects')
    with open(f'{path}/objects/info/alternates', 'w') as f:
        f.write(f'{TOP}/elsewhere/objects\n')
    denied('objects outside of the roots', 'refs/heads/x')
    os.unlink(f'{path}/objects/info/alternates')


def denied(name, ref):
    result = a.update(REPO, ref, one)
    report(f'{name}: denied', result.returncode != 0, result)
    same(f'{name}: no ref', '', value(a, ref))


# ---- what the leader says ----

def test_uid():
    """The user is the one of the leader's row."""
    a.link.policy = 'later'
    client = in_background(a, 'refs/heads/uid', one)
    await_row('refs/heads/uid')[0]['uid'] = OTHER
    a.link.answer_kept()
    a.link.policy = 'commit'
    same('an update', 0, client.wait(60))
    same_refs('uid')
    told = b.run('log', '--json', '-n', '1', '--ref', 'refs/heads/uid').stdout
    same('b tells the user of the row', OTHER, json.loads(told)['uid'])


def test_part():
    """The leader dies when it has done a part of a transaction. The next leader
    knows that it was a part. With refs in reftables, a repository has one batch
    at a time."""
    if TABLES:
        return
    a.link.policy = 'wait'
    batches = a.link.batches
    blocker = in_background(a, 'refs/heads/main', two, one)
    report('a batch waits', wait_for(10, lambda: a.link.batches > batches))
    a.link.policy = 'commit'
    txid = new_id()
    args = ['--txid', txid, '--stdin', '--batch-updates']
    updates = stdin(f'update refs/heads/part {one}',
                    f'update refs/heads/main {three} {one}')
    client = in_background(a, *args, stdin=subprocess.PIPE, text=True)
    client.stdin.write(updates['input'])
    client.stdin.close()
    rows = await_row('refs/heads/part')
    same('the row is not the last one', [False], [r['final'] for r in rows])
    a.kill()
    for process in (blocker, client):
        process.kill()
        process.wait()
    a.link.close()
    b.link.send_rows()
    report('b leads', b.lead())
    same('b has the row so', [(0,)], journal_copy.ask(
        b.state, 'SELECT final FROM record WHERE txid = ?',
        [bytes.fromhex(txid)]))
    asked = b.run('query', txid).stdout
    report('b knows the part', 'ok refs/heads/part' in asked
           and f'txn {txid} partial' in asked, asked)
    again = updated('the same id again', b, *args, **updates)
    report('the other part was not done', 'rejected refs/heads/main'
           in again.stdout, again)
    same('main is as before', one, value(b, 'refs/heads/main'))
    back(a)
    a.link.begin(False)
    report('a has applied all', a.await_applied())
    report('a leads', a.lead())
    same_refs('part')


# ---- transactions that wait for objects ----

def test_client_gone():
    """A transaction whose client is gone holds no later one up."""
    asked = a.link.asked
    a.link.holds = 'wait'
    refused('no node brings the objects', a, '', 'refs/heads/gone', one)
    report('refd-group was asked', a.link.asked > asked)
    a.link.holds = 'copy'
    updated('the next transaction', a, 'refs/heads/next', one)
    same_refs('gone')


def test_link_lost_holding():
    """A lost connection refuses transactions that wait for objects."""
    asked = a.link.asked
    a.link.holds = 'wait'
    client = in_background(a, 'refs/heads/holding', one)
    report('refd-group was asked', wait_for(10, lambda: a.link.asked > asked))
    before = metric(a, BUSY)
    a.link.close()
    report('it is refused', wait_for(3, lambda: metric(a, BUSY)
                                       > before), (before, metric(a, BUSY)))
    client.kill()
    client.wait()
    a.connect()
    report('a leads', a.lead())
    updated('the next transaction', a, 'refs/heads/after', one)
    same_refs('holding')


def test_account():
    """A program of another account is no refd-group."""
    b.link.close()
    for path in (TOP, b.top, b.state, f'{b.state}/group.sock'):
        os.chmod(path, 0o777)
    other = subprocess.run(
        ['python3', '-I', '-c', 'import socket, sys;'
         's = socket.socket(socket.AF_UNIX); s.settimeout(10);'
         's.connect(sys.argv[1]); print(s.recv(100))',
         f'{b.state}/group.sock'], user=OTHER, env={'PATH': '/usr/bin:/bin'},
        capture_output=True, text=True)
    os.chmod(b.state, 0o700)
    same('closed without a word', "b''\n", other.stdout or other.stderr)
    b.connect()
    b.link.begin(False)
    same_refs('account')


run(test_start, test_flushes, test_levels, test_full, test_hello,
    test_cannot_publish, test_unsupported, test_uid, test_part, test_client_gone,
    test_link_lost_holding, test_account)
