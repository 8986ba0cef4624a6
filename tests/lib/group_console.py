"""For tests/long/group_{admin,hold,log}.py: reports, configurations and commands
of refd-group, the state of a group in PostgreSQL, and the run of the cases."""
import os
import signal
import subprocess
import threading
import time
import traceback

from group import wait_for


def report(name, is_right, why=''):
    print(f'ok {name}' if is_right else f'not ok {name}: {why}', flush=True)


def report_thread(error):
    """A node has got a frame that is wrong, or in a wrong order."""
    trace = traceback.format_exception(error.exc_type, error.exc_value,
                                       error.exc_traceback)
    report('the frames of a node', False, ''.join(trace).replace('\n', '|'))


threading.excepthook = report_thread


def same(name, wanted, got):
    report(name, wanted == got,
           f'wanted {str(wanted)[:400]!r}, got {str(got)[:400]!r}')


class Console:
    """refd-group for the administrator."""
    head = '[other]\n\tkey = value\n'

    def __init__(self, program, top, **keys):
        self.program, self.top, self.keys = program, top, keys

    def config(self, file, **changes):
        keys = {'name': 'main', 'node': file, 'database':
                f'host={self.top},{self.top} port=5601,5602 dbname=refd'
                ' user=refd', **self.keys, **changes}
        path = f'{self.top}/{file}.conf'
        with open(path, 'w') as config:
            config.write(f'{self.head}[group]\n')
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


def check_rows(name, log, nodes):
    """All that was acknowledged is in the log, nothing that was refused, and
    each node has the rows of the log."""
    for node in nodes:
        same(f'{name}: {node.name}: no committed row is missing', [],
             [i for i, lsn in node.committed.items() if log.get(i.hex()) != lsn])
        same(f'{name}: {node.name}: no refused row is there', [],
             [i for i in node.refused if i.hex() in log])
        same(f'{name}: {node.name} has the rows of the log', [],
             [lsn for lsn, row in node.rows.items()
              if log.get(row['id'].hex()) != lsn])


def check_log(name, pg, nodes):
    """The same for the log on the standby."""
    report(f'{name}: the standby has replayed all', pg.replayed())
    check_rows(name, pg.log(5602), nodes)


def await_standbys(pg, nr=1):
    assert wait_for(20, lambda: pg.sql(
        "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'"
        " AND flush_lsn IS NOT NULL") == str(nr))


def make_role(pg):
    pg.sql('CREATE ROLE refd LOGIN', database='postgres')
    pg.sql('CREATE DATABASE refd OWNER refd', database='postgres')


def run_cases(pg, nodes, *cases, nr_first=1):
    """Runs the cases, or the first ones and those named in GROUP_ONLY."""
    only = os.environ.get('GROUP_ONLY', '').split()
    try:
        for i, case in enumerate(cases):
            if only and i >= nr_first and case.__name__ not in only:
                continue
            began = time.monotonic()
            case()
            print(f'# {case.__name__}: {time.monotonic() - began:.1f} s',
                  flush=True)
        with open(f'{pg.top}/ended', 'w') as ended:
            ended.write('yes')
    except Exception:  # the processes must end in any case
        report('the cases', False, traceback.format_exc().replace('\n', '|'))
        for node in nodes:
            print(node.message()[-1500:] if node.process else '', flush=True)
    finally:
        for node in nodes:
            if node.process and node.process.poll() is None:
                node.kill(signal.SIGCONT)
                node.kill()
        for which in list(pg.servers):
            pg.stop(which, signal.SIGQUIT)
