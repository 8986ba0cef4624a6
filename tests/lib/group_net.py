"""For tests/long/group_whole.py: hosts with an address each, on one bridge.
The caller has a network namespace of its own, so nothing stays behind. A host
is a process that holds namespaces."""
import os
import subprocess

NETWORK = '10.77.0'
KEEPALIVE = {'time': 5, 'intvl': 2, 'probes': 3}


def run(*argv):
    subprocess.run(argv, check=True, capture_output=True)


def prepare():
    """The bridge, in the namespace of the caller."""
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'link', 'add', 'bridge', 'type', 'bridge')
    run('ip', 'link', 'set', 'bridge', 'up')


class Host:
    """NAMESPACES: words for unshare and nsenter, and a command that prepares
    the host from inside, and prints one line."""

    def __init__(self, name, number, *namespaces, command='echo up'):
        self.name, self.address = name, f'{NETWORK}.{number}'
        self.namespaces = ('net', *namespaces)
        self.command = command
        self.holder = None
        self.up()

    def up(self):
        self.holder = subprocess.Popen(
            ['unshare', *(f'--{name}' for name in self.namespaces),
             *(['--propagation', 'slave'] if 'mount' in self.namespaces
               else []),
             'sh', '-c', f'{self.command} && exec sleep infinity'],
            stdout=subprocess.PIPE)
        assert self.holder.stdout.readline()
        run('ip', 'link', 'add', f'to-{self.name}', 'type', 'veth', 'peer',
            'name', 'eth0', 'netns', str(self.holder.pid))
        run('ip', 'link', 'set', f'to-{self.name}', 'master', 'bridge', 'up')
        for args in (('address', 'add', f'{self.address}/24', 'dev', 'eth0'),
                     ('link', 'set', 'eth0', 'up'), ('link', 'set', 'lo', 'up')):
            run(*self.enter('ip', *args))
        # A host that has vanished ends no connection. git asks for keepalives,
        # and the default of the kernel is two hours.
        for name, value in KEEPALIVE.items():
            run(*self.enter('sh', '-c', f'echo {value} >/proc/sys/net/ipv4/'
                            f'tcp_keepalive_{name}'))

    def enter(self, *argv):
        """The words of a command inside of this host."""
        return ['nsenter', *(f'--{name}=/proc/{self.holder.pid}/ns/'
                             + {'mount': 'mnt'}.get(name, name)
                             for name in self.namespaces), '--', *argv]

    def down(self):
        """The host vanishes: no packet says so."""
        self.holder.kill()
        self.holder.wait()
        subprocess.run(['ip', 'link', 'delete', f'to-{self.name}'],
                       check=False, capture_output=True)

    def processes(self):
        """All programs inside, except the holder."""
        inside = os.readlink(f'/proc/{self.holder.pid}/ns/net')
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
            try:
                if os.readlink(f'/proc/{pid}/ns/net') == inside and \
                        pid != self.holder.pid:
                    found.append(pid)
            except OSError:     # has ended
                pass
        return found

    def signal_all(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    # ---- faults ----

    def filter(self, action, source, *target):
        """Has no effect on a host that has vanished."""
        subprocess.run(self.enter(
            'iptables', '-w', action, 'INPUT', '-p', 'tcp', '-s',
            source.address, '-j', *target), check=False, capture_output=True)

    def deafen(self, *sources):
        """This host gets no packet of these hosts, and nobody is told."""
        for source in sources:
            self.filter('-A', source, 'DROP')

    def hear(self, *sources):
        for source in sources:
            self.filter('-D', source, 'DROP')

    def reset(self, *sources):
        """The next packet of these hosts ends its connection."""
        for source in sources:
            self.filter('-A', source, 'REJECT', '--reject-with', 'tcp-reset')

    def end_reset(self, *sources):
        for source in sources:
            self.filter('-D', source, 'REJECT', '--reject-with', 'tcp-reset')

    def cut_sockets(self, other):
        """All connections to the other host end, with a reset."""
        subprocess.run(self.enter('ss', '-K', 'dst', other.address),
                       check=False, capture_output=True)


class Cut:
    """No packet goes between some hosts, in both or in one direction, until the
    end."""

    def __init__(self, sources, targets, both=True):
        self.pairs = [(source, target) for source in sources
                      for target in targets if source is not target]
        self.both = both

    def __enter__(self):
        for source, target in self.pairs:
            target.deafen(source)
            if self.both:
                source.deafen(target)

    def __exit__(self, *_):
        for source, target in self.pairs:
            target.hear(source)
            if self.both:
                source.hear(target)
