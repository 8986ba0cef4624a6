"""For tests/long/group_admin.py: reports, configurations and commands of
refd-group, and the state of a group in PostgreSQL."""
import os
import signal
import subprocess
import threading
import traceback


def report(name, is_right, why=''):
    print(f'ok {name}' if is_right else f'not ok {name}: {why}', flush=True)


def report_thread(error):
    """A node has got a frame that is wrong, or in a wrong order."""
    trace = traceback.format_exception(error.exc_type, error.exc_value,
                                       error.exc_traceback)
    report('the frames of a node', False, ''.join(trace).replace('\n', '|'))


threading.excepthook = report_thread


def same(name, wanted, got):
    report(name, wanted == got, f'wanted {wanted!r}, got {got!r}')


class Console:
    """refd-group for the administrator."""

    def __init__(self, program, top, **keys):
        self.program, self.top, self.keys = program, top, keys

    def config(self, file, **changes):
        keys = {'name': 'main', 'node': file, 'database':
                f'host={self.top},{self.top} port=5601,5602 dbname=refd'
                ' user=refd', **self.keys, **changes}
        path = f'{self.top}/{file}.conf'
        with open(path, 'w') as config:
            config.write('[group]\n')
            for key, value in keys.items():
                config.write(f'\t{key} = "{value}"\n')
        return path

    def start(self, *args, node='a'):
        return subprocess.Popen(
            [self.program, '--config', f'{self.top}/{node}.conf', *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def end(self, process):
        """Exit status and output."""
        out = process.communicate(timeout=60)[0]
        return process.returncode, out

    def run(self, *args, node='a'):
        return self.end(self.start(*args, node=node))


def expect(name, status, text, result):
    report(name, result[0] == status and text in result[1], repr(result))


class Paused:
    """The standby receives no WAL."""

    def __init__(self, pg):
        self.pg = pg

    def __enter__(self):
        self.pid = self.pg.receiver()
        os.kill(self.pid, signal.SIGSTOP)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def check_log(name, pg, nodes):
    """All that was acknowledged is on the standby, nothing that was refused,
    and each node has the rows of the log."""
    report(f'{name}: the standby has replayed all', pg.replayed())
    log = pg.log(5602)
    for node in nodes:
        same(f'{name}: {node.name}: no committed row is missing', [],
             [i for i, lsn in node.committed.items() if log.get(i.hex()) != lsn])
        same(f'{name}: {node.name}: no refused row is there', [],
             [i for i in node.refused if i.hex() in log])
        same(f'{name}: {node.name} has the rows of the log', [],
             [lsn for lsn, row in node.rows.items()
              if log.get(row['id'].hex()) != lsn])
