"""For tests/long/group_connect.sh: certificates, and PostgreSQL over TLS with
passwords and certificates of clients. The caller has a network of its own."""
import os
import signal
import subprocess

from group import Postgres

SECRET = 'correct-horse-7'


def openssl(*args):
    subprocess.run(['openssl', *args], check=True, capture_output=True)


class Authority:
    """A CA, and the certificates that it signs: NAME.crt and NAME.key."""

    def __init__(self, top, name):
        self.top, self.name = top, name
        openssl('req', '-x509', *self.key(name), '-days', '10', '-subj',
                f'/CN={name}', '-out', f'{top}/{name}.crt')

    def key(self, name):
        return ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                '-nodes', '-keyout', f'{self.top}/{name}.key')

    def sign(self, name, common_name, days=10):
        """The common name is also the name of a host. DAYS < 0: expired."""
        path = f'{self.top}/{name}'
        openssl('req', *self.key(name), '-subj', f'/CN={common_name}',
                '-addext', f'subjectAltName=DNS:{common_name}', '-out',
                f'{path}.csr')
        openssl('x509', '-req', '-in', f'{path}.csr', '-CA',
                f'{self.top}/{self.name}.crt', '-CAkey',
                f'{self.top}/{self.name}.key', '-CAcreateserial', '-days',
                str(days), '-copy_extensions', 'copy', '-out', f'{path}.crt')


class TlsPostgres(Postgres):
    """The primary (pg1.test) and its standby (pg2.test) take TLS alone, at
    ADDRESS: the role refd with a password, the role card with a certificate of
    the CA. A socket takes the superuser."""

    def __init__(self, top, binaries, uid, pki, address='127.0.0.1'):
        super().__init__(top, binaries, uid)
        self.pki = pki
        self.stop('s')
        self.stop('p')
        for which, host in (('p', 'pg1.test'), ('s', 'pg2.test')):
            self.give(which, host)
            with open(f'{top}/{which}/postgresql.conf', 'a') as conf:
                conf.write(f"""
listen_addresses = '{address}'
ssl = on
ssl_ca_file = '{pki.top}/{pki.name}.crt'
""")
            with open(f'{top}/{which}/pg_hba.conf', 'w') as conf:
                conf.write("""
local all,replication postgres trust
hostssl all refd,other samenet scram-sha-256
hostssl all card samenet cert
""")
            self.start(which)

    def give(self, which, certificate_of):
        """The server gets this certificate."""
        self.pki.sign(f'server-{which}', certificate_of)
        self.place(which)

    def place(self, which):
        for end in ('crt', 'key'):
            path = f'{self.top}/{which}/server.{end}'
            with open(f'{self.pki.top}/server-{which}.{end}') as made:
                text = made.read()
            with open(path, 'w') as placed:
                placed.write(text)
            os.chmod(path, 0o600)
            os.chown(path, self.uid, self.uid)

    def renew(self, which, host, days):
        """While the server runs."""
        self.pki.sign(f'server-{which}', host, days)
        self.place(which)
        self.servers[which].send_signal(signal.SIGHUP)


def database(top, authority, user='refd', host='pg1.test,pg2.test', **more):
    """A connection as in docs/group.md, on 127.0.0.1."""
    keys = {'host': host, 'hostaddr': ','.join(
        ['127.0.0.1'] * len(host.split(','))), 'port':
        '5601,5602'[:5 * len(host.split(',')) - 1], 'dbname': 'refd',
        'user': user, 'sslmode': 'verify-full',
        'sslrootcert': f'{top}/{authority}.crt', **more}
    return ' '.join(f'{key}={value}' for key, value in keys.items())


class Pooler:
    """pgbouncer before the primary, on port 6432."""

    def __init__(self, pg, mode):
        top = f'{pg.top}/pooler'
        os.makedirs(top, exist_ok=True)
        with open(f'{top}/users', 'w') as users:
            users.write(f'"refd" "{SECRET}"\n')
        with open(f'{top}/conf', 'w') as conf:
            conf.write(f"""[databases]
refd = host=127.0.0.1 port=5601
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6432
unix_socket_dir =
auth_type = trust
auth_file = {top}/users
pool_mode = {mode}
server_tls_sslmode = require
""")
        self.process = subprocess.Popen(
            ['setpriv', f'--reuid={pg.uid}', f'--regid={pg.uid}',
             '--clear-groups', '--pdeathsig=KILL', 'pgbouncer', '-q',
             f'{top}/conf'], stderr=open(f'{top}/log', 'a'))

    def end(self):
        self.process.kill()
        self.process.wait()
