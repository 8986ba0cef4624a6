"""The cases of tests/scenario/group_nodes_role.sh (group_pair.py)."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (REPO, a, b, log, make_repo, refused,  # noqa: E402
                        report, run, same, same_refs, updated)


def status(node):
    return json.loads(node.run('status', '--json').stdout)


def role(node):
    return status(node)['group_role']


def lag(node):
    """In seconds."""
    return int(status(node)['group_lag_ms']) / 1000


def test_start():
    global one, two, three
    report('a starts', a.start(), a.said())
    report('b starts', b.start(), b.said())
    one, two, three = make_repo(REPO)
    same('without refd-group, a waits', 'waits', role(a))
    report('the lag of a is as if it had never had all rows',
           abs(lag(a) - time.monotonic()) < 10, lag(a))
    a.connect()
    b.connect()
    report('a leads', a.lead())
    updated('a creates a ref', a, 'refs/heads/main', one)
    same_refs('created')


# ---- lag ----

def test_lag():
    same('the leader', ('leader', 0, 'a'),
         tuple(status(a)[f'group_{key}'] for key in ('role', 'lag_ms',
                                                     'leader')))
    same('the follower', ('follower', 'a'),
         tuple(status(b)[f'group_{key}'] for key in ('role', 'leader')))
    report('CURRENT ends the lag',
           wait_for(5, lambda: b.link.follow() or lag(b) < 1), status(b))
    before = lag(b)
    time.sleep(1)
    report('the lag grows', before + 1 <= lag(b) < before + 3, lag(b))
    b.link.send_current(time.monotonic() - 20)
    report('an earlier time changes nothing', lag(b) < 10, lag(b))
    b.link.close()
    time.sleep(0.5)
    same('without refd-group, b waits', 'waits', role(b))
    report('and the lag grows on', before + 1.5 <= lag(b) < 20, lag(b))
    b.connect()
    b.link.begin(False)
    same_refs('lag')
    report('b follows again', wait_for(5, lambda: role(b) == 'follower'))


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
        a.link.send_current(time.monotonic() + 2)
        a.link.send_role(True)
    report('a leads', wait_for(1.5, lambda: role(a) == 'leader'), status(a))
    report('the lease ends', wait_for(5, lambda: role(a) == 'waits'))
    same('and with it the epoch', 0, status(a)['group_epoch'])
    asked = a.run('query', absent)
    report('no answer for an id', asked.returncode not in (0, 1)
           and 'never' not in asked.stdout, asked)
    refused('no update', a, 'the lease of this node has ended',
            'refs/heads/late', one)
    a.link.send_current(time.monotonic() + 3600)
    report('the lease is renewed', wait_for(5, lambda: role(a) == 'leader'))
    same('an unknown id again', f'txn {absent} never-seen\n',
         a.run('query', absent).stdout)
    updated('an update', a, 'refs/heads/late', one)
    same_refs('lease')
    a.link.begin(False)
    report('the role ends the lease', wait_for(5, lambda: role(a) ==
                                               'follower'), status(a))
    time.sleep(0.1)
    report('and the lag grows', 0 < lag(a) < 10, lag(a))
    report('a leads again', a.lead())


run(test_start, test_lag, test_lease)
