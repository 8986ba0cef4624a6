"""For tests/long/group_machines.sh: PostgreSQL over TLS, with a standby, until
the end of the standard input. pg1.test and pg2.test are its two servers.

    group_machines.py DIRECTORY CERTIFICATES BINARIES UID ADDRESS"""
import signal
import sys

from group_tls import SECRET, Authority, TlsPostgres

TOP, PKI, BINARIES, UID, ADDRESS = sys.argv[1:]
pg = TlsPostgres(TOP, BINARIES, int(UID), Authority(PKI, 'ca'), ADDRESS)
# The lines of docs/group.md, with a password.
for line in (f"CREATE ROLE refd LOGIN PASSWORD '{SECRET}'",
             'GRANT pg_read_all_stats TO refd',
             'CREATE DATABASE refd OWNER refd'):
    pg.sql(line, database='postgres')
pg.names()
with open(f'{PKI}/pgpass', 'w') as passwords:
    passwords.write(f'*:*:refd:refd:{SECRET}\n')
print('ready', flush=True)
sys.stdin.read()
for which in list(pg.servers):
    pg.stop(which, signal.SIGQUIT)
