"""The cases of tests/long/group_balancer.sh: haproxy with the lines of
docs/group.md, before the two nodes of a group (group_pair.py). Each node has an
address of its own, 127.0.0.11 and 127.0.0.12, where a server in place of sshd
says the name of the node."""
import os
import re
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from group import wait_for  # noqa: E402
from group_pair import (REPO, TOP, a, b, back, log, make_repo,  # noqa: E402
                        report, run, same, same_refs, updated)

MANUAL = f'{os.path.dirname(os.path.abspath(__file__))}/../../docs/group.md'
ADDRESS = {a: '127.0.0.11', b: '127.0.0.12'}
# As systemd starts the daemon with refd-metrics.socket.
START = """import os, socket, sys
s = socket.create_server((sys.argv[1], 9718))
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1',
                  LISTEN_FDNAMES='metrics')
os.execvp(sys.argv[2], sys.argv[2:])"""


class Sshd(threading.Thread):
    """Says the name of its node to everybody, and ends the connection only when
    the client does."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node = node
        self.listener = socket.create_server((ADDRESS[node], 22))
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            client.sendall(self.node.name.encode())
            threading.Thread(target=client.recv, args=(1,),
                             daemon=True).start()
            self.kept = client


def manual():
    """The configuration in docs/group.md, with the addresses of the test. The
    ports of haproxy are on 127.0.0.1 alone, because sshd has port 22, too."""
    text = open(MANUAL).read()
    block = re.search(r'\n\n((?:    .*\n)*    listen git-push\n(?:    .*\n)*)',
                      text)[1]
    lines = [line[4:] for line in block.splitlines()]
    return '\n'.join(lines).replace('192.0.2.', '127.0.0.').replace(
        'bind :', 'bind 127.0.0.1:') + '\n'


def ask(port):
    """The name of the node that answers, or nothing."""
    try:
        with socket.create_connection(('127.0.0.1', port), 5) as client:
            client.settimeout(5)
            return client.recv(10).decode()
    except OSError:
        return ''


def leads_to(name, port, nodes, seconds=10):
    """Connections to PORT go to all of NODES, and to no other one."""
    report(name, wait_for(seconds, lambda: {
        ask(port) for _ in range(6)} == set(nodes)),
        {ask(port) for _ in range(6)})


def launch(node):
    inside = node.inside
    node.inside = [*inside[:-1], 'python3', '-c', START, ADDRESS[node],
                   inside[-1]]
    node.launch()
    node.inside = inside
    return node.run('ping', '--wait', '20').returncode == 0


def test_start():
    global haproxy, one, two
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    for node in (a, b):
        with open(f'{node.top}/config', 'a') as config:
            config.write('\tmax-lag = 3s\n')
        node.start = lambda node=node: launch(node)
        report(f'{node.name} starts', node.start(), node.said())
        Sshd(node)
    one, two = make_repo(REPO, 2)
    with open(f'{TOP}/haproxy.cfg', 'w') as config:
        config.write(manual())
    checked = subprocess.run(['haproxy', '-c', '-f', f'{TOP}/haproxy.cfg'],
                             capture_output=True, text=True)
    report('haproxy -c takes the lines of the manual without a warning',
           checked.returncode == 0 and 'WARNING' not in checked.stderr,
           checked)
    haproxy = subprocess.Popen(
        ['haproxy', '-db', '-f', f'{TOP}/haproxy.cfg'],
        stdout=subprocess.DEVNULL, stderr=open(f'{TOP}/haproxy.log', 'w'))
    leads_to('no node leads: pushes go nowhere', 22, [''])
    a.connect()
    b.connect()
    report('a leads', a.lead())
    updated('a creates a ref', a, 'refs/heads/main', one)
    same_refs('created')


def test_routes():
    leads_to('pushes go to the leader', 22, 'a')
    leads_to('clones go to both nodes', 2222, 'ab')


def test_lead_moves():
    """Connections to a former leader end, so no push goes on there."""
    with socket.create_connection(('127.0.0.1', 22), 5) as push:
        same('a push begins', b'a', push.recv(10))
        report('b leads', b.lead())
        leads_to('pushes go to the new leader', 22, 'b')
        push.settimeout(10)
        same('the old connection ends', b'', push.recv(10))
    leads_to('clones go to both nodes, again', 2222, 'ab')


def test_lag():
    """A follower that lacks rows gets no clones."""
    a.link.close()
    leads_to('clones go to the leader alone', 2222, 'b')
    a.connect()
    a.link.begin(False)
    leads_to('clones go to both nodes after the lag', 2222, 'ab')


def test_dead():
    b.kill()
    b.link.close()
    leads_to('the leader is dead: pushes go nowhere', 22, [''])
    leads_to('clones go to the follower', 2222, 'a')
    back(b)
    report('a leads again', a.lead())
    leads_to('pushes go to a', 22, 'a')


def main():
    try:
        run(test_start, test_routes, test_lead_moves, test_lag, test_dead)
    finally:
        haproxy.kill()
        haproxy.wait()


main()
