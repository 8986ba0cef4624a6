"""The cases of tests/scenario/group_nodes_role.sh (group_pair.py)."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import clock, wait_for  # noqa: E402
from group_nodes import GROUP  # noqa: E402
from group_pair import (REPO, a, b, both_connect, both_start,  # noqa: E402
                        lock_of, log, make_repo, metric, refused, report,
                        run, same, same_refs, updated)


def status(node):
    return json.loads(node.run('status', '--json').stdout)


def role(node):
    return status(node)['role']


def told(node):
    """What refd role prints, and its exit status."""
    result = node.run('role')
    return result.stdout.strip(), result.returncode


def http(node, target, method='GET'):
    """The status and the body, as haproxy asks."""
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(f'{node.top}/metrics.sock')
        asker.sendall(f'{method} {target} HTTP/1.0\r\n\r\n'.encode())
        answer = b''
        while more := asker.recv(65536):
            answer += more
    head, body = answer.decode().split('\r\n\r\n')
    return int(head.split()[1]), body.strip()


def balanced(node):
    """The answers to a load balancer: for the leader, and for followers."""
    return [http(node, target) for target in ('/leader', '/follower')]


def lag(node):
    """In seconds."""
    return int(status(node)['group_lag_ms']) / 1000


def test_start():
    global one, two, three
    for node in (a, b):
        with open(f'{node.top}/config', 'a') as config:
            config.write('\tmax-lag = 3s\n[metrics]\n\tsocket = '
                         f'{node.top}/metrics.sock\n')
    began = clock()
    both_start()
    one, two, three = make_repo(REPO)
    same('without refd-group, a waits', 'waits', role(a))
    same('refd role: a waits', ('waits', 75), told(a))
    same('HTTP: a waits', [(503, 'waits')] * 2, balanced(a))
    report('refd status: a waits', 'not in touch with its group'
           in a.run('status').stdout)
    report('the lag of a counts from its start',
           lag(a) <= clock() - began, lag(a))
    both_connect()
    updated('a creates a ref', a, 'refs/heads/main', one)
    same_refs('created')


# ---- signs of life ----

def test_signs():
    for node in (a, b):
        before = node.link.signs
        report(f'{node.name} has no work, and is not silent',
               wait_for(3, lambda: node.link.signs > before + 1),
               node.link.signs)


def in_background_wait(node, token):
    return subprocess.Popen([*node.inside, 'wait', '--socket',
                             node.socket_path, token])


# ---- lag ----

def test_lag():
    state = status(a)
    same('the leader', ('leader', 0, 'a'), (state['role'], state[
        'group_lag_ms'], state['group_leader']))
    same('the leader, at the follower', 'a', status(b)['group_leader'])
    report('CURRENT ends the lag',
           wait_for(5, lambda: b.link.follow() or lag(b) < 1), status(b))
    before = lag(b)
    time.sleep(1)
    report('the lag grows', before + 1 <= lag(b) < before + 3, lag(b))
    b.link.send_current(clock() - 20)
    report('an earlier time changes nothing', lag(b) < 10, lag(b))
    b.link.close()
    time.sleep(0.5)
    same('without refd-group, b waits', 'waits', role(b))
    report('and the lag grows on', before + 1.5 <= lag(b) < 20, lag(b))
    b.connect()
    b.link.begin(False)
    same_refs('lag')
    report('b follows again', wait_for(5, lambda: role(b) == 'follower'))


def test_role():
    same('refd role: the leader', ('leader', 0), told(a))
    same('HTTP: the leader', [(200, 'leader')] * 2, balanced(a))
    same('metrics of a leader', [1, 1, 0], [metric(a, f'group_{name}')
         for name in ('member', 'connected', 'lag_seconds')])
    same('HTTP: HEAD', (200, ''), http(a, '/leader', 'HEAD'))
    b.link.follow()
    same('refd role: a follower', ('follower', 1), told(b))
    same('HTTP: a follower', [(503, 'follower'), (200, 'follower')],
         balanced(b))
    report('refd role -v', 'leader: a\nrow: 1\nlag: '
           in b.run('role', '-v').stdout, b.run('role', '-v'))
    about = json.loads(b.run('role', '--json').stdout)
    report('refd role --json', 0 <= about.pop('lag_ms') < 3000, about)
    same('and the rest', {'role': 'follower', 'serves_reads': True,
                          'leader': 'a', 'lsn': 1}, about)
    report('no problem', 'of its group' not in b.run('status').stdout)
    report('group.max-lag ends the reads',
           wait_for(6, lambda: told(b) == ('follower', 75)), told(b))
    same('HTTP: a follower without rows', [(503, 'follower')] * 2, balanced(b))
    report('refd status names it', 'lacks rows of its group'
           in b.run('status').stdout)
    config = open(f'{b.top}/config').read()
    with open(f'{b.top}/config', 'w') as f:
        f.write(config.replace('max-lag = 3s', 'max-lag = 1h'))
    b.process.send_signal(signal.SIGHUP)
    report('a metric of the lag', 3 < metric(b, 'group_lag_seconds') < 60)
    report('a reload changes group.max-lag',
           wait_for(6, lambda: told(b) == ('follower', 1)), told(b))
    a.run('drain')
    same('a drained leader', ('waits', 75), told(a))
    same('HTTP: a drained leader', [(503, 'waits')] * 2, balanced(a))
    a.run('resume')
    same('refd resume', ('leader', 0), told(a))


# ---- tokens ----

def test_wait():
    out = a.update(REPO, '--json', 'refs/heads/token', one).stdout
    token = json.loads(out)['token']
    same('the token is of the group', f'{GROUP.hex()}:{len(log.rows)}', token)
    same('a has it', 0, a.run('wait', '--timeout', '0', token).returncode)
    same('b gets it', 0, b.run('wait', '--timeout', '10', token).returncode)
    same('and has the ref', one, b.git(REPO, 'rev-parse', 'token'))
    asked = a.run('query', '--json', json.loads(out)['txn']).stdout
    same('refd query has the token', token, json.loads(asked)['token'])
    lock = lock_of(b, 'refs/heads/token')
    open(lock, 'w').close()
    token = json.loads(a.update(REPO, '--json', 'refs/heads/token', two,
                                one).stdout)['token']
    late = b.run('wait', '--timeout', '1', token)
    report('b lacks a row: the time is over', late.returncode == 1
           and 'does not have LSN' in late.stderr, late)
    report('a metric tells how long the row waits',
           metric(b, 'group_row_seconds') >= 1, metric(b, 'group_row_seconds'))
    same('the leader has no such row', 0, metric(a, 'group_row_seconds'))
    waiter = in_background_wait(b, token)
    os.unlink(lock)
    same('the wait ends with the row', 0, waiter.wait(20))
    same('b has the value', two, b.git(REPO, 'rev-parse', 'token'))
    other = b.run('wait', f'{"0" * 32}:1')
    report('the token of another group', other.returncode == 128
           and 'the token is of the log' in other.stderr, other)
    report('b leads', b.lead())
    asked = b.run('query', '--json', json.loads(out)['txn']).stdout
    same('the same token at the next leader', json.loads(out)['token'],
         json.loads(asked)['token'])
    a.link.close()
    a.connect()
    a.link.begin(False)
    report('a leads again', a.lead())
    same_refs('tokens')


# ---- the lease ----

def test_lease():
    """A leader is silent when its lease has ended, and goes on later."""
    absent = f'{int(time.time() * 1000):012x}' + '7' * 20
    same('an unknown id', f'txn {absent} never-seen\n',
         a.run('query', absent).stdout)
    # A lease never becomes shorter, so a new connection brings a short one.
    a.link.close()
    a.connect()
    with log.lock:
        log.epoch += 1
        a.link.send_role(False)
        a.link.send_current(clock() + 2)
        a.link.send_role(True)
    report('a leads', wait_for(1.5, lambda: role(a) == 'leader'), status(a))
    report('the lease ends', wait_for(5, lambda: role(a) == 'waits'))
    same('and with it the epoch', 0, status(a)['group_epoch'])
    asked = a.run('query', absent)
    report('no answer for an id', asked.returncode not in (0, 1)
           and 'never' not in asked.stdout, asked)
    refused('no update', a, 'the lease of this node has ended',
            'refs/heads/late', one)
    a.link.send_current(clock() + 3600)
    report('the lease is renewed', wait_for(5, lambda: role(a) == 'leader'))
    same('an unknown id again', f'txn {absent} never-seen\n',
         a.run('query', absent).stdout)
    updated('an update', a, 'refs/heads/late', one)
    same_refs('lease')
    a.link.begin(False)
    report('the role ends the lease', wait_for(5, lambda: role(a) ==
                                               'follower'), status(a))
    report('the daemon answers the role', wait_for(
        5, lambda: a.link.follows == log.epoch), (a.link.follows, log.epoch))
    time.sleep(0.1)
    report('and the lag grows', 0 < lag(a) < 10, lag(a))
    report('a leads again', a.lead())


def test_frames():
    """A frame for each update would wake up refd-group before the answer."""
    before, began = a.link.signs, time.monotonic()
    for i in range(12):
        updated(f'update {i}', a, f'refs/heads/frame{i}', one)
    report('a leader says once a second what it has applied',
           a.link.signs - before <= time.monotonic() - began + 2,
           a.link.signs - before)


run(test_start, test_signs, test_lag, test_role, test_wait, test_lease,
    test_frames)
