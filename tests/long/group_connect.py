"""The cases of tests/long/group_connect.sh.

    group_connect.py REFD-GROUP DIRECTORY CERTIFICATES BINARIES UID"""
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + '/../lib')
from group import Node, new_row, wait_for  # noqa: E402
from group_console import Console, expect, report, same  # noqa: E402
from group_tls import (SECRET, Authority, Pooler, TlsPostgres,  # noqa: E402
                       database)

PROGRAM, TOP, PKI, BINARIES, UID = sys.argv[1:]
WRONG = 'wrong-horse-8'
MANUAL = 'refd-group(8), Connections, has the remedies'
PASS, SERVICE = f'{TOP}/pass', f'{TOP}/service'

subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
os.environ.update(PGPASSFILE=PASS, PGSERVICEFILE=SERVICE)
ca, other = Authority(PKI, 'ca'), Authority(PKI, 'other')
pg = TlsPostgres(TOP, BINARIES, int(UID), ca)
console = Console(PROGRAM, TOP, lease='3s')
a = Node('a', PROGRAM, f'{TOP}/a.conf', TOP)
said = []       # all that was printed


def write(path, text, mode=0o600):
    with open(path, 'w') as f:
        f.write(text)
    os.chmod(path, mode)


def give_password(secret=SECRET, mode=0o600):
    write(PASS, f'*:*:*:refd:{secret}\n', mode)


def configure(authority='ca', **keys):
    console.config('a', database=keys.get('whole') or database(
        PKI, authority, **keys))


def run(*args):
    """Exit status and output of a command, which must not wait."""
    began = time.monotonic()
    result = console.run(*args)
    took = time.monotonic() - began
    said.append(result[1])
    report(f'{args}: an answer within 10 s', took < 10, took)
    return result


def fails(name, text, remedy, **keys):
    """refd group status prints TEXT and REMEDY, and the wrong settings are in
    KEYS."""
    configure(**keys)
    result = run('status')
    expect(name, 75, text, result)
    report(f'{name}: the remedy', remedy in result[1], result)


def works(name, **keys):
    """refd-group serves: a batch is committed."""
    configure(**keys)
    a.start()
    report(f'{name}: a leads', a.await_role(True), a.message()[-500:])
    same(f'{name}: a batch', 'COMMITTED', a.outcome(a.batch(new_row())))


def test_create():
    for role in ('refd', 'card', 'other'):
        pg.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'",
               database='postgres')
    pg.sql('CREATE DATABASE refd OWNER refd', database='postgres')
    pg.sql('GRANT refd TO card')
    pg.sql('GRANT pg_read_all_stats TO refd')
    pg.names()
    assert wait_for(10, lambda: pg.sql(
        "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'"
        " AND flush_lsn IS NOT NULL") == '1')
    give_password()
    configure()
    expect('create', 0, "created the group 'main'", run('create'))
    works('a password from ~/.pgpass')
    same('all sessions use TLS', '0', pg.sql(
        """SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
        WHERE usename = 'refd' AND NOT ssl"""))
    expect('status', 0, 'leader: a', run('status'))
    expect('status: no other node gets objects', 0,
           '0 nodes besides the leader are here, and group.held is 1',
           run('status'))
    pg.sql('REVOKE pg_read_all_stats FROM refd')
    expect('status: the role sees no standby', 1,
           'GRANT pg_read_all_stats TO the role', run('status'))
    pg.sql('GRANT pg_read_all_stats TO refd')
    pg.alter('fsync', 'off')
    assert wait_for(10, lambda: pg.sql('SHOW fsync') == 'off')
    expect('status: fsync is off', 0, 'fsync is off in PostgreSQL',
           run('status'))
    pg.alter('fsync', 'on')
    assert wait_for(10, lambda: pg.sql('SHOW fsync') == 'on')
    same('stop', 0, a.stop())


def test_service():
    os.unlink(PASS)
    keys = database(PKI, 'ca', password=SECRET).split(' ')
    write(SERVICE, '[refd]\n' + '\n'.join(keys) + '\n')
    works('a password from a service file', whole='service=refd')
    same('stop', 0, a.stop())
    fails('no such service', 'definition of service "none" not found', MANUAL,
          whole='service=none')
    write(SERVICE, f'[refd]\nsecret {SECRET}\n')
    fails('a damaged service file', 'syntax error in service file', MANUAL,
          whole='service=refd')
    keys[-1] = f'password={WRONG}'
    write(SERVICE, '[refd]\n' + '\n'.join(keys) + '\n')
    fails('a wrong password in a service file',
          'password authentication failed', 'correct a wrong password',
          whole='service=refd')
    give_password()


def card(name):
    return {'user': 'card', 'sslcert': f'{PKI}/{name}.crt',
            'sslkey': f'{PKI}/{name}.key'}


def test_client_certificate():
    ca.sign('card', 'card')
    ca.sign('old', 'card', -1)
    other.sign('foreign', 'card')
    ca.sign('stranger', 'stranger')
    works('a certificate of the client', **card('card'))
    same('stop', 0, a.stop())
    for name, text in (('old', 'certificate expired'),
                       ('foreign', 'unknown ca'),
                       ('stranger', 'certificate authentication failed')):
        fails(f'the certificate {name}', text, MANUAL, **card(name))
    fails('no certificate', 'requires a valid client certificate', MANUAL,
          user='card')
    os.chmod(f'{PKI}/card.key', 0o644)
    fails('a key that all may read', 'has group or world access', MANUAL,
          **card('card'))


def test_password():
    missing = 'put a line into ~/.pgpass of this account, mode 0600'
    give_password(WRONG)
    fails('a wrong password', 'password authentication failed',
          'correct a wrong password')
    give_password(mode=0o644)
    fails('a file of passwords that all may read', 'no password supplied',
          missing)
    os.unlink(PASS)
    fails('no password', 'no password supplied', missing)
    give_password()
    fails('an unknown role', 'no password supplied', missing, user='other')
    fails('an unknown database', 'does not exist', 'correct a wrong password',
          dbname='none')
    pg.sql("ALTER ROLE refd VALID UNTIL '2020-01-01'")
    fails('a password that is over', 'password authentication failed',
          'correct a wrong password')
    pg.sql("ALTER ROLE refd VALID UNTIL 'infinity'")


def test_server_certificate():
    fails('a wrong CA', 'certificate verify failed', MANUAL, authority='other')
    fails('no file of the CA', 'does not exist', MANUAL, authority='none')
    fails('a wrong name of the host',
          'server certificate for "pg1.test" does not match host name "x.test"',
          MANUAL, host='x.test')
    fails('without TLS', 'no encryption', MANUAL, sslmode='disable')
    pg.renew('p', 'pg1.test', -1)
    assert wait_for(10, lambda: run('status')[0] == 75)
    fails('an expired certificate', 'certificate verify failed', MANUAL)
    pg.renew('p', 'pg1.test', 10)
    assert wait_for(10, lambda: run('status')[0] != 75)


def test_silent_server():
    """It accepts connections, and sends nothing."""
    with socket.create_server(('127.0.0.1', 5777)):
        fails('a silent server', 'timeout expired', MANUAL, host='pg1.test',
              port='5777')


def test_mended():
    """refd-group does not need a new start."""
    give_password(WRONG)
    configure()
    at = len(a.message()) if os.path.exists(a.said) else 0
    a.start()
    report('serve: a wrong password', wait_for(
        10, lambda: 'correct a wrong password' in a.message()[at:]),
        a.message()[at:])
    time.sleep(2)
    report('serve: one message of each part in a minute', a.message()[at:].count(
        'correct a wrong password') <= 2, a.message()[at:])
    give_password()
    report('serve: a right password', a.await_role(True),
           a.message()[at:])
    pg.renew('p', 'pg1.test', -1)
    pg.sql("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE usename = 'refd'""")
    number = a.batch(new_row())
    report('serve: an expired certificate', wait_for(
        20, lambda: 'certificate verify failed' in a.message()[at:]),
        a.message()[at:])
    same('serve: the process runs', None, a.process.poll())
    report('serve: the batch is not committed',
           'COMMITTED' not in a.outcome(number, 1), a.outcomes[number])
    pg.renew('p', 'pg1.test', 10)
    report('serve: the batch gets its outcome', a.outcome(number).split()[-1]
           in ('COMMITTED', 'REFUSED'), a.outcomes[number])
    report('serve: a leads again', a.await_role(True), a.message()[at:])
    same('stop', 0, a.stop())


def test_first_host():
    """A standby with an expired certificate, which is the first host, must not
    keep a node from the primary."""
    pg.renew('s', 'pg2.test', -1)
    time.sleep(1)
    works('an expired certificate of a standby', host='pg2.test,pg1.test',
          port='5602,5601')
    same('stop', 0, a.stop())
    pg.renew('s', 'pg2.test', 10)


def test_pooler():
    for mode in ('transaction', 'session', 'statement'):
        pooler = Pooler(pg, mode)
        configure(host='pg1.test', port='6432', sslmode='disable')
        wait_for(10, lambda: 'refused' not in run('status')[1])
        expect(f'a pooler, mode {mode}', 128, 'a pooler stands between',
               run('status'))
        pooler.end()


def end_behind_pid(server):
    """Plays PostgreSQL, and ends the session behind the id of its process."""
    def message(kind, body=b''):
        return kind + struct.pack('>I', len(body) + 4) + body

    def status(name, value):
        return message(b'S', f'{name}\0{value}\0'.encode())

    connection = server.accept()[0]
    stream = connection.makefile('rwb')
    stream.read(struct.unpack('>I', stream.read(4))[0] - 4)
    stream.write(message(b'R', bytes(4)) + status('server_version', '15.0')
                 + status('in_hot_standby', 'off')
                 + status('default_transaction_read_only', 'off')
                 + message(b'K', struct.pack('>II', 4711, 1))
                 + message(b'Z', b'I'))
    stream.flush()
    for kind in iter(lambda: stream.read(1), b''):
        stream.read(struct.unpack('>I', stream.read(4))[0] - 4)
        if kind == b'Q':
            stream.write(message(b'C', b'SET\0') + message(b'Z', b'I'))
            stream.flush()
        if kind == b'S':
            column = b'pid\0' + struct.pack('>IHIhih', 0, 0, 23, 4, -1, 0)
            stream.write(message(b'1') + message(b'2')
                         + message(b'T', struct.pack('>H', 1) + column)
                         + message(b'D', struct.pack('>HI', 1, 4) + b'4711')
                         + message(b'C', b'SELECT 1\0')
                         + message(b'Z', b'I'))
            stream.flush()
            break
    connection.shutdown(socket.SHUT_RDWR)


def test_ended_session():
    """It is no pooler, and a later attempt succeeds."""
    configure(host='pg1.test', port='5777', sslmode='disable')
    with socket.create_server(('127.0.0.1', 5777)) as server:
        threading.Thread(target=end_behind_pid, args=(server,)).start()
        status, text = run('status')[:2]
    report('an ended session', status == 75 and 'pooler' not in text,
           (status, text))


def test_secrets():
    """No message has a password."""
    said.extend(open(f'{TOP}/{name}').read() for name in os.listdir(TOP)
                if name.endswith('.log') or name == 'said')
    for secret in (SECRET, WRONG):
        same(f'no message has {secret}', [],
             [text[-500:] for text in said if secret in text])


def main():
    tests = [test_service, test_client_certificate, test_password,
             test_server_certificate, test_silent_server, test_mended,
             test_first_host, test_pooler, test_ended_session, test_secrets]
    if 'GROUP_ONLY' in os.environ:
        tests = [globals()[name] for name in os.environ['GROUP_ONLY'].split()]
    try:
        for test in [test_create, *tests]:
            began = time.monotonic()
            test()
            print(f'# {test.__name__}: {time.monotonic() - began:.1f} s',
                  flush=True)
        write(f'{TOP}/ended', 'yes')
    except Exception:  # the processes must end in any case
        report('the cases', False, traceback.format_exc().replace('\n', '|'))
    finally:
        if a.process and a.process.poll() is None:
            a.kill()
        for which in list(pg.servers):
            pg.stop(which, signal.SIGQUIT)


main()
