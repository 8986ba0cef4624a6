"""Cases of tests/long/group_log.sh: a former primary that accepts writes again.

The group 'other' has its own nodes, c and d. libpq tries the former primary
first."""
import subprocess
import time

from group import Locked, Node, new_row, wait_for
from group_console import Paused, expect, report


class Cases:
    def __init__(self, pg, console):
        self.pg, self.console = pg, console
        config = console.config(
            'c', name='other', database=f'host={pg.top},{pg.top}'
            ' port=5603,5601 dbname=refd user=refd application_name=c')
        self.c = Node('c', console.program, config, pg.top)

    def run(self):
        assert self.console.run('create', node='c')[0] == 0
        self.c.start()
        assert self.c.await_role(True), self.c.message()
        self.commit(3)
        self.pg.copy_old()
        self.open_early()
        self.early_end()
        self.keeper()
        self.stop_alone()
        self.ids()
        self.restored()

    def commit(self, rows):
        outcome = self.c.outcome(self.c.batch(*[new_row()
                                                for _ in range(rows)]))
        assert outcome == 'COMMITTED', outcome

    def open_early(self):
        """The takeover is on the primary, and the reading is not. The former
        primary has the same rows, and the epoch before."""
        c, pg = self.c, self.pg
        end = c.applied
        c.end()
        lease = Locked(pg, """SELECT FROM refd.lease WHERE grp = 'other'
                              FOR KEY SHARE""")
        lease.__enter__()
        c.start()
        assert wait_for(10, lambda: self.takes('transactionid'))
        with Paused(pg):
            lease.__exit__()
            assert wait_for(10, lambda: self.takes('SyncRep'))
            lock = Locked(pg, 'LOCK TABLE refd.log')
            lock.__enter__()
        assert wait_for(10, lambda: self.readers())
        pg.start_old('')
        pg.sql(f'SELECT pg_terminate_backend({self.readers()})')
        lock.__exit__()
        report('a former primary comes first: the node opens',
               c.await_role(True), c.message()[-300:])
        report('ROLE has the last LSN', c.role and c.role[2] == end,
               (c.role, end))
        self.commit(2)
        pg.stop('old')

    def early_end(self):
        """The log of the former primary ends before this node's last row, and
        its COMMIT waits for ever."""
        self.pg.start_old('ANY 1 (s1)')
        self.c.end()
        self.c.start()
        report('a former primary that waits: the node opens',
               self.c.await_role(True), self.c.message()[-300:])
        self.pg.stop('old')

    def keeper(self):
        """Only the renewals go to the former primary."""
        role = self.c.role
        time.sleep(1)
        self.pg.start_old('')
        report('the renewals are on the former primary', self.pg.sql(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'c'
            AND (query LIKE 'UPDATE refd.lease SET until%'
                 OR query LIKE 'SELECT pg_current_wal_flush_lsn%')
            ORDER BY state_change DESC LIMIT 1"""))
        time.sleep(4)
        report('and find the right primary', self.pg.sql(
            "SELECT until > now() FROM refd.lease WHERE grp = 'other'") == 't')
        self.pg.stop('old')
        report('and the node leads in the same epoch',
               self.c.role == role, (role, self.c.role))
        self.commit(1)

    def stop_alone(self):
        """STOP while the standby is away, and a renewal waits."""
        self.commit(1)
        with Paused(self.pg):
            time.sleep(2)
            began = time.monotonic()
            try:
                report('STOP without the standby', self.c.stop() == 0)
            except subprocess.TimeoutExpired:
                report('STOP without the standby', False)
                self.c.end()
            report('STOP without the standby takes no time',
                   time.monotonic() - began < 5)
        self.c.start()
        assert self.c.await_role(True), self.c.message()

    def restored(self):
        """PostgreSQL is at an earlier time, while the node leads."""
        self.restore('another last row', 'another row with LSN',
                     "UPDATE refd.log SET id = '\\x11'")
        self.restore('an earlier time of PostgreSQL', 'ends at LSN',
                     'DELETE FROM refd.log')
        self.missing()

    def missing(self):
        """The log begins behind the rows that the node has."""
        self.pg.sql("DELETE FROM refd.log WHERE grp = 'other' AND lsn < 3")
        epoch = self.pg.sql("SELECT epoch FROM refd.lease WHERE grp = 'other'")
        self.c.end()
        self.c.applied = self.c.epoch = 0
        self.c.start()
        report('missing rows: the program ends',
               self.c.process.wait(10) == 128)
        report('missing rows: the reason', 'row 1 of the log is missing'
               in self.c.message(), self.c.message()[-300:])
        report('missing rows: the lease is left to others',
               epoch == self.pg.sql(
                   "SELECT epoch FROM refd.lease WHERE grp = 'other'"))

    def restore(self, name, text, change):
        self.c.end()
        self.c.start()
        assert self.c.await_role(True), self.c.message()
        self.commit(1)
        self.pg.sql(
            f"{change} WHERE grp = 'other' AND lsn = {self.c.applied}")
        self.pg.sql("""SELECT pg_terminate_backend(pid)
            FROM pg_stat_activity WHERE application_name = 'c'""")
        self.c.batch(new_row())
        try:
            self.c.process.wait(10)
        except subprocess.TimeoutExpired:
            self.c.end()
        report(name, text in self.c.message().splitlines()[-1],
               self.c.message()[-300:])
        expect(f'{name}: status', 1, f"refd: the node 'c' takes no part"
               ' in the group: this node has applied ',
               self.console.run('status', node='c'))

    def ids(self):
        """The id of a row of another group, and an id twice."""
        row = new_row()
        row['id'] = bytes.fromhex(next(iter(self.pg.log())))
        number = self.c.batch(row)
        outcome = self.c.outcome(number, 5)
        report('an id of another group', outcome == 'COMMITTED', outcome)
        row = new_row()
        self.c.batch(row, row)
        self.c.process.wait(10)
        report('an id twice', 'the same id' in self.c.message(),
               self.c.message()[-300:])

    def takes(self, event):
        return self.pg.sql(f"""SELECT 1 FROM pg_stat_activity
            WHERE wait_event = '{event}' AND application_name = 'c'
            AND query LIKE 'UPDATE refd.lease SET epoch%'""")

    def readers(self):
        return self.pg.sql("""SELECT pid FROM pg_stat_activity
            WHERE application_name = 'c' AND wait_event = 'relation'
            AND query NOT LIKE 'DELETE%' LIMIT 1""")
